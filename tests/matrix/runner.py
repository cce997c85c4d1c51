"""Runs a part of the matrix: pytest, with the Python of an environment."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from holdfast.testing.chaos.processes import die_with_parent
from tests.kit.class_archive import VARIABLE as CLASS_ARCHIVE_VARIABLE
from tests.kit.driver import python_path
from tests.kit.spark_versions import INTERNALS_OPTION, INTERNALS_VARIABLE
from tests.matrix.catalogue import ACCELERATIONS, Run
from tests.matrix.environments import PROJECT, class_archive_of, spark_of
from tests.matrix.results import Result, Results, Told, fingerprint, read_report

#: A part that takes longer hangs.
_LONGEST_SECONDS = 45 * 60.0
#: A launcher of one Spark must not find the jars, and the archive of classes, of another.
_OF_ONE_SPARK = ("SPARK_HOME", "SPARK_SUBMIT_OPTS")


class Stopped(Exception):
    """The matrix was ended while a part ran, which has no result therefore."""


class Runner:
    """Runs parts, in any thread, and keeps what they came to."""

    def __init__(self, pythons: Mapping[str, Path], results: Results) -> None:
        self._pythons = pythons
        self._results = results
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, run: Run) -> Result:
        report, log = self._results.path(run, "xml"), self._results.path(run, "log")
        report.unlink(missing_ok=True)
        before, begun = fingerprint(), time.monotonic()
        code = self._pytest(run, report, log)
        passed, failed, expected, skipped = read_report(report) if report.exists() else (0, [], [], [])
        if code != 0 and not failed:
            failed = [Told(run.part.name, f"pytest {_ended(code)}; see {log.name}")]
        result = Result(
            version=run.version,
            accelerations=run.accelerations,
            part=run.part.name,
            spark=spark_of(self._pythons[run.version]),
            # Sources that were changed meanwhile are neither those before nor those behind.
            fingerprint=before if before == fingerprint() else "",
            date=datetime.now(UTC).date().isoformat(),
            seconds=round(time.monotonic() - begun, 1),
            code=code,
            passed=passed,
            failed=failed,
            expected=expected,
            skipped=skipped,
        )
        self._results.put(run, result)
        return result

    def stop(self) -> None:
        """End what runs, from another thread."""
        self._stopped = True
        for process in list(self._running):
            _kill(process)

    def _settings(self, run: Run) -> dict[str, str]:
        """Switches accelerations off in programs that no test gives settings to: those of the documents, the demo."""
        if run.accelerations == "on":
            return {}
        folder = self._results.path(run, "settings")
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(f'{INTERNALS_OPTION}: "{ACCELERATIONS[run.accelerations]}"\n')
        return {"HOLDFAST_CONF_DIR": str(folder)}

    def _pytest(self, run: Run, report: Path, log: Path) -> int | None:
        """The exit code; None where it took too long. No process of it is left."""
        python = self._pythons[run.version]
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *run.part.arguments],
                cwd=PROJECT,
                env=environment(run, python, os.environ) | self._settings(run),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        self._running.add(process)
        try:
            code: int | None = process.wait(_LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            self._running.discard(process)
            _kill(process)
        if self._stopped:
            raise Stopped(run.name)
        return code


def environment(run: Run, python: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables of a run, in which every Python and every Spark is that of its environment."""
    return {
        **{name: value for name, value in inherited.items() if name not in _OF_ONE_SPARK},
        "PATH": f"{python.parent}{os.pathsep}{inherited.get('PATH', '')}",
        "PYTHONPATH": python_path(),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        CLASS_ARCHIVE_VARIABLE: str(class_archive_of(python)),
        INTERNALS_VARIABLE: ACCELERATIONS[run.accelerations],
    }


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With all that it has started and left: it leads a session of its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)


def _ended(code: int | None) -> str:
    return f"was killed after {_LONGEST_SECONDS:.0f} s" if code is None else f"ended with {code}"
