"""Failpoints act once, in the right process, and leave the proof."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import failpoints
from holdfast.errors import ConfigurationError
from holdfast.failpoints import FailpointTriggered, failpoint


@pytest.fixture(autouse=True)
def switched_off() -> Iterator[None]:
    yield
    failpoints.install(None)


def specification(directory: Path, *triggers: dict[str, Any]) -> Path:
    path = directory / "spec.json"
    path.write_text(json.dumps({"directory": str(directory), "triggers": list(triggers)}))
    return path


def marker(directory: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((directory / name).read_text())
    return content


def run_python(code: str, spec: Path) -> subprocess.Popen[bytes]:
    source = Path(failpoints.__file__).parents[1]
    environment = {**os.environ, failpoints.ENVIRONMENT_VARIABLE: str(spec), "PYTHONPATH": str(source)}
    return subprocess.Popen(
        [sys.executable, "-c", f"from holdfast.failpoints import failpoint\n{code}"], env=environment
    )


def test_nothing_happens_without_a_specification() -> None:
    failpoint("anything", epoch=1)


def test_raises_at_the_matching_facts_only_and_once(tmp_path: Path) -> None:
    spec = specification(tmp_path, {"id": "t", "point": "p", "when": {"epoch": 3, "subtask": 1}, "action": "raise"})
    failpoints.install(spec)
    failpoint("p", epoch=3, subtask=0)
    failpoint("q", epoch=3, subtask=1)
    failpoint("p", epoch=3)
    assert not (tmp_path / "t.1").exists()
    with pytest.raises(FailpointTriggered, match="'epoch': 3"):
        failpoint("p", epoch=3, subtask=1, attempt=0)
    assert marker(tmp_path, "t.1") == {
        "pid": os.getpid(),
        "point": "p",
        "facts": {"epoch": 3, "subtask": 1, "attempt": 0},
    }
    failpoint("p", epoch=3, subtask=1)


def test_the_kth_hit_counts(tmp_path: Path) -> None:
    failpoints.install(specification(tmp_path, {"id": "t", "point": "p", "hit": 3, "action": "raise"}))
    failpoint("p")
    failpoint("p")
    with pytest.raises(FailpointTriggered):
        failpoint("p")
    failpoint("p")
    assert sorted(path.name for path in tmp_path.glob("t.*")) == ["t.1", "t.2", "t.3"]


def test_raises_an_operating_system_error(tmp_path: Path) -> None:
    failpoints.install(specification(tmp_path, {"id": "full", "point": "p", "action": "raise:ENOSPC"}))
    with pytest.raises(OSError) as caught:
        failpoint("p")
    assert caught.value.errno == errno.ENOSPC


def test_two_triggers_of_one_point_act_in_order(tmp_path: Path) -> None:
    seen = {"id": "seen", "point": "p", "action": "touch"}
    failpoints.install(specification(tmp_path, seen, {"id": "then", "point": "p", "action": "raise"}))
    with pytest.raises(FailpointTriggered):
        failpoint("p")
    assert (tmp_path / "seen.1").exists()


def test_sleeps(tmp_path: Path) -> None:
    failpoints.install(specification(tmp_path, {"id": "t", "point": "p", "action": "sleep:80"}))
    before = time.monotonic()
    failpoint("p")
    assert time.monotonic() - before >= 0.08


def test_holds_until_released(tmp_path: Path) -> None:
    failpoints.install(specification(tmp_path, {"id": "t", "point": "p", "action": "hold:30000"}))
    thread = threading.Thread(target=failpoint, args=("p",), daemon=True)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive() and (tmp_path / "t.1").exists()
    (tmp_path / "t.release").touch()
    thread.join(10)
    assert not thread.is_alive()


def test_stops_until_somebody_continues_it(tmp_path: Path) -> None:
    child = run_python("failpoint('p')", specification(tmp_path, {"id": "t", "point": "p", "action": "stop"}))
    assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
    child.send_signal(signal.SIGCONT)
    assert child.wait(30) == 0


def test_kills_one_of_many_processes(tmp_path: Path) -> None:
    spec = specification(tmp_path, {"id": "t", "point": "p", "hit": 4, "action": "kill"})
    children = [run_python("failpoint('p', child=True)\nfailpoint('p', child=True)", spec) for _ in range(4)]
    codes = [child.wait(30) for child in children]
    assert sorted(codes) == [-signal.SIGKILL, 0, 0, 0]
    assert marker(tmp_path, "t.4")["pid"] == children[codes.index(-signal.SIGKILL)].pid


def test_kills_the_nearest_jvm_above(tmp_path: Path) -> None:
    # Any process whose command name is java will do.
    fake = tmp_path / "java"
    fake.symlink_to(os.path.realpath("/bin/sleep"))
    spec = specification(tmp_path, {"id": "t", "point": "p", "action": "kill-parent"})
    source = Path(failpoints.__file__).parents[1]
    code = f"import sys; sys.path.insert(0, {str(source)!r}); from holdfast.failpoints import failpoint; failpoint('p')"
    # The shell starts the worker, then becomes the process named java.
    script = f'"{sys.executable}" -c "$CODE" & echo $! > {tmp_path}/worker; exec {fake} 60'
    environment = {
        **os.environ,
        failpoints.ENVIRONMENT_VARIABLE: str(spec),
        "CODE": f"import time; time.sleep(1); {code}",
    }
    jvm = subprocess.Popen(["bash", "-c", script], env=environment)
    assert jvm.wait(30) == -signal.SIGKILL
    assert marker(tmp_path, "t.1")["pid"] == int((tmp_path / "worker").read_text())


def test_kill_parent_without_a_jvm_says_so(tmp_path: Path) -> None:
    failpoints.install(specification(tmp_path, {"id": "t", "point": "p", "action": "kill-parent"}))
    with pytest.raises(ConfigurationError, match="no JVM"):
        failpoint("p")


@pytest.mark.parametrize("action", ["explode", "sleep", "sleep:soon", "raise:ENOTHING", "kill:9"])
def test_unknown_actions_are_refused(tmp_path: Path, action: str) -> None:
    with pytest.raises(ConfigurationError, match="expected one of"):
        failpoints.install(specification(tmp_path, {"id": "t", "point": "p", "action": action}))


@pytest.mark.parametrize("content", ["{", "{}", '{"directory": "/tmp", "triggers": [{"id": "x"}]}'])
def test_a_malformed_specification_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "spec.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=str(path)):
        failpoints.install(path)
