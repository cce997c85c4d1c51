"""``holdfast doctor`` on the Spark session of this process."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest

from holdfast.cli.verbs_doctor import summary_of
from holdfast.common.run_settings import RUN_VARIABLE
from holdfast.doctor.facts import Request
from holdfast.doctor.findings import green, red
from holdfast.spark.examination import examine
from holdfast.types.settings import SparkSettings
from tests.kit.ports import free_port
from tests.kit.s3 import S3Server

PROGRAM = """
import sys
from holdfast.common import Types
from holdfast.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.get_configuration().set_string("execution.checkpointing.dir", sys.argv[1])
print("this is the program's own line")
env.from_collection([1], Types.LONG()).print()
try:
    env.execute()
finally:
    print("the program unwinds")
print("it went on")
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command sets for its program is gone after the test."""
    monkeypatch.setenv(RUN_VARIABLE, "")
    monkeypatch.delenv(RUN_VARIABLE)
    monkeypatch.setattr(sys, "path", list(sys.path))


def by_subject(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {finding["subject"]: finding for finding in document["findings"]}


def test_a_session_of_ours_is_fit(cli, spark, tmp_path):
    told = cli(
        "doctor", "--json", "-D", "execution.checkpointing.interval=10s",
        "-D", f"execution.checkpointing.dir={tmp_path}/checkpoints",
        "-D", f"execution.checkpointing.savepoint-dir={tmp_path}/savepoints",
    ).json
    found = by_subject(told)
    assert told["level"] in ("GREEN", "YELLOW")
    assert found["Spark"]["seen"] == spark.version
    assert found["executors"]["seen"] == f"the driver ({spark.sparkContext.master})"
    for subject in ("Spark", "Java", "spark.speculation", "driver", "execution.checkpointing.dir",
                    "execution.checkpointing.savepoint-dir", "job server"):
        assert found[subject]["level"] == "GREEN", found[subject]
    assert any(name.startswith(f"executor {socket.gethostname()}:") for name in found)
    # Neither the trials nor the driver's mark are left.
    assert [path for path in (tmp_path / "checkpoints").rglob("*")] == []


def test_for_people(cli, spark, tmp_path):
    """Without checkpoints it is yellow, and says what to do."""
    told = cli("doctor")
    assert "YELLOW  checkpoints: kept in the driver's memory, and lost with it" in told.out
    assert "-> Set execution.checkpointing.dir" in told.out
    assert told.lines[-1].startswith("0 red, ")


def test_a_directory_that_cannot_be_written(cli, spark, tmp_path):
    (tmp_path / "file").touch()
    told = cli("doctor", "--json", "-D", f"execution.checkpointing.dir={tmp_path}/file", code=1).json
    driver = by_subject(told)["execution.checkpointing.dir from the driver"]
    assert driver["level"] == told["level"] == "RED"
    assert "could not write a file" in driver["seen"]
    executors = [name for name in by_subject(told) if name.startswith("execution.checkpointing.dir from executor")]
    assert len(executors) == 1


def test_a_bucket_that_does_not_exist(cli, tmp_path):
    """With Spark Connect beside it: without a session, what the driver can see is still looked at."""
    with S3Server(tmp_path / "s3") as server, server.in_environment():
        told = cli(
            "doctor", "--json", "-D", "execution.checkpointing.dir=s3://missing/checkpoints",
            "-D", "spark.remote=sc://nowhere", code=1,
        ).json
    bucket = by_subject(told)["execution.checkpointing.dir from the driver"]
    assert bucket["level"] == "RED" and "s3://missing/checkpoints" in bucket["seen"]


def test_spark_connect(cli):
    told = cli("doctor", "--json", "-D", "spark.remote=sc://nowhere", code=1).json
    spark = by_subject(told)["Spark"]
    assert spark["level"] == "RED"
    assert "spark.remote=sc://nowhere" in spark["seen"] and "classic sessions only" in spark["seen"]
    assert by_subject(told)["driver"]["level"] == "GREEN"


def test_a_program_is_taken_up_to_its_execute(cli, spark, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = cli("doctor", "--json", str(program), str(tmp_path / "of-the-program"))
    seen = by_subject(ran.json)["execution.checkpointing.dir"]["seen"]
    assert seen.startswith(f"{tmp_path}/of-the-program: ")
    assert "this is the program's own line" in ran.err and "the program unwinds" in ran.err
    assert "it went on" not in ran.out + ran.err
    assert not list((tmp_path / "jobs").glob("**/*.json"))


def test_a_program_without_execute(cli, tmp_path):
    (tmp_path / "empty.py").write_text("")
    assert "without a call of execute()" in cli("doctor", str(tmp_path / "empty.py"), code=1).err


def test_a_configuration_that_cannot_be_read(cli):
    told = cli("doctor", "--json", "-D", "execution.checkpointing.intervall=1s", code=1).json
    assert [finding["subject"] for finding in told["findings"]] == ["configuration"]
    assert "'execution.checkpointing.interval'" in told["findings"][0]["seen"]


def test_an_acceleration_that_does_not_exist(cli, spark):
    told = cli("doctor", "--json", "-D", "holdfast.spark.internals.without=nonsense", code=1).json
    assert "'nonsense'" in by_subject(told)["Spark"]["seen"]


def test_ports_that_are_taken(cli):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = cli("doctor", "--json", "-D", f"rest.bind-port={port}", "-D", "spark.remote=sc://nowhere", code=1).json
    server = by_subject(told)["job server"]
    assert server["level"] == "RED" and str(port) in server["seen"]
    without = cli("doctor", "--json", "-D", "rest.enabled=false", "-D", "spark.remote=sc://nowhere", code=1).json
    assert "job server" not in by_subject(without)


def test_a_zookeeper_that_does_not_answer(cli):
    quorum = f"127.0.0.1:{free_port()}"
    told = cli(
        "doctor", "--json", "-D", "high-availability.type=zookeeper",
        "-D", f"high-availability.zookeeper.quorum={quorum}",
        "-D", "high-availability.zookeeper.client.connection-timeout=1s", "-D", "holdfast.job-id=" + "0" * 32,
        "-D", "spark.remote=sc://nowhere", code=1,
    ).json
    found = by_subject(told)["ZooKeeper"]
    assert found["level"] == "RED" and quorum in found["seen"]


def test_a_zookeeper_that_answers(cli, zookeeper):
    told = cli(
        "doctor", "--json", "-D", "high-availability.type=zookeeper",
        "-D", f"high-availability.zookeeper.quorum={zookeeper.quorum}", "-D", "holdfast.job-id=" + "0" * 32,
        "-D", "spark.remote=sc://nowhere", code=1,
    ).json
    assert by_subject(told)["ZooKeeper"]["level"] == "GREEN"


def test_clocks_are_measured_within_the_time_that_a_task_takes(spark) -> None:
    """Driver and executor have one clock here."""
    (executor,) = examine(spark, SparkSettings(), Request()).executors
    assert executor.clock is not None
    assert abs(executor.clock.ahead) <= executor.clock.error + 0.01


def test_without_accelerations(spark) -> None:
    facts = examine(spark, SparkSettings(internals=False), Request())
    assert {reason for reason, _ in facts.accelerations_off.values()} == {"holdfast.spark.internals is off"}
    assert "kept plans" in facts.accelerations_off


def test_summaries():
    assert summary_of([green("a", "b")]).plain == "\n0 red, 0 yellow, 1 green. This application is fit."
    assert summary_of([red("a", "b", "c")]).plain.startswith("\n1 red, 0 yellow, 0 green. Jobs do not run here")
