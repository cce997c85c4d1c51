"""Every place where a job can be kept between its drivers, for suites that run on all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.checkpoint.job_address import JobAddress
from holdfast.checkpoint.job_home import JobHome
from holdfast.types.settings import CheckpointSettings
from tests.checkpoint.samples import JOB_ID
from tests.kit.zookeeper import ZooKeeperServer

#: A driver of the job: every call is another one.
NewDriver = Callable[..., JobHome]


class StillWaiting(Exception):
    """Raised by ``do_not_wait``."""


def do_not_wait(seconds: float) -> None:
    raise StillWaiting


def address_at(url: str, driver: str = "driver", job_id: str = JOB_ID, **changes: Any) -> JobAddress:
    """What a driver of this process would leave."""
    return JobAddress(url, driver, DriverRecord.of_this_process(), job_id, **changes)


def new_driver_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> NewDriver:
    """``kind`` is memory, directory or zookeeper."""
    zookeeper = None
    if kind == "zookeeper":
        server: ZooKeeperServer = request.getfixturevalue("zookeeper")
        zookeeper = server.settings(root=f"/{uuid4().hex}")

    def new_driver(num_retained: int = 1) -> JobHome:
        directory = None if kind == "memory" else str(tmp_path / "chk")
        home = JobHome.of(JOB_ID, CheckpointSettings(directory=directory, num_retained=num_retained), zookeeper)
        request.addfinalizer(home.leadership.release)
        return home

    return new_driver
