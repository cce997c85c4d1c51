"""Which modules of a program its pickled functions need, and where workers look for them."""

from __future__ import annotations

import os
import pickle
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from holdfast.datastream import StreamExecutionEnvironment
from holdfast.errors import JobExecutionError, ProgramError
from holdfast.runtime.program import load_program
from holdfast.spark.program_modules import lacking, modules_in, refuse_lacking
from holdfast.spark.program_paths import EXECUTOR_PATH, local_python_path, of_installation, program_paths
from holdfast.testing.in_process import InProcessEngine

SOURCE = """
def double(value):
    return 2 * value


class Adds:
    def __init__(self, number):
        self.number = number

    def __call__(self, value):
        return self.number + value
"""


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A module beside a program."""
    (tmp_path / "helper_of_test.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import helper_of_test  # type: ignore[import-not-found]

    yield helper_of_test
    sys.modules.pop("helper_of_test", None)


def found(value: Any) -> set[str]:
    return {module for module in modules_in(cloudpickle.dumps(value)) if module.startswith("helper")}


def test_functions_and_instances_of_a_module_need_it(helper: Any) -> None:
    assert found(helper.double) == found(helper.Adds(3)) == found([1, helper.Adds, helper.double]) == {helper.__name__}


def test_a_function_that_uses_a_module_needs_it(helper: Any) -> None:
    assert found(lambda value: helper.double(value)) == {helper.__name__}
    double = helper.double
    assert found(lambda value: double(value)) == {helper.__name__}
    assert found([lambda value: helper.double(value), lambda value: helper.Adds(value)]) == {helper.__name__}


def test_a_text_is_no_module(helper: Any) -> None:
    assert found([helper.__name__, "double", (helper.__name__,)]) == set()


def test_a_module_that_travels_by_value_is_not_needed(helper: Any) -> None:
    cloudpickle.register_pickle_by_value(helper)
    try:
        assert found(helper.double) == set()
    finally:
        cloudpickle.unregister_pickle_by_value(helper)


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_is_read(helper: Any, protocol: int) -> None:
    assert helper.__name__ in set(modules_in(pickle.dumps([helper.Adds(1), helper.double], protocol)))


def test_executors_tell_what_they_lack(helper: Any) -> None:
    assert lacking(["json.decoder", helper.__name__, "no_such.module", "json.no_such"]) == [
        "no_such.module",
        "json.no_such",
    ]


def test_modules_and_hosts_are_named() -> None:
    refuse_lacking({"one/1": [], "two/2": []})
    told = r"modules .*: helper, pkg\.sub \(missing on two/2, .*add_python_file.*--py-files"
    with pytest.raises(ProgramError, match=told):
        refuse_lacking({"one/1": [], "two/2": ["pkg.sub", "helper"]})


def test_workers_of_a_local_session_look_where_the_program_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "app"), "", *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "told"))
    monkeypatch.chdir(tmp_path)
    paths = program_paths()
    assert {str(tmp_path / "app"), str(tmp_path / "told"), str(tmp_path)} <= set(paths)
    assert not [path for path in paths if "site-packages" in path or path.endswith(("lib-dynload", ".zip"))]
    given = local_python_path({"spark.master": "local[2]", EXECUTOR_PATH: "/given"})
    assert given[EXECUTOR_PATH].split(os.pathsep) == ["/given", *paths]
    assert local_python_path({"spark.master": "spark://host:7077"}) == {}


def test_what_belongs_to_the_installation() -> None:
    assert of_installation(os.__file__) and of_installation(pytest.__file__)
    assert not of_installation(__file__)
    assert not of_installation(os.path.join(sys.prefix, "app", "main.py"))


def test_a_program_that_cannot_be_unpickled_says_what_is_missing(helper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = cloudpickle.dumps(helper.double)
    monkeypatch.delitem(sys.modules, helper.__name__)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "helper" not in path][1:])
    with pytest.raises(ProgramError, match=r"The function .* needs the module 'helper_of_test'.*add_python_file"):
        load_program(packed, "The function of operator 'double'")
    with pytest.raises(ProgramError, match=r"cannot be deserialised on .*UnpicklingError"):
        load_program(b"\x80\x05no pickle", "The program")


class BreaksInATask:
    """Can be pickled, and not be made again."""

    def __call__(self, value: int) -> int:
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return _refuse, ()


def _refuse() -> None:
    raise RuntimeError("another version")


def test_no_restart_mends_a_program_that_cannot_be_unpickled(in_process: InProcessEngine) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(10)
    env.from_collection([1, 2]).map(BreaksInATask()).name("broken").print()
    told = r"attempt 1 .*'broken' cannot be deserialised .*another version"
    with pytest.raises(JobExecutionError, match=told) as caught:
        env.execute("broken")
    assert isinstance(caught.value.__cause__, ProgramError)
    assert in_process.epochs == []
