"""One PostgreSQL server for all tests with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.postgres import PostgresServer, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with server() as running:
        yield running
