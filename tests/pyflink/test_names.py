"""No name of PyFlink is without an answer, and every answer is what a program gets."""

from __future__ import annotations

import importlib
import inspect
import json
import logging
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest

from holdfast.common import Configuration, Duration, Encoder, Types
from holdfast.coverage.answers import DECLARATIONS, Answer
from holdfast.datastream import (
    DataStream,
    EmbeddedRocksDBStateBackend,
    FileSystemCheckpointStorage,
    StreamExecutionEnvironment,
)
from holdfast.datastream.connectors.file_system import FileCompactStrategy, FileSink
from holdfast.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions
from holdfast.errors import ProgramError, UnavailableImportError, UnavailableNameError
from tests.pyflink.answers import NAMES_FILE, Answered, answers, names
from tests.pyflink.comparison import compared, disagreement, resolve
from tests.pyflink.page import render
from tests.pyflink.surface import members

PAGE = NAMES_FILE.parents[2] / "docs/reference/pyflink-coverage.md"


def of(*wanted: Answer) -> list[Answered]:
    return [one for one in answers() if one.answer in wanted and one.found.name]


def path(one: Answered) -> str:
    return one.found.path


def test_what_was_read_is_whole() -> None:
    read = names()
    assert read["version"] == "2.3.0"
    exported = read["exports"]["datastream"]
    assert exported["TimeWindow"] == "datastream.window.TimeWindow"
    assert {"name": "retention_mode"} in read["classes"]["datastream.checkpoint_config.CheckpointConfig"][
        "set_externalized_checkpoint_retention"
    ]["parameters"]
    assert "is_terminal_state" in read["classes"]["common.job_status.JobStatus"]
    assert read["classes"]["datastream.time_domain.TimeDomain"]["EVENT_TIME"] == {"kind": "member"}
    modules = set(read["exports"])
    assert {"datastream.formats.csv", "datastream.connectors.kafka", "common.typeinfo"} <= modules


def test_constants_are_compared_by_their_values() -> None:
    read = {"exports": {"common.constants": {}}, "classes": {}, "functions": {}, "constants": {}}
    for name, value in {"MAX_LONG_VALUE": "9223372036854775807", "MIN_LONG_VALUE": "0", "MIDDLE": "0"}.items():
        home = f"common.constants.{name}"
        read["exports"]["common.constants"][name] = home
        read["constants"][home] = value
    assert [found.difference for found in compared(read) if found.name] == ["", "is -9223372036854775808", "absent"]


def test_no_name_is_without_an_answer() -> None:
    without = [f"{path(one)}{one.found.signature}: {one.note}" for one in answers() if one.answer is None]
    assert without == []


def test_every_declaration_is_of_a_name_of_pyflink() -> None:
    used = {one.key for one in answers()}
    assert [key for key in DECLARATIONS if key not in used] == []


def test_what_is_supported_is_there() -> None:
    absent = [path(one) for one in of(Answer.SUPPORTED) if one.found.difference in ("absent", "no such module")]
    assert absent == []


def test_what_is_of_java_is_not_there() -> None:
    there = [path(one) for one in of(Answer.JAVA_ONLY) if not one.found.difference]
    assert there == []


def test_signatures_that_differ_are_seen() -> None:
    one = {"name": "func"}
    two = {"name": "output_type", "default": "None"}
    assert not disagreement([one], [one, two])
    assert not disagreement([one, two], [one, two])
    assert disagreement([one, two], [one])
    assert disagreement([one], [{"name": "function"}])
    assert disagreement([one, two], [one, {"name": "output_type"}])
    assert disagreement([two], [two | {"default": "1"}])
    assert disagreement([one], [one, {"name": "more"}])
    assert disagreement([one | {"kind": "*"}], [one])
    assert not disagreement([one, {"name": "j_function", "default": "None"}], [one])


def test_the_page_is_what_was_found() -> None:
    assert PAGE.read_text() == render(), "run: make docs"


# -- what a program gets


ABSENT_EXPORTS = [
    one for one in of(Answer.REFUSED, Answer.JAVA_ONLY) if not one.found.owner and one.found.difference == "absent"
]


@pytest.mark.parametrize("one", ABSENT_EXPORTS, ids=path)
def test_an_import_says_what_to_use(one: Answered) -> None:
    with pytest.raises(UnavailableImportError, match="is not available: ") as told:
        exec(f"from holdfast.{one.found.module} import {one.found.name}")
    assert one.note in str(told.value)
    assert one.found.name == told.value.name


def test_a_name_that_nobody_has_is_an_error_of_python() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec("from holdfast.datastream import Nothing")
    assert not hasattr(importlib.import_module("holdfast.datastream.connectors.pulsar"), "__wrapped__")
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        env.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


#: An object of each class whose names a program may ask for.
OBJECTS: dict[str, Callable[[StreamExecutionEnvironment], Any]] = {
    "StreamExecutionEnvironment": lambda env: env,
    "CheckpointConfig": lambda env: env.get_checkpoint_config(),
    "Configuration": lambda env: env.get_configuration(),
    "DataStream": lambda env: stream_of(env),
    "DataStreamSink": lambda env: stream_of(env).print(),
    "KeyedStream": lambda env: stream_of(env).key_by(lambda n: n),
    "EmbeddedRocksDBStateBackend": lambda env: EmbeddedRocksDBStateBackend(),
    "ExecutionConfig": lambda env: env.get_config(),
    "FileSystemCheckpointStorage": lambda env: FileSystemCheckpointStorage("file:///checkpoints"),
    "FileCompactStrategy.Builder": lambda env: FileCompactStrategy.builder(),
    "FileSink.BaseBuilder": lambda env: FileSink.BaseBuilder(lines_in_files()),
    "FileSink.RowFormatBuilder": lambda env: FileSink.RowFormatBuilder(lines_in_files()),
    "FileSink.BulkFormatBuilder": lambda env: FileSink.BulkFormatBuilder(lines_in_files()),
    "JdbcConnectionOptions.JdbcConnectionOptionsBuilder": (
        lambda env: JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    ),
    "JdbcExecutionOptions.Builder": lambda env: JdbcExecutionOptions.builder(),
}


def lines_in_files() -> FileSink:
    return FileSink.for_row_format("out", Encoder.simple_string_encoder()).build()


def stream_of(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([1], Types.LONG()).map(lambda n: n, Types.LONG())


def arguments(one: Answered) -> list[str]:
    """Names of the parameters that must be given."""
    given = one.found.signature.strip("()").split(", ")
    return [name for name in given if name and "=" not in name and "*" not in name]


#: What is refused when a class is asked for it, and not when it is called on an object.
OF_CLASSES = ("__init__", "AccumulateType")
REFUSED = [
    one
    for one in of(Answer.REFUSED, Answer.JAVA_ONLY)
    if one.found.owner in OBJECTS and one.found.name not in OF_CLASSES
]


@pytest.mark.parametrize("one", REFUSED, ids=path)
def test_what_is_refused_says_so(one: Answered, env: StreamExecutionEnvironment) -> None:
    """By an error of the call, or already where the name is looked up."""
    with pytest.raises(ProgramError, match=r"Cannot override partitioning|is not available: "):
        getattr(OBJECTS[one.found.owner](env), one.found.name)(*arguments(one))


#: Absent members of classes that are there.
ABSENT_MEMBERS = [
    one
    for one in of(Answer.REFUSED, Answer.JAVA_ONLY)
    if one.found.difference == "absent" and inspect.isclass(resolve(one.found.module, one.found.owner))
]


@pytest.mark.parametrize("one", ABSENT_MEMBERS, ids=path)
def test_a_class_says_what_to_use(one: Answered) -> None:
    cls = resolve(one.found.module, one.found.owner)
    assert one.found.name not in members(cls, "holdfast") and not hasattr(cls, one.found.name)
    # The metaclass of enumerations answers for the class itself, until Python 3.12.
    asked = next(iter(cls)) if issubclass(cls, Enum) else cls
    with pytest.raises(UnavailableNameError, match="is not available: ") as told:
        getattr(asked, one.found.name)
    assert one.note in str(told.value)


def test_what_is_refused_and_there_raises() -> None:
    """An entry that is left behind, when what it refuses was built, is found here."""
    there = [one for one in of(Answer.REFUSED) if one.found.owner and one.found.signature and not one.found.difference]
    assert len(there) > 20
    methods = {path(one): resolve(one.found.module, f"{one.found.owner}.{one.found.name}") for one in there}
    assert [name for name, method in methods.items() if "raise " not in inspect.getsource(method)] == []


def test_names_of_pyflink_are_no_attributes(env: StreamExecutionEnvironment) -> None:
    """hasattr() and pickling see what they see of any other name."""
    stream = env.from_collection([1])
    assert not hasattr(env, "serializer")
    with pytest.raises(UnavailableNameError, match="types say how values are stored"):
        env.serializer  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError):
        stream.get_java_function()  # type: ignore[attr-defined]


VALUES = {"enabled": True, "timeout_millis": 5, "alignment_timeout": Duration.of_seconds(3)}


@pytest.mark.parametrize("one", of(Answer.ACCEPTED), ids=path)
def test_what_is_accepted_is_noted(
    one: Answered, env: StreamExecutionEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    target = OBJECTS[one.found.owner](env)
    with caplog.at_level(logging.INFO, logger="holdfast"):
        result = getattr(target, one.found.name)(*(VALUES.get(name, 7) for name in arguments(one)))
    if not one.found.name.startswith(("get_", "is_")):
        assert result is None or type(result) is type(target)
        assert f"has no effect: {one.note}." in caplog.text
    plain = StreamExecutionEnvironment.get_execution_environment()
    assert env.job_settings().checkpoint == plain.job_settings().checkpoint


#: What tells that a call has no effect.
NOTES = ("note_accepted(", "_without_effect(")


def test_what_notes_that_it_has_no_effect_is_not_called_supported() -> None:
    declared = [one for one in of(*Answer) if one.found.owner and one.found.name != "__init__"]
    methods = {path(one): resolve(one.found.module, f"{one.found.owner}.{one.found.name}") for one in declared}
    noting = {
        name
        for name, method in methods.items()
        if inspect.isfunction(method) and any(note in inspect.getsource(method) for note in NOTES)
    }
    assert len(noting) > 20
    assert {path(one) for one in of(Answer.SUPPORTED)} & noting == set()


def test_users_do_not_load_the_names() -> None:
    assert not NAMES_FILE.is_relative_to(NAMES_FILE.parents[2] / "src")


def test_what_was_set_is_given_back(env: StreamExecutionEnvironment) -> None:
    config = env.get_checkpoint_config()
    assert (env.is_unaligned_checkpoints_enabled(), env.get_buffer_timeout(), env.is_chaining_enabled()) == (
        False,
        100,
        True,
    )
    config.enable_unaligned_checkpoints().set_force_unaligned_checkpoints()
    config.set_alignment_timeout(alignment_timeout=Duration.of_seconds(3))
    env.set_buffer_timeout(7).disable_operator_chaining().set_default_savepoint_directory("/s")
    assert env.is_unaligned_checkpoints_enabled() and env.is_force_unaligned_checkpoints()
    assert config.get_aligned_checkpoint_timeout() == Duration.of_seconds(3)
    assert (env.get_buffer_timeout(), env.is_chaining_enabled()) == (7, False)
    assert env.set_buffer_timeout(-1).get_buffer_timeout() == -1
    assert env.get_default_savepoint_directory() == "/s"
    assert env.is_changelog_state_backend_enabled() is None
    assert env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled() is True
    config.disable_unaligned_checkpoints()
    assert not config.is_unaligned_checkpoints_enabled()


@pytest.mark.parametrize("key", ["execution.buffer-timeout", "execution.buffer-timeout.interval"])
def test_the_buffer_timeout_is_configured(env: StreamExecutionEnvironment, key: str) -> None:
    env.configure(Configuration().set_string(key, "2 s"))
    assert env.get_buffer_timeout() == 2000
    assert env.set_buffer_timeout(3).get_buffer_timeout() == 3


def test_a_union_is_no_operator_of_the_plan(env: StreamExecutionEnvironment) -> None:
    one, two = env.from_collection([1], Types.LONG()).name("one"), env.from_collection([2], Types.LONG()).name("two")
    more = env.from_collection([3], Types.LONG()).name("three")
    both: DataStream = one.union(two).union(more)
    both.rebalance().map(lambda n: n, Types.LONG()).name("behind").print()
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [node["type"] for node in nodes] == ["one", "two", "three", "behind", "Print"]
    behind = nodes[3]["predecessors"]
    assert sorted(one["id"] for one in behind) == [1, 2, 3]
    assert {one["ship_strategy"] for one in behind} == {"REBALANCE"}
