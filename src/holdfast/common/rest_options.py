"""Options of the job server, of the directory that tells of running drivers, and of the history of jobs."""

from __future__ import annotations

from holdfast.common.option_types import BOOLEAN, DURATION, INTEGER, MEMORY, TEXT, Kind, Option, choice

_LAST_PORT = 65_535


def _read_ports(text: str) -> tuple[int, ...]:
    ports: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ports.extend(range(int(first), int(last) + 1) if dash else [int(first)])
    if not ports or not all(0 <= port <= _LAST_PORT for port in ports):
        raise ValueError(text)
    return tuple(ports)


def _show_ports(ports: tuple[int, ...]) -> str:
    """As a range where it is one."""
    if len(ports) > 1 and ports == tuple(range(ports[0], ports[-1] + 1)):
        return f"{ports[0]}-{ports[-1]}"
    return ",".join(map(str, ports))


def _read_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";") if part.strip())


_PORTS = Kind("ports", "ports such as '8081', '8081,8085' or '8081-8090'", _read_ports, _show_ports)
_LIST = Kind("list", "values with ';' between them", _read_list, ";".join)

ENABLED: Option[bool | None] = Option(
    "rest.enabled",
    BOOLEAN,
    None,
    "Whether the driver has a job server, is listed in the jobs directory and keeps the history of its jobs.",
    default_text="`true` for `holdfast run` and where a port is set, else `false`",
)
PORTS: Option[tuple[int, ...]] = Option(
    "rest.bind-port",
    _PORTS,
    tuple(range(8081, 8181)),
    "Ports to try, the first free one is taken; 0 is any free port. Which one it is stands in the driver's log and in "
    "the jobs directory.",
    older=("rest.port",),
)
ADDRESS: Option[str] = Option(
    "rest.bind-address",
    TEXT,
    "127.0.0.1",
    "Address that the job server listens on. The default is reachable from this host only.",
)
ADVERTISED_ADDRESS: Option[str | None] = Option(
    "rest.address",
    TEXT,
    None,
    "Host name under which clients reach the job server. It is left beside the checkpoints of jobs, too.",
    default_text="the bind address; where that is `0.0.0.0`, `spark.driver.host`",
)
AUTHENTICATION: Option[bool] = Option(
    "rest.auth.type",
    choice({"token": True, "none": False}),
    True,
    "`token`: every request but that for the page itself needs the token, as bearer token or as the password of basic "
    "authentication. `none`: whoever reaches the port controls the jobs.",
)
TOKEN_FILE: Option[str | None] = Option(
    "rest.auth.token-file",
    TEXT,
    None,
    "File with the token, which only its owner may read. It is made where it does not exist.",
    default_text="`token` in the jobs directory",
)
MAX_BODY: Option[int] = Option(
    "rest.server.max-content-length",
    MEMORY,
    1 << 20,
    "A request with a longer body is refused.",
    least=1 << 10,
    most=1 << 30,
)
MAX_CONNECTIONS: Option[int] = Option(
    "holdfast.rest.max-connections",
    INTEGER,
    200,
    "Connections to the job server at a time. With one more, the oldest one over which no token came is closed. In a "
    "process that is short of file descriptors there are fewer.",
    least=1,
)
MAX_CONNECTIONS_PER_ADDRESS: Option[int] = Option(
    "holdfast.rest.max-connections-per-address",
    INTEGER,
    100,
    "Connections from one address at a time. With one more, the oldest one of that address over which no token came is "
    "closed.",
    least=1,
)
REQUEST_TIMEOUT: Option[int] = Option(
    "holdfast.rest.request-timeout",
    DURATION,
    10_000,
    "How long the head of a request may take to arrive, and from then on its body. A slower one is answered with 408, "
    "and its connection closed.",
    least=100,
)
STORE_DURATION: Option[int] = Option(
    "rest.async.store-duration",
    DURATION,
    300_000,
    "How long the result of a savepoint or another triggered operation can be asked for.",
    least=1_000,
)
LINGER: Option[int] = Option(
    "holdfast.rest.linger",
    DURATION,
    10_000,
    "When a program ends and the result of an operation was not fetched yet, its driver waits so long for that.",
)
ALLOWED_DIRECTORIES: Option[tuple[str, ...]] = Option(
    "holdfast.rest.allowed-directories",
    _LIST,
    (),
    "Directories, beside those of checkpoints and savepoints, that requests may name for savepoints: paths or URIs, "
    "with `;` between them.",
    default_text="none",
)
ALLOWED_HOSTS: Option[tuple[str, ...]] = Option(
    "holdfast.rest.allowed-hosts",
    _LIST,
    (),
    "Names, beside the bind address, by which requests may call the server. On loopback others are refused, so that no "
    "web site can reach the server through a name of its own.",
    default_text="none",
)
TLS: Option[bool] = Option(
    "security.ssl.rest.enabled", BOOLEAN, False, "Serve HTTPS. Needs the certificate and the key below."
)
TLS_CERTIFICATE: Option[str | None] = Option(
    "holdfast.rest.tls-certificate", TEXT, None, "File with the certificate (PEM) of the job server, and its chain."
)
TLS_KEY: Option[str | None] = Option("holdfast.rest.tls-key", TEXT, None, "File with the key (PEM) of the certificate.")
TLS_AUTHORITY: Option[str | None] = Option(
    "holdfast.rest.tls-ca",
    TEXT,
    None,
    "File with the certificates (PEM) that the command line trusts.",
    default_text="the certificate itself",
)
JOBS_DIRECTORY: Option[str | None] = Option(
    "holdfast.jobs-dir",
    TEXT,
    None,
    "Directory that tells which drivers live, with the token, logs of detached jobs, and the history.",
    default_text="`HOLDFAST_JOBS_DIR`, else `~/.holdfast/jobs`",
)
ARCHIVE_DIRECTORY: Option[str | None] = Option(
    "jobmanager.archive.fs.dir",
    TEXT,
    None,
    "Directory of the history of jobs that ended, a path or a URI. Setting it keeps a history without a job server "
    "too.",
    default_text="`history` in the jobs directory",
)
ARCHIVE_RETAINED: Option[int] = Option(
    "historyserver.archive.retained-jobs",
    INTEGER,
    100,
    "Ended jobs whose history is kept; the oldest ones go first.",
    least=1,
)
ARCHIVE_INTERVAL: Option[int] = Option(
    "holdfast.history.interval",
    DURATION,
    10_000,
    "How often a driver with a job server notes what it knows of its jobs: what is listed of them when it is killed.",
    least=100,
)
REFRESH: Option[int] = Option("web.refresh-interval", DURATION, 3_000, "How often the page asks for news.", least=100)

REST: tuple[Option[object], ...] = tuple(value for value in list(globals().values()) if isinstance(value, Option))
