"""The examples that PyFlink's users know are programs for PyFlink but for the imports, and give the same rows here: as
streams and as batches, at several parallelisms, with checkpoints and a failure in the middle.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import pytest
import yaml

from holdfast.runtime.epoch import EpochSpec
from holdfast.testing.in_process import InProcessEngine
from tests.job.counting import settings
from tests.pyflink.answers import names

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "pyflink"

WORDS = {"the": 7, "is": 4, "on": 3, "rain": 2, "roof": 2, "house": 2, "hill": 2, "and": 1, "a": 1, "in": 1}
_MORE_LOGINS = [
    """(1, '{"name": "Ann", "logins": 13, "home": {"country": "Chile"}}')""",
    """(2, '{"name": "Bob", "logins": 4, "home": {"country": "Kenya"}}')""",
    """(3, '{"name": "Cleo", "logins": 8, "home": {"country": "Japan"}}')""",
    """(4, '{"name": "Dan", "logins": 21, "home": {"country": "Kenya"}}')""",
]

#: What each program gives as a stream: lines, in any order.
STREAMED: dict[str, list[str]] = {
    "word_count": [f"({word},{n})" for word, count in WORDS.items() for n in range(1, count + 1)],
    "basic_operations": [
        *_MORE_LOGINS,
        _MORE_LOGINS[0],
        *("('Chile', 12)", "('Kenya', 3)", "('Japan', 7)", "('Kenya', 23)"),
    ],
    "keyed_average": ["(1, 4.0)", "(1, 5.5)"],
    "state_access": [
        *("('Alice', 110.0)", "('Alice', 130.0)", "('Alice', 143.0)"),
        *("('Bob', 30.25)", "('Bob', 83.75)", "('Bob', 87.0)", "('Bob', 103.0)"),
    ],
    "event_time_timer": [
        *("('Alice', 10000, 130)", "('Alice', 20000, 13)", "('Alice', 40000, 20)"),
        *("('Bob', 10000, 83)", "('Bob', 20000, 19)"),
    ],
    "tumbling_count_window": ["(hi,9)", "(hello,12)"],
    "tumbling_time_window": ["(hi,0,5,4)", "(hi,5,10,3)", "(hi,15,20,1)"],
    "sliding_time_window": [
        *("(hi,-2,3,2)", "(hi,0,5,4)", "(hi,2,7,4)", "(hi,4,9,3)"),
        *("(hi,6,11,2)", "(hi,8,13,2)", "(hi,12,17,1)", "(hi,14,19,1)"),
    ],
    "session_window": ["(hi,1,14,6)", "(hi,15,20,1)"],
    "session_window_with_dynamic_gap": ["(hi,1,8,4)", "(hi,9,30,3)"],
    "side_output": ["2", "4", "aside-1", "aside-3", "aside-5"],
    "connected_streams": ["(tea,6)", "(tea,15)", "(tea,3)", "(milk,2)", "(milk,8)"],
    "co_map": ["a number: 2", "a number: 3", "a number: 4", "a word: OX", "a word: EMU", "a word: OWL"],
    "broadcast_state": ["('red', 'square then circle')", "('blue', 'square then circle')"],
}
#: Where a batch gives something else: the last result of each key only.
BATCHED = {
    **STREAMED,
    "word_count": [f"({word},{count})" for word, count in WORDS.items()],
    "basic_operations": [*_MORE_LOGINS, _MORE_LOGINS[0], "('Chile', 12)", "('Kenya', 23)", "('Japan', 7)"],
}


def run(monkeypatch: pytest.MonkeyPatch, name: str, output: Path, configured: dict[str, str]) -> list[str]:
    """The lines that a program writes. It is run as it is; what differs between runs is told by a configuration."""
    folder = output.with_name("conf")
    folder.mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(configured))
    monkeypatch.setenv("HOLDFAST_CONF_DIR", str(folder))
    arguments = ["--output", str(output)] if name == "word_count" else [str(output)]
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    files = [path for path in output.rglob("*") if path.is_file()]
    assert not any(path.name.startswith(".") for path in files)
    return [line for path in files if "_holdfast_staging" not in path.parts for line in path.read_text().splitlines()]


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("name", STREAMED)
def test_an_example_gives_its_rows(
    in_process: InProcessEngine,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    mode: str,
    parallelism: int,
) -> None:
    """Two rows in an epoch; the second one is lost."""

    def fail(spec: EpochSpec) -> None:
        if (spec.attempt, spec.epoch) == (1, 2):
            raise OSError("the executor is gone")

    in_process.after_epoch = fail
    given = settings(tmp_path, **{"holdfast.epoch.max-rows": "2", "execution.runtime-mode": mode})
    del given["holdfast.job-id"]
    lines = run(monkeypatch, name, tmp_path / "out", {**given, "parallelism.default": str(parallelism)})
    assert sorted(lines) == sorted((STREAMED if mode == "STREAMING" else BATCHED)[name])
    assert {attempt for attempt, _ in in_process.epochs} == {1, 2}


#: They talk to a broker: tests/integration/kafka runs them.
WITH_KAFKA = {path.stem for path in EXAMPLES.glob("kafka_*.py")}


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(STREAMED) | WITH_KAFKA


@pytest.mark.parametrize("name", [*STREAMED, *sorted(WITH_KAFKA)])
def test_an_example_uses_names_of_pyflink_only(name: str) -> None:
    """With its imports changed it is a program for PyFlink: nothing is imported from here that is not there."""
    exports = names()["exports"]
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text())
    modules = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in modules if (node.module or "").startswith("holdfast.")]
    assert ours
    for node in ours:
        module = str(node.module).removeprefix("holdfast.")
        assert {alias.name for alias in node.names} <= set(exports[module])
