"""The table of checkpoints, once and as a view that follows, of a job of this process."""

from __future__ import annotations

import importlib
import threading
import tomllib
from pathlib import Path

import msgspec
import pytest

from holdfast.cli.verbs_checkpoints import size_text
from holdfast.server.jobs_directory import JobsDirectory
from tests.server.serving import JOB, serving


def test_the_view_follows_until_the_job_ends(cli, tmp_path, in_process):
    with serving(tmp_path) as served:
        served.await_checkpoints(2)
        timer = threading.Timer(1, served.client.cancel)
        timer.start()
        shown = cli("checkpoints", JOB, "--follow", "--interval", "0.1").out
        timer.join()
        assert f"Checkpoints of job {JOB}" in shown
        assert "COMPLETED" in shown
        # The driver lives on, and tells of the job that has ended.
        assert cli("checkpoints", JOB, "--json").json["counts"]["in_progress"] == 0


def test_failures_are_shown(cli, tmp_path, in_process):

    def fail(spec):
        if spec.attempt == 1 and spec.epoch == 3:
            raise ValueError("a fault")

    in_process.before_epoch = fail
    with serving(tmp_path) as served:
        served.wait(lambda: served.get(f"/jobs/{JOB}/checkpoints")["counts"]["restored"])
        shown = " ".join(cli("checkpoints", JOB).out.split())
        assert "FAILED" in shown
        assert "1 failed; 1 restored" in shown


def test_a_driver_that_does_not_answer_hides_no_other(cli, tmp_path, in_process):
    with serving(tmp_path) as served:
        (record,) = JobsDirectory(tmp_path / "jobs").living()
        silent = msgspec.structs.replace(record, driver="0", url="http://127.0.0.1:1")
        JobsDirectory(tmp_path / "jobs").write(silent)
        served.await_checkpoints()
        told = cli("list", "-r")
        assert JOB in told.out
        assert "does not answer" in told.err
        JobsDirectory(tmp_path / "jobs").remove("0")


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KB"), (5 << 20, "5.0 MB"), (3 << 30, "3.0 GB")]
)
def test_sizes(size, text):
    assert size_text(size) == text


def test_the_installed_command_is_this_one():
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())
    module, _, name = project["project"]["scripts"]["holdfast"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))
