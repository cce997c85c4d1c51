"""A job in a process of its own, without Spark, from its start to what is left of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.checkpoint.storage import open_snapshot
from holdfast.server.jobs_directory import JobsDirectory
from holdfast.server.last_seen import LastSeen
from tests.cli.conftest import await_true
from tests.integration.programs import published
from tests.job.counting import EPOCHS, counts_of

PROGRAM = str(Path(__file__).with_name("endless.py"))
SETTINGS = ("-D", "rest.bind-port=0", "-Dholdfast.rest.linger=1 s", "-Dexecution.checkpointing.interval=10 ms")


@pytest.fixture
def start(cli, tmp_path):
    """Starts the program detached; the job's id."""

    def run(*options: str, epochs: int = 3, untyped: bool = False) -> str:
        ran = cli("run", "-d", *SETTINGS, f"-Dexecution.checkpointing.savepoint-dir={tmp_path}/sp", *options, PROGRAM,
                  str(tmp_path / "job"), str(epochs), *(["untyped"] if untyped else []))
        match = re.fullmatch(r"Job has been submitted with JobID ([0-9a-f]{32})\n", ran.out)
        assert match, ran.out
        return match[1]

    return run


@pytest.mark.slow
def test_from_start_to_restart(cli, start, tmp_path, jobs_dir):
    job = start("-p", "2")
    await_true(lambda: cli("list", "--json", "-r").json["jobs"])
    (record,) = JobsDirectory(jobs_dir).living()
    listed = cli("list").lines
    assert listed[0] == "Waiting for response..."
    assert listed[1] == "------------------ Running/Restarting Jobs -------------------"
    assert re.fullmatch(rf"\d\d\.\d\d\.\d{{4}} \d\d:\d\d:\d\d : {job} : counting \(RUNNING\)", listed[2])
    assert listed[3:] == ["-" * 62, "No scheduled jobs."]
    assert job in cli("list", "-r", "-yid", record.application_id).out
    assert job not in cli("list", "-a", "-yid", "application_of_others").out
    assert cli("list", "-m", record.url.removeprefix("http://"), "--json").json["jobs"][0]["jid"] == job

    taken = cli("savepoint", job)
    assert taken.lines[:2] == [f"Triggering savepoint for job {job}.", "Waiting for response..."]
    path = taken.lines[2].removeprefix("Savepoint completed. Path: ")
    assert (Path(path) / "_metadata").exists()
    assert taken.lines[3] == "You can resume your program from this savepoint with the run command."
    # A relative directory is one of here; one that the job was not started with is refused.
    beside = cli("savepoint", job, "sp/beside").lines[2].removeprefix("Savepoint completed. Path: ")
    assert Path(beside).parent == tmp_path / "sp" / "beside"
    assert "holdfast.rest.allowed-directories" in cli("savepoint", job, "elsewhere", code=1).err
    disposed = cli("savepoint", "-d", path)
    assert disposed.lines == [
        f"Disposing savepoint '{path}'.", "Waiting for response...", f"Savepoint '{path}' disposed."
    ]
    assert not Path(path).exists()
    detached = cli("savepoint", "-detached", job)
    assert re.fullmatch(r"Successfully trigger manual savepoint, triggerId: [0-9a-f]{32}", detached.lines[-1])

    by_hand = cli("checkpoint", job).lines
    assert by_hand[:2] == [f"Triggering checkpoint for job {job}.", "Waiting for response..."]
    assert re.fullmatch(rf"Checkpoint \d+ for job {job} completed\.", by_hand[2])
    assert by_hand[3] == "You can resume your program from this checkpoint with the run command."
    assert re.fullmatch(rf"Checkpoint\(FULL\) \d+ for job {job} completed\.", cli("checkpoint", "-full", job).lines[2])
    assert cli("checkpoints", job, "--json").json["counts"]["completed"] > 0
    table = cli("checkpoints", job).out
    assert "COMPLETED" in table
    assert job in table

    stopped = cli("stop", job)
    assert stopped.lines[:3] == [
        f'Suspending job "{job}" with a CANONICAL savepoint.',
        f"Triggering stop-with-savepoint for job {job}.",
        "Waiting for response...",
    ]
    path = stopped.lines[3].removeprefix("Savepoint completed. Path: ")
    await_true(lambda: not JobsDirectory(jobs_dir).living())
    assert published(tmp_path / "job" / "out") == counts_of(EPOCHS[:3])
    ended = cli("list", "-a").lines
    assert ended[1:3] == ["No running jobs.", "No scheduled jobs."]
    assert ended[3] == "---------------------- Terminated Jobs -----------------------"
    assert ended[4].endswith(f" : {job} : counting (FINISHED)")
    assert "SYNC_SAVEPOINT" in cli("checkpoints", job).out

    again = start("-s", path, "-p", "3", epochs=6)
    assert again != job
    wanted = counts_of(EPOCHS)
    await_true(lambda: published(tmp_path / "job" / "out") == wanted)
    gone = cli("cancel", again)
    assert gone.lines == [f"Cancelling job {again}.", f"Cancelled job {again}."]
    await_true(lambda: not JobsDirectory(jobs_dir).living())
    assert cli("savepoint", again, code=1).err == f"Job {again} has ended: it is CANCELED.\n"


@pytest.mark.slow
def test_one_savepoint_is_followed_by_its_trigger_id(cli, start, jobs_dir):
    job = start("-p", "2")
    taken = cli("savepoint", job, "--json").json
    (log,) = (jobs_dir / "logs").iterdir()
    text = log.read_text()
    course = [line.partition(f"Trigger {taken['request-id']}: ")[2] for line in text.splitlines()]
    course = [line for line in course if line]
    assert course[0] == f"a savepoint was asked for, of job {job}"
    path = re.escape(taken["location"])
    begun = rf"it is snapshot (\d+) \(SAVEPOINT\), whose barrier goes through epoch (\d+), to {path}"
    begin = re.fullmatch(begun, course[1])
    assert begin is not None, course[1]
    barrier = rf"the barrier of snapshot {begin[1]} has come to '(.+)' \((\d)/\d\) in epoch {begin[2]}"
    arrived = [found for line in course if (found := re.fullmatch(barrier, line))]
    acknowledgement = re.compile(r"'(.+)' \((\d)/\d\) acknowledged after \d+ ms, with \d+ bytes")
    answered = [found for line in course if (found := acknowledgement.fullmatch(line))]
    assert {found.groups() for found in arrived} == {found.groups() for found in answered}
    assert len(arrived) == len(answered) == 5
    assert course[-2:] == [
        f"snapshot {begin[1]} is complete: {taken['location']}",
        f"the savepoint completed: {taken['location']}",
    ]
    metadata, _ = open_snapshot(taken["location"])
    # Every subtask had it from its barriers.
    answers = [subtask.trigger_id for record in metadata.operators for subtask in record.subtasks]
    assert answers == [taken["request-id"]] * 5
    cancelled = cli("cancel", "-s", job)
    assert cancelled.lines[0].startswith("DEPRECATION WARNING")
    assert re.fullmatch(rf"Cancelled job {job}\. Savepoint stored in /.*\.", cancelled.lines[-1])
    await_true(lambda: not JobsDirectory(jobs_dir).living())
    assert cli("list", "-a", "--json").json["jobs"][0]["state"] == "CANCELED"


@pytest.mark.slow
def test_a_driver_that_was_killed_leaves_its_job_in_the_history(cli, start, jobs_dir):
    job = start("-p", "1", "-Dholdfast.history.interval=100 ms")
    (record,) = JobsDirectory(jobs_dir).living()
    notes = LastSeen(JobsDirectory(jobs_dir).last_seen(record.driver))
    await_true(lambda: (seen := notes.read(job)) and seen.resources["/checkpoints"]["counts"]["completed"])
    os.kill(record.process.pid, signal.SIGKILL)
    await_true(lambda: not JobsDirectory(jobs_dir).living())
    assert cli("list").lines == ["Waiting for response...", "No running jobs.", "No scheduled jobs."]
    assert JobsDirectory(jobs_dir).dead() == [], "nobody has to look at it again"
    (lost,) = cli("list", "-a", "--json").json["jobs"]
    assert (lost["jid"], lost["state"]) == (job, "FAILED")
    assert lost["end-time"] > lost["start-time"]
    assert cli("stop", job, code=1).err == f"Job {job} has ended: it is FAILED.\n"


@pytest.mark.slow
def test_a_program_that_fails_is_told_with_the_end_of_its_log(cli, tmp_path):
    (tmp_path / "broken.py").write_text("import sys\nprint('so far')\nsys.exit(3)\n")
    told = cli("run", "-d", str(tmp_path / "broken.py"), code=1)
    assert "ended with code 3 and submitted no job" in told.err
    assert "so far" in told.err


@pytest.mark.slow
def test_an_attached_run_ends_with_its_job(cli, tmp_path, jobs_dir):
    command = [sys.executable, "-m", "holdfast.cli", "run", *SETTINGS, "-p", "1", PROGRAM, str(tmp_path / "job"), "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            (job,) = await_true(lambda: cli("list", "-r", "--json").json["jobs"])
            cli("stop", "-p", str(tmp_path / "job" / "chk"), job["jid"])
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert out == f"Job has been submitted with JobID {job['jid']}\n"
    assert "Job server: http://127.0.0.1:" in err
    assert JobsDirectory(jobs_dir).living() == []


@pytest.mark.slow
def test_a_driver_that_is_told_to_end_leaves_no_record(cli, start, jobs_dir):
    start("-p", "1")
    (record,) = JobsDirectory(jobs_dir).living()
    os.kill(record.process.pid, signal.SIGTERM)
    await_true(lambda: not (jobs_dir / "drivers" / f"{record.driver}.json").exists())


@pytest.mark.slow
def test_what_is_pickled_is_told_and_restored_only_where_that_is_allowed(cli, start, tmp_path):
    job = start("-p", "2", untyped=True)
    await_true(lambda: published(tmp_path / "job/out") == counts_of(EPOCHS[:3]))
    told = (
        "WARNING: operator 'Map With State' (uid count): value state 'state' of PICKLED_BYTE_ARRAY is pickled. To "
        "declare its type: its ValueStateDescriptor, or state_type of map_with_state()."
    )
    assert told in cli("savepoint", job).lines
    assert cli("savepoint", job, "--json").json["pickled"] == [told.removeprefix("WARNING: ")]
    stopped = cli("stop", job).lines
    assert told in stopped
    path = next(line for line in stopped if "Path: " in line).partition("Path: ")[2]
    given = ("run", "-d", *SETTINGS, "-s", path, PROGRAM, str(tmp_path / "job"), "6", "untyped")
    refused = cli(*given, code=1).err
    for part in ("PickledStateError", "(uid count): value state 'state'", "--allow-pickle"):
        assert part in refused
    again = start("-p", "3", "-s", path, "--allow-pickle", epochs=6, untyped=True)
    await_true(lambda: published(tmp_path / "job/out") == counts_of(EPOCHS))
    cli("cancel", again)
