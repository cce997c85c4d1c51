"""What the configuration says about the job server of a driver."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.common import options, rest_options
from holdfast.common.configuration import Configuration
from holdfast.common.run_settings import RUN_VARIABLE
from holdfast.errors import ConfigurationError
from holdfast.server.admission import ConnectionLimits

#: The name that ``holdfast run --detached`` gives to the driver that it starts.
DRIVER_VARIABLE = "HOLDFAST_DRIVER"
JOBS_DIRECTORY_VARIABLE = "HOLDFAST_JOBS_DIR"


@dataclass(frozen=True)
class TlsSettings:
    certificate: str
    key: str
    #: What clients on this host trust.
    authority: str


@dataclass(frozen=True)
class ListenSettings:
    """Where the server listens, and by which names it may be called."""

    address: str
    ports: tuple[int, ...]
    #: What is told to others, unless it is the address of no host in particular.
    advertised: str
    allowed_hosts: tuple[str, ...]
    tls: TlsSettings | None
    connections: ConnectionLimits
    #: For the head of a request, and as long again for its body.
    request_timeout_ms: int

    @property
    def everywhere(self) -> bool:
        """On all addresses of the host, of which none can be told to others as it stands."""
        return self.address in ("0.0.0.0", "::")

    @property
    def loopback(self) -> bool:
        return self.address in ("localhost", "::1") or self.address.startswith("127.")


@dataclass(frozen=True)
class HistorySettings:
    directory: str
    retained: int
    #: How often a driver notes what is left of its jobs should it die.
    interval_ms: int = 10_000


@dataclass(frozen=True)
class ServerSettings:
    """``token_file`` None: requests need no token. Times are milliseconds, sizes bytes."""

    listen: ListenSettings
    jobs_directory: Path
    history: HistorySettings
    token_file: Path | None
    max_body: int
    store_duration_ms: int
    linger_ms: int
    refresh_ms: int


def server_enabled(configuration: Configuration, environment: Mapping[str, str]) -> bool:
    told = configuration.get(rest_options.ENABLED)
    return bool(environment.get(RUN_VARIABLE) or configuration.contains(rest_options.PORTS)) if told is None else told


def history_enabled(configuration: Configuration, environment: Mapping[str, str]) -> bool:
    return server_enabled(configuration, environment) or configuration.contains(rest_options.ARCHIVE_DIRECTORY)


def jobs_directory(configuration: Configuration, environment: Mapping[str, str]) -> Path:
    told = configuration.get(rest_options.JOBS_DIRECTORY) or environment.get(JOBS_DIRECTORY_VARIABLE)
    return Path(told).expanduser().absolute() if told else Path.home() / ".holdfast" / "jobs"


def history_settings(configuration: Configuration, environment: Mapping[str, str]) -> HistorySettings:
    directory = configuration.get(rest_options.ARCHIVE_DIRECTORY)
    return HistorySettings(
        directory or str(jobs_directory(configuration, environment) / "history"),
        configuration.get(rest_options.ARCHIVE_RETAINED),
        configuration.get(rest_options.ARCHIVE_INTERVAL),
    )


def server_settings(configuration: Configuration, environment: Mapping[str, str] = os.environ) -> ServerSettings:
    get = configuration.get
    directory = jobs_directory(configuration, environment)
    address = get(rest_options.ADDRESS)
    token_file: Path | None = None
    if get(rest_options.AUTHENTICATION):
        token_file = Path(get(rest_options.TOKEN_FILE) or directory / "token").expanduser().absolute()
    return ServerSettings(
        listen=ListenSettings(
            address,
            get(rest_options.PORTS),
            get(rest_options.ADVERTISED_ADDRESS) or address,
            get(rest_options.ALLOWED_HOSTS),
            _tls(configuration),
            ConnectionLimits(get(rest_options.MAX_CONNECTIONS), get(rest_options.MAX_CONNECTIONS_PER_ADDRESS)),
            get(rest_options.REQUEST_TIMEOUT),
        ),
        jobs_directory=directory,
        history=history_settings(configuration, environment),
        token_file=token_file,
        max_body=get(rest_options.MAX_BODY),
        store_duration_ms=get(rest_options.STORE_DURATION),
        linger_ms=get(rest_options.LINGER),
        refresh_ms=get(rest_options.REFRESH),
    )


def directories_of(configuration: Configuration) -> tuple[str, ...]:
    """Directories that requests about the job of this configuration may name."""
    named = (
        configuration.get(options.SAVEPOINT_DIRECTORY),
        configuration.get(options.CHECKPOINT_DIRECTORY),
        *configuration.get(rest_options.ALLOWED_DIRECTORIES),
    )
    return tuple(directory for directory in named if directory)


def _tls(configuration: Configuration) -> TlsSettings | None:
    if not configuration.get(rest_options.TLS):
        return None
    certificate, key = configuration.get(rest_options.TLS_CERTIFICATE), configuration.get(rest_options.TLS_KEY)
    if certificate is None or key is None:
        raise ConfigurationError(
            f"'{rest_options.TLS.key}' is true and the job server has no certificate or no key; set "
            f"'{rest_options.TLS_CERTIFICATE.key}' and '{rest_options.TLS_KEY.key}' to PEM files"
        )
    return TlsSettings(certificate, key, configuration.get(rest_options.TLS_AUTHORITY) or certificate)
