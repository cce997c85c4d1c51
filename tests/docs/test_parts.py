"""Blocks that are no complete programs are run, or checked, as far as they can be. What is not run is listed here, with
the reason.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
import yaml

from holdfast.common.config_files import read_config_file
from holdfast.common.options import ALL, WITHOUT_EFFECT
from tests.docs.blocks import PROJECT, Block, all_blocks, blocks_of, pages

#: What is done with the blocks of each language, and why that is all.
LANGUAGES = {
    "python": "a complete program: run",
    "py": "a part of a program: run behind PREPARED, or listed in NOT_RUN",
    "yaml": "settings: parsed, and every key is one that is known",
    "toml": "a part of a project's settings: parsed",
    "sh": "commands: those of the README's tour and of the tutorial are run; others name hosts and jobs of the reader",
    "sql": "queries of DuckDB, which Holdfast does not install; tests of savepoints read the same files",
    "text": "layouts, messages and tables: nothing to run",
    "mermaid": "diagrams, which GitHub draws",
}

_STREAMS = """
import time

from holdfast.common import RestartStrategies, Time, Types
from holdfast.datastream import *
from holdfast.datastream.state import *
from holdfast.datastream.window import *

env = StreamExecutionEnvironment.get_execution_environment()
stream = env.from_collection([(1, 2)], Types.TUPLE([Types.LONG(), Types.LONG()]))
keyed = stream.key_by(lambda row: row[0])
"""
_WRAPPED = "MyCheckpointedMap = type('MyCheckpointedMap', (MapFunction,), {'map': lambda self, value: value})\n"
_TOTALS = "payments = stream\nTotals = type('Totals', (MapFunction,), {'map': lambda self, value: value})\n"
_SALES = """
SALE = Types.ROW_NAMED(["shop", "price"], [Types.STRING(), Types.LONG()])
sales = env.from_collection([("north", 5)], SALE)
"""
_FILES = """
from holdfast.datastream.connectors.file_system import FileSource

files = FileSource.parquet("sales", "shop STRING, price BIGINT, time BIGINT")
"""
_JOINED = """
orders = payments = stream
order_id = payment_id = lambda row: str(row[0])
windows = TumblingEventTimeWindows.of(Time.minutes(1))
JoinFunction = lambda one, other: (one, other)
CoGroupFunction = lambda ones, others: [(len(ones), len(others))]
ProcessJoinFunction = type("Join", (ProcessJoinFunction,), {"process_element": lambda self, one, other, ctx: [one]})()
"""
_IMAGES = """
from dataclasses import dataclass

import msgspec

from holdfast.state.handles import KeyedSnapshot, NativeFile, NativeImage
from holdfast.state.layout import group_bytes, groups_end
from holdfast.state.store import LocalStore
from holdfast.state.strategies import PreparedSnapshot, SnapshotStrategy, empty_frame
"""
_TIMES = """
from holdfast.common import Duration, TimestampAssigner, WatermarkStrategy

OrderTime = type("OrderTime", (TimestampAssigner,), {"extract_timestamp": lambda self, value, time: value[1]})
"""
#: What makes the names that a part uses: in front of it. By page, and place among the parts of that page.
PREPARED = {
    ("docs/reference/state.md", 0): "",
    ("docs/reference/windows.md", 0): _TIMES,
    ("docs/how-to/add-a-type.md", 0): "",
    ("docs/how-to/keep-operator-state.md", 0): _STREAMS + _WRAPPED,
    ("docs/how-to/recover-from-a-checkpoint.md", 0): _STREAMS,
    ("docs/how-to/write-a-sink.md", 0): _STREAMS,
    ("docs/how-to/windows.md", 0): _STREAMS,
    ("docs/how-to/windows.md", 1): _STREAMS,
    ("docs/how-to/windows.md", 2): _STREAMS + _JOINED,
    ("docs/how-to/work-on-columns.md", 0): _STREAMS + _SALES,
    ("docs/how-to/work-on-columns.md", 1): _STREAMS + _FILES,
    ("docs/how-to/chaos.md", 2): "from holdfast.testing.chaos import Service\n",
    ("docs/how-to/evolve-state.md", 0): _STREAMS + _TOTALS,
    ("docs/how-to/test-a-function.md", 0): "",
    ("docs/how-to/storage.md", 0): "",
    ("docs/how-to/write-a-sink.md", 1): "",
    ("docs/how-to/write-a-source.md", 0): "",
    ("docs/how-to/write-a-state-backend.md", 0): "",
    ("docs/how-to/write-a-state-backend.md", 1): _IMAGES,
    ("docs/how-to/write-a-state-backend.md", 2): "",
}
#: Why a part is not run; its syntax is checked.
NOT_RUN = {
    ("docs/how-to/chaos.md", 0): "kills a job of the reader's; tests of chaos runs do the same to jobs of theirs",
    ("docs/how-to/chaos.md", 1): "runs a job of the reader's",
    ("docs/how-to/files.md", 0): "reads and writes HDFS",
    ("docs/how-to/sql.md", 0): "needs a database; tests of the sink run such programs",
    ("docs/how-to/kafka.md", 0): "needs brokers; tests of the connector run such programs",
    ("docs/how-to/read-a-savepoint.md", 0): "reads a savepoint of the reader's",
    ("docs/how-to/read-a-savepoint.md", 1): "goes on from the part before",
    ("docs/how-to/run-on-a-cluster.md", 0): "needs a cluster; the programs and commands of its page run on one",
    ("docs/how-to/spark-streams.md", 0): "needs Spark's connector for Kafka",
    ("docs/how-to/spark-streams.md", 1): "goes on from the part before; tests of event time run such programs",
    ("docs/how-to/spark-streams.md", 2): "needs a data source of the reader's",
    ("docs/how-to/spark-streams.md", 3): "needs Delta",
}


def parts() -> dict[tuple[str, int], Block]:
    found: dict[tuple[str, int], Block] = {}
    for page in pages():
        of_page = [block for block in blocks_of(page) if block.language == "py"]
        found |= {(str(page.relative_to(PROJECT)), place): block for place, block in enumerate(of_page)}
    return found


def test_every_part_is_run_or_there_is_a_reason() -> None:
    assert parts().keys() == PREPARED.keys() | NOT_RUN.keys()
    assert not PREPARED.keys() & NOT_RUN.keys()


@pytest.mark.parametrize("place", PREPARED, ids=str)
def test_parts_run(place: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They define functions and streams; nothing is executed, so no Spark is started."""
    monkeypatch.chdir(tmp_path)
    block = parts()[place]
    names: dict[str, object] = {"__name__": "part"}
    exec(compile(PREPARED[place], "prepared", "exec"), names)
    exec(compile(block.code, block.name, "exec", dont_inherit=True), names)


@pytest.mark.parametrize("block", [*all_blocks("py"), *all_blocks("python")], ids=lambda block: block.name)
def test_code_is_python(block: Block) -> None:
    ast.parse(block.code, filename=block.name)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_block_says_what_it_is(page: Path) -> None:
    assert {block.language for block in blocks_of(page)} <= LANGUAGES.keys()


@pytest.mark.parametrize("block", all_blocks("yaml"), ids=lambda block: block.name)
def test_settings_are_known(block: Block, tmp_path: Path) -> None:
    assert yaml.safe_load(block.code)
    (tmp_path / "config.yaml").write_text(block.code)
    known = {key for option in ALL for key in (option.key, *option.older)} | WITHOUT_EFFECT.keys()
    assert read_config_file(tmp_path / "config.yaml").to_dict().keys() <= known


@pytest.mark.parametrize("block", all_blocks("toml"), ids=lambda block: block.name)
def test_toml_is_toml(block: Block) -> None:
    assert tomllib.loads(block.code)
