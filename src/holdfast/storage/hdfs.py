"""HDFS from this host: over WebHDFS, which needs nothing installed, or through libhdfs where that works.

WebHDFS comes first also where there is a libhdfs. It renames without replacing, which makes exclusive creation whole,
and tells a missing file from a name node that is gone. Through ``pyarrow.fs`` libhdfs can do neither.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from holdfast.errors import StorageError
from holdfast.storage.filesystem import Storage
from holdfast.storage.hadoop_configuration import HadoopConfiguration, NameNodes
from holdfast.storage.webhdfs import WebHdfsStorage
from holdfast.storage.webhdfs_client import WebHdfsClient


class HdfsAccessKind(Enum):
    WEBHDFS = "WebHDFS"
    LIBHDFS = "libhdfs"


@dataclass(frozen=True)
class HdfsAccess:
    """How this process reaches an HDFS, and why in this way; ``reason`` is for people."""

    kind: HdfsAccessKind
    reason: str
    connect: Callable[[str], Storage]


def access(uri: str) -> HdfsAccess:
    """How files of an ``hdfs:``, ``webhdfs:`` or ``swebhdfs:`` URI are reached from here. It is tried, not guessed;
    what works is kept for the process. StorageError when nothing does.
    """
    parts = urlsplit(uri)
    return _access(parts.scheme, parts.netloc, user_name())


def open_hdfs(uri: str) -> Storage:
    return access(uri).connect(uri)


def user_name() -> str:
    """Who this process is for an HDFS without Kerberos: as for Hadoop's own programs, ``HADOOP_USER_NAME`` or the
    user of the system.
    """
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


@lru_cache(maxsize=32)
def _access(scheme: str, authority: str, user: str) -> HdfsAccess:
    nodes = _name_nodes(scheme, authority)
    client = WebHdfsClient(nodes.addresses, user, nodes.secure)
    try:
        client.status("/")
    except OSError as cause:
        refusal = cause
    else:
        told = f"WebHDFS answers at {', '.join(nodes.addresses)} ({nodes.found}), as user {user}"
        return HdfsAccess(
            HdfsAccessKind.WEBHDFS, told, lambda uri: WebHdfsStorage(uri, client, unquote(urlsplit(uri).path))
        )
    told = f"WebHDFS does not answer at {', '.join(nodes.addresses)} ({nodes.found}): {refusal}"
    if scheme == "hdfs":
        return _native(authority, told)
    raise StorageError(
        f"cannot reach the HDFS of {scheme}://{authority}: {told}. Give host and port of the name node's HTTP address "
        "(dfs.namenode.http-address, port 9870 unless changed), and check dfs.webhdfs.enabled."
    )


def _name_nodes(scheme: str, authority: str) -> NameNodes:
    if scheme == "hdfs":
        return HadoopConfiguration.load().name_nodes(authority)
    secure = scheme == "swebhdfs"
    port = "" if ":" in authority else ":9871" if secure else ":9870"
    return NameNodes((f"{authority}{port}",), secure, "as the URI says")


def _native(authority: str, without: str) -> HdfsAccess:
    """Access by libhdfs, with the reason that there is no WebHDFS."""
    from holdfast.storage.remote import ArrowStorage

    try:
        filesystem = _load_native(authority)
    except OSError as cause:
        raise StorageError(
            f"cannot reach the HDFS of hdfs://{authority}. {without}. libhdfs cannot be used here either: "
            f"{str(cause).splitlines()[0]}. Set HADOOP_CONF_DIR to a folder whose hdfs-site.xml has "
            "dfs.namenode.http-address, or write webhdfs://<name node>:<HTTP port>/<path>. For a cluster with Kerberos "
            "install Hadoop's native client on this host (JAVA_HOME, HADOOP_HOME, CLASSPATH)."
        ) from cause
    return HdfsAccess(
        HdfsAccessKind.LIBHDFS,
        f"libhdfs could be loaded and connected. {without}",
        lambda uri: ArrowStorage(uri, filesystem, unquote(urlsplit(uri).path), atomic_rename=True),
    )


def _load_native(authority: str) -> Any:
    from pyarrow import fs

    host, _, port = authority.partition(":")
    filesystem = fs.HadoopFileSystem(f"hdfs://{host}" if host else "default", int(port or 0))
    if filesystem.get_file_info("/").type == fs.FileType.NotFound:
        raise OSError("the root of the file system cannot be read through it")
    return filesystem
