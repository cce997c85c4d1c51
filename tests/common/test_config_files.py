"""Settings from files."""

from __future__ import annotations

import pytest

from holdfast.common import options
from holdfast.common.config_files import find_config_file, read_config_file
from holdfast.errors import ConfigurationError
from holdfast.types.settings import RestartKind

NESTED = """
execution:
  checkpointing:
    interval: 10 s
    incremental: false
restart-strategy.type: off
state:
  backend:
    type: heap
taskmanager.hosts:
  - one
  - two
empty:
spark.sql.shuffle.partitions: 4
"""

LINES = """
# a comment
execution.checkpointing.interval: 10 s   # each ten seconds
state.backend: heap

state.checkpoints.dir: s3://bucket/path:8080
empty:
"""


def test_nested_and_flat_yaml(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(NESTED)
    configuration = read_config_file(path)
    assert configuration.to_dict() == {
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.incremental": "false",
        "restart-strategy.type": "off",
        "state.backend.type": "heap",
        "taskmanager.hosts": "one;two",
        "spark.sql.shuffle.partitions": "4",
    }
    assert configuration.get(options.RESTART_STRATEGY) is RestartKind.NONE


def test_lines(tmp_path):
    path = tmp_path / "flink-conf.yaml"
    path.write_text(LINES)
    assert read_config_file(path).to_dict() == {
        "execution.checkpointing.interval": "10 s",
        "state.backend": "heap",
        "state.checkpoints.dir": "s3://bucket/path:8080",
    }


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("config.yaml", "a: [1", "is not YAML"),
        ("config.yaml", "- 1", "must have 'key: value' entries"),
        ("flink-conf.yaml", "\na=b", "Line 2 of .*flink-conf.yaml is 'a=b'; expected 'key: value'"),
    ],
)
def test_files_that_cannot_be_read_are_errors(tmp_path, name, text, problem):
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=problem):
        read_config_file(tmp_path / name)


def test_an_empty_file_sets_nothing(tmp_path):
    (tmp_path / "config.yaml").write_text("# nothing\n")
    assert read_config_file(tmp_path / "config.yaml").to_dict() == {}


def test_where_the_file_is_looked_for(tmp_path):
    def file(*parts: str):
        path = tmp_path.joinpath(*parts)
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
        return path

    assert find_config_file({}, tmp_path) is None
    in_working_directory = file("flink-conf.yaml")
    assert find_config_file({}, tmp_path) == in_working_directory
    in_conf = file("conf", "flink-conf.yaml")
    assert find_config_file({}, tmp_path) == in_conf
    newer = file("conf", "config.yaml")
    assert find_config_file({}, tmp_path) == newer
    of_flink = file("flink", "flink-conf.yaml")
    environment = {"FLINK_CONF_DIR": str(of_flink.parent)}
    assert find_config_file(environment, tmp_path) == of_flink
    own = file("own", "config.yaml")
    assert find_config_file({**environment, "HOLDFAST_CONF_DIR": str(own.parent)}, tmp_path) == own


def test_a_named_directory_without_a_file_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"HOLDFAST_CONF_DIR is '.*', which has neither config.yaml nor"):
        find_config_file({"HOLDFAST_CONF_DIR": str(tmp_path)}, tmp_path)
