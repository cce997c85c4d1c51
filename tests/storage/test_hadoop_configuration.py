"""Where Hadoop's own files say that a name node listens for HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import ConfigurationError
from holdfast.storage.hadoop_configuration import HadoopConfiguration

SERVICE = {
    "fs.defaultFS": "hdfs://lake",
    "dfs.nameservices": "lake",
    "dfs.ha.namenodes.lake": "nn1, nn2",
    "dfs.namenode.http-address.lake.nn1": "one:9870",
    "dfs.namenode.http-address.lake.nn2": "two:9870",
    "dfs.namenode.https-address.lake.nn1": "one:9871",
    "dfs.namenode.https-address.lake.nn2": "two:9871",
}
SINGLE = {"fs.defaultFS": "hdfs://name-node:8020", "dfs.namenode.http-address": "0.0.0.0:50070"}


def configuration(folder: Path, settings: dict[str, str]) -> HadoopConfiguration:
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    (folder / "hdfs-site.xml").write_text(f"<configuration>{properties}</configuration>")
    return HadoopConfiguration.load({"HADOOP_CONF_DIR": str(folder)})


@pytest.mark.parametrize("authority", ["lake", ""])
def test_a_name_service_has_all_its_name_nodes(tmp_path: Path, authority: str) -> None:
    nodes = configuration(tmp_path, SERVICE).name_nodes(authority)
    assert (nodes.addresses, nodes.secure) == (("one:9870", "two:9870"), False)
    assert str(tmp_path) in nodes.found


def test_only_https(tmp_path: Path) -> None:
    nodes = configuration(tmp_path, {**SERVICE, "dfs.http.policy": "HTTPS_ONLY"}).name_nodes("lake")
    assert (nodes.addresses, nodes.secure) == (("one:9871", "two:9871"), True)


def test_a_single_name_node_is_known_by_its_port_for_programs(tmp_path: Path) -> None:
    """An address of all interfaces is none to connect to: the host is that of the URI."""
    known = configuration(tmp_path, SINGLE)
    assert known.name_nodes("name-node:8020").addresses == ("name-node:50070",)
    assert known.name_nodes("").addresses == ("name-node:50070",)


def test_files_about_another_cluster_say_nothing(tmp_path: Path) -> None:
    nodes = configuration(tmp_path, SINGLE).name_nodes("elsewhere:8020")
    assert nodes.addresses == ("elsewhere:9870",)
    assert "default port" in nodes.found and str(tmp_path) in nodes.found


def test_variables_are_replaced(tmp_path: Path) -> None:
    settings = {**SINGLE, "the.host": "name-node", "dfs.namenode.http-address": "${the.host}:1234"}
    assert configuration(tmp_path, settings).name_nodes("name-node:8020").addresses == ("name-node:1234",)


def test_without_files_the_default_port_is_taken() -> None:
    nodes = HadoopConfiguration.load({}).name_nodes("name-node:8020")
    assert nodes.addresses == ("name-node:9870",)
    assert "HADOOP_CONF_DIR is not set" in nodes.found


def test_a_uri_without_a_host_needs_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"HADOOP_CONF_DIR is not set\. Write hdfs://"):
        HadoopConfiguration.load({}).name_nodes("")
    with pytest.raises(ConfigurationError, match=f"{tmp_path} has no fs.defaultFS"):
        configuration(tmp_path, {}).name_nodes("")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "etc" / "hadoop").mkdir(parents=True)
    (tmp_path / "etc" / "hadoop" / "core-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigurationError, match=r"core-site\.xml of Hadoop's configuration cannot be read"):
        HadoopConfiguration.load({"HADOOP_HOME": str(tmp_path)})
