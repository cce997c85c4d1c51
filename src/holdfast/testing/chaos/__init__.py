"""Faults for whole jobs: a program runs on Spark, its processes and services are killed at moments that are drawn from
a seed, and what it published is compared with what it must have published.

    result = run_chaos(
        Program("job.py", ["--directory", "/tmp/job"]),
        Oracle(rows_in=read_input, rows_out=read_output, expected=totals),
        [KillWorker(), KillDriver(), KillService(broker)],
        Moments(seed=7, faults=10),
        Path("/tmp/job/logs"),
    )
    assert result.exactly_once, result

It reads ``/proc``, so it needs Linux. Executors are found where they run on the same host.
"""

from holdfast.testing.chaos.faults import (
    Fault,
    KillDriver,
    KillExecutor,
    KillService,
    KillWorker,
    PauseDriver,
    PauseWorker,
    StopService,
)
from holdfast.testing.chaos.oracle import Oracle, Verdict
from holdfast.testing.chaos.result import ChaosResult, table_of
from holdfast.testing.chaos.rounds import Moments, run_chaos
from holdfast.testing.chaos.services import Service
from holdfast.testing.chaos.target import Program, Target

__all__ = [
    "ChaosResult",
    "Fault",
    "KillDriver",
    "KillExecutor",
    "KillService",
    "KillWorker",
    "Moments",
    "Oracle",
    "PauseDriver",
    "PauseWorker",
    "Program",
    "Service",
    "StopService",
    "Target",
    "Verdict",
    "run_chaos",
    "table_of",
]
