"""What a program brings with it, on the engine of tests: without Spark, with a failure in the middle."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.errors import JobExecutionError, ProgramError
from holdfast.runtime.epoch import EpochSpec
from holdfast.runtime.requirements import packages_folder
from holdfast.testing.in_process import InProcessEngine
from tests.integration.files_of_program import write_files
from tests.integration.programs import Scripted, environment
from tests.job.counting import settings

MODULES = ("brought_module", "brought_package", "unpacked_module")


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Path]:
    yield write_files(tmp_path / "app")
    for name in MODULES:
        sys.modules.pop(name, None)


class Finds(MapFunction):
    """Adds the numbers that it finds in everything that was brought."""

    def open(self, runtime_context: RuntimeContext) -> None:
        import brought_module  # type: ignore[import-not-found]
        import brought_package  # type: ignore[import-not-found]
        import unpacked_module  # type: ignore[import-not-found]

        cache = runtime_context.get_distributed_cache()
        self.numbers = [brought_module.NUMBER, unpacked_module.NUMBER, brought_package.NUMBER]
        self.numbers.append(int(Path(cache.get_file("rates")).read_text()))
        self.numbers.append(int(Path(cache.get_file("folder"), "inner", "number.txt").read_text()))

    def map(self, value: int) -> tuple[int, int]:
        # Relative paths are found in every call, not in open() alone.
        return value, sum(self.numbers) + int(Path("unpacked/data.txt").read_text())


def program(app: Path, tmp_path: Path, **changes: str) -> StreamExecutionEnvironment:
    env = environment(**settings(tmp_path, **changes))
    env.add_python_file(str(app / "brought_module.py"))
    env.add_python_archive(str(app / "brought.zip"), "unpacked")
    env.set_python_requirements(str(app / "requirements.txt"), str(app / "wheels"))
    env.register_cached_file(f"file://{app / 'rates.txt'}", "rates")
    env.register_cached_file(str(app / "folder"), "folder")
    return env


def rows_of(env: StreamExecutionEnvironment, epochs: list[list[int]]) -> list[Any]:
    rows = env.from_source(Scripted(epochs), WatermarkStrategy.no_watermarks(), "script", Types.LONG())
    return sorted(rows.map(Finds()).execute_and_collect())


def test_functions_find_everything_before_and_after_a_failure(
    in_process: InProcessEngine, app: Path, tmp_path: Path
) -> None:
    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, 3):
            raise OSError("the executor is gone")

    in_process.before_epoch = fail
    before = os.getcwd(), list(sys.path)
    total = 11 + 12 + 13 + 14 + 15 + 16
    assert rows_of(program(app, tmp_path), [[n] for n in range(5)]) == [(n, total) for n in range(5)]
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}
    assert (os.getcwd(), sys.path) == before, "the process of the test is as it was"
    folder = packages_folder(str(tmp_path / "local"))
    assert [path.name for path in folder.rglob("brought_package.py")] == ["brought_package.py"]


def test_a_file_that_nobody_registered_is_told_by_name(in_process: InProcessEngine, app: Path, tmp_path: Path) -> None:
    env = environment()
    env.register_cached_file(str(app / "rates.txt"), "rates")

    class Looks(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_distributed_cache().get_file("prices")

        def map(self, value: int) -> int:
            return value

    with pytest.raises(JobExecutionError, match="registered under the name 'prices'; there are: 'rates'"):
        list(env.from_collection([1]).map(Looks()).execute_and_collect())


@pytest.mark.parametrize(
    ("add", "told"),
    [
        (lambda env: env.add_python_archive("no_such.zip"), "'no_such.zip' of add_python_archive.*does not exist"),
        (lambda env: env.add_python_archive("hdfs://host/a.zip"), "no Spark to read it with"),
        (lambda env: env.register_cached_file("no_such.csv", "rates"), "'no_such.csv' of register_cached_file"),
        (lambda env: env.set_python_requirements("no_such.txt"), "'no_such.txt' of set_python_requirements"),
        (lambda env: env.add_python_archive(__file__), "no archive that can be unpacked"),
    ],
)
def test_what_is_not_there_is_told_by_name(in_process: InProcessEngine, add: Any, told: str) -> None:
    env = environment()
    add(env)
    env.from_collection([1]).print()
    with pytest.raises((ProgramError, JobExecutionError), match=told):
        env.execute()


def test_jars_and_another_python_change_nothing_here(in_process: InProcessEngine) -> None:
    env = environment()
    env.add_jars("file:///flink-connector.jar")
    env.add_classpaths("file:///classes.jar")
    env.set_python_executable("/opt/python")
    assert list(env.from_collection([1]).map(lambda one: sys.executable).execute_and_collect()) == [sys.executable]
