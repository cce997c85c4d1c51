"""One PostgreSQL server for all tests with it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.kit.postgres import GUARDED, SECRET, PostgresServer, server
from tests.kit.unavailable import Unavailable


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    try:
        with server() as running:
            yield running
    except Unavailable as reason:
        pytest.skip(f"no test with PostgreSQL: {reason}")


@pytest.fixture
def guarded(postgres: PostgresServer) -> str:
    """A table for the user who needs a password, and who may not create any."""
    if not postgres.query(f"SELECT 1 FROM pg_roles WHERE rolname = '{GUARDED}'"):
        postgres.query(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{SECRET}'")
    table = f"guarded_{uuid.uuid4().hex[:8]}"
    postgres.query(f"CREATE TABLE {table} (k BIGINT PRIMARY KEY, v TEXT)")
    postgres.query(f"GRANT ALL ON {table} TO {GUARDED}")
    return table
