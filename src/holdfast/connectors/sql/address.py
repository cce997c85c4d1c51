"""Where a database is and who asks, with the password kept out of everything that is stored, sent or printed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any

from holdfast.errors import MissingExtraError, ProgramError

POSTGRESQL = "postgresql"
SQLITE = "sqlite"

_SECRET = ("password", "sslpassword")
#: Of this process, by the key of an address: only the driver speaks to databases.
_secrets: dict[str, dict[str, str]] = {}


class DatabaseAddress:
    """A database. Picklable: what is secret stays in the process that made it, and copies there find it again."""

    def __init__(self, dialect: str, parameters: Mapping[str, str]) -> None:
        self.dialect = dialect
        self._parameters = {name: value for name, value in parameters.items() if name not in _SECRET}
        self._key = uuid.uuid4().hex
        _secrets[self._key] = {name: value for name, value in parameters.items() if name in _SECRET}

    @staticmethod
    def parse(url: str, user: str | None = None, password: str | None = None) -> DatabaseAddress:
        """``postgresql://user@host:port/database``, a connection string of libpq, ``sqlite:///path`` (``sqlite:////``
        for an absolute path), and what JDBC makes of them.
        """
        given = url.removeprefix("jdbc:")
        if given.startswith("sqlite:"):
            return DatabaseAddress(SQLITE, {"path": _sqlite_path(given)})
        if given.startswith(("postgresql:", "postgres:")) or ("=" in given and "://" not in given):
            own = {"user": user, "password": password}
            given_too = {name: value for name, value in own.items() if value is not None}
            return DatabaseAddress(POSTGRESQL, {**_postgres_parameters(given), **given_too})
        raise ProgramError(
            f"A SQL sink writes to PostgreSQL and SQLite, and an address that begins with {_scheme(given)!r} is of "
            "neither. Expected: postgresql://user@host:port/database or sqlite:///path/of/the.db."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """All there is to connect with, secrets included where this process has them."""
        return {**self._parameters, **_secrets.get(self._key, {})}

    def __repr__(self) -> str:
        known = self._parameters
        if self.dialect == SQLITE:
            return f"sqlite:{known['path']}"
        user = f"{known['user']}@" if "user" in known else ""
        port = f":{known['port']}" if "port" in known else ""
        return f"postgresql://{user}{known.get('host', '')}{port}/{known.get('dbname', '')}"


def _scheme(given: str) -> str:
    scheme, colon, _ = given.partition("://")
    return scheme + colon if colon else ""


def _sqlite_path(url: str) -> str:
    path = url.removeprefix("sqlite:").removeprefix("///")
    if not path or path == ":memory:":
        raise ProgramError(
            "A database in memory is gone with its connection. Give the SQL sink the path of a file: sqlite:///the.db."
        )
    return os.path.abspath(path)


def _postgres_parameters(given: str) -> dict[str, str]:
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as cause:
        raise MissingExtraError("psycopg", "postgres", "PostgreSQL") from cause
    scheme, _, rest = given.partition(":")
    if scheme in ("postgresql", "postgres") and not rest.startswith("//"):
        given = f"postgresql:///{rest.lstrip('/')}"  # JDBC's short form
    try:
        return {name: str(value) for name, value in conninfo_to_dict(given).items()}
    except ProgrammingError:
        # Neither the address nor libpq's message, which quotes parts of it: the password may be among them.
        raise ProgramError(
            "The address of a PostgreSQL database cannot be read. Expected: postgresql://user@host:port/database?option"
            "=value with options of libpq (not those of JDBC), special characters in user and password percent-encoded."
        ) from None
