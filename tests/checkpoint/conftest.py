"""What tests of checkpoints share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.zookeeper import ZooKeeperServer


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One server for all tests that leave it running; jobs are kept apart by their root."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server
