"""What Hadoop's own files say about an HDFS: ``core-site.xml`` and ``hdfs-site.xml``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from holdfast.errors import ConfigurationError

_FILES = ("core-site.xml", "hdfs-site.xml")
_VARIABLE = re.compile(r"\$\{(?:env\.)?([^}]+)\}")
_HTTP_PORT, _HTTPS_PORT = 9870, 9871


@dataclass(frozen=True)
class NameNodes:
    """Where the name nodes of one HDFS listen for HTTP, and how that is known."""

    addresses: tuple[str, ...]
    secure: bool
    found: str


class HadoopConfiguration:
    """Settings by name, from the folder that ``HADOOP_CONF_DIR`` names, else that of ``HADOOP_HOME``."""

    def __init__(self, settings: Mapping[str, str], folder: str | None) -> None:
        self._settings = settings
        self._folder = folder

    @classmethod
    def load(cls, environment: Mapping[str, str] = os.environ) -> HadoopConfiguration:
        """Empty where neither is set. ConfigurationError for a file that is no XML."""
        folder = environment.get("HADOOP_CONF_DIR")
        if not folder and environment.get("HADOOP_HOME"):
            folder = os.path.join(environment["HADOOP_HOME"], "etc", "hadoop")
        settings: dict[str, str] = {}
        for file in (Path(folder, name) for name in _FILES) if folder else ():
            if file.is_file():
                settings |= _properties(file)
        return cls(settings, folder)

    def name_nodes(self, authority: str) -> NameNodes:
        """Name nodes of ``hdfs://<authority>/``: of a name service, of the host and port of one, or of the default file
        system where it is empty. Without a word about it in the files: the host, at Hadoop's default port.
        """
        if not authority:
            authority = urlsplit(self._get("fs.defaultFS")).netloc
        if not authority:
            raise ConfigurationError(
                "an hdfs: URI without a host is in Hadoop's default file system, and "
                + (f"{self._folder} has no fs.defaultFS" if self._folder else "HADOOP_CONF_DIR is not set")
                + ". Write hdfs://<name node>:<port>/<path>, or webhdfs://<name node>:<HTTP port>/<path>."
            )
        secure = self._get("dfs.http.policy") == "HTTPS_ONLY"
        key = f"dfs.namenode.{'https' if secure else 'http'}-address"
        if addresses := self._of_service(key, authority):
            return NameNodes(addresses, secure, f"{key} of the name service {authority} in {self._folder}")
        if addresses := self._of_name_node(key, authority):
            return NameNodes(addresses, secure, f"{key} in {self._folder}")
        host, port = authority.partition(":")[0], _HTTPS_PORT if secure else _HTTP_PORT
        told = f"nothing in {self._folder} names it" if self._folder else "HADOOP_CONF_DIR is not set"
        return NameNodes((f"{host}:{port}",), secure, f"Hadoop's default port, because {told}")

    def _of_service(self, key: str, service: str) -> tuple[str, ...]:
        members = self._get(f"dfs.ha.namenodes.{service}").split(",")
        return tuple(filter(None, (self._get(f"{key}.{service}.{member.strip()}") for member in members)))

    def _of_name_node(self, key: str, authority: str) -> tuple[str, ...]:
        """Only where the files are about that name node: a host may know several clusters."""
        host = authority.partition(":")[0]
        known = (urlsplit(self._get("fs.defaultFS")).netloc, self._get("dfs.namenode.rpc-address"))
        address = self._get(key)
        if not address or authority not in known:
            return ()
        named, _, port = address.rpartition(":")
        return (f"{host if named in ('', '0.0.0.0') else named}:{port}",)

    def _get(self, name: str) -> str:
        return _VARIABLE.sub(lambda found: self._settings.get(found[1], found[0]), self._settings.get(name, ""))


def _properties(file: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, OSError) as cause:
        raise ConfigurationError(f"{file} of Hadoop's configuration cannot be read: {cause}") from cause
    pairs = ((item.findtext("name"), item.findtext("value")) for item in root.iter("property"))
    return {name.strip(): (value or "").strip() for name, value in pairs if name}
