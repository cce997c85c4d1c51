"""What a standalone master's page says of another executor. The page was recorded from a master of Spark 4.3."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from holdfast.spark.standalone_master import StandaloneMaster, nothing_left

APPLICATION = "app-20261119210409-0000"
WORKER = {"cores": 1, "coresused": 1, "coresfree": 0, "memory": 1024, "memoryused": 1024, "memoryfree": 0}
#: Two workers of one core each, both with an executor of the application.
FULL: dict[str, Any] = {
    "url": "spark://127.0.0.1:44429",
    "workers": [
        {"id": "worker-20261119210359-127.0.0.1-39745", "state": "ALIVE", **WORKER},
        {"id": "worker-20261119210358-127.0.0.1-41183", "state": "ALIVE", **WORKER},
    ],
    "aliveworkers": 2,
    "cores": 2,
    "coresused": 2,
    "activeapps": [{"id": APPLICATION, "cores": 2, "memoryperexecutor": 1024, "state": "RUNNING"}],
    "completedapps": [],
    "status": "ALIVE",
}
ONE_CORE = {"spark.executor.cores": "1"}


def after_a_loss(**second_worker: Any) -> dict[str, Any]:
    """One executor is gone, and the worker that it was on has changed."""
    state = copy.deepcopy(FULL)
    state["workers"][1].update(second_worker)
    state["activeapps"][0]["cores"] = 1
    return state


def test_a_lost_worker_leaves_nothing() -> None:
    state = after_a_loss(state="DEAD", coresused=0, coresfree=1, memoryused=0, memoryfree=1024)
    reason = nothing_left(state, APPLICATION, 1, ONE_CORE)
    assert reason == "none of the 1 workers that are alive has 1 cores and 1024 MB free"


@pytest.mark.parametrize(
    ("worker", "conf", "left"),
    [
        ({"coresfree": 1, "memoryfree": 1024}, ONE_CORE, True),
        ({"coresfree": 1, "memoryfree": 1023}, ONE_CORE, False),
        ({"coresfree": 1, "memoryfree": 1024}, {}, True),
        ({"coresfree": 1, "memoryfree": 4096}, {"spark.executor.cores": "2"}, False),
        ({"coresfree": 1, "memoryfree": 1024}, {**ONE_CORE, "spark.cores.max": "2"}, True),
        ({"coresfree": 1, "memoryfree": 1024}, {**ONE_CORE, "spark.cores.max": "1"}, False),
    ],
)
def test_what_another_executor_needs(worker: dict[str, int], conf: dict[str, str], left: bool) -> None:
    assert (nothing_left(after_a_loss(**worker), APPLICATION, 1, conf) is None) == left


def test_an_executor_that_starts_is_waited_for() -> None:
    """Its cores are the application's, and the driver has not heard of it. So it is when the master has not heard of a
    loss.
    """
    assert nothing_left(FULL, APPLICATION, 1, ONE_CORE) is None
    assert nothing_left(FULL, APPLICATION, 2, ONE_CORE) is not None


def test_a_master_that_does_not_know_the_application() -> None:
    assert nothing_left(after_a_loss(), "app-of-somebody-else", 1, ONE_CORE) is None


@pytest.fixture
def served() -> Iterator[tuple[int, list[bytes]]]:
    """A port, and what is served there."""
    content: list[bytes] = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/json/" else 404)
            self.end_headers()
            self.wfile.write(content[0])

        def log_message(self, *_: Any) -> None:
            """Not into the output of tests."""

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.05])
        thread.start()
        yield server.server_port, content
        server.shutdown()
        thread.join()


def master_at(port: int, master: str = "spark://127.0.0.1:7077", **conf: str) -> StandaloneMaster | None:
    return StandaloneMaster.of(master, APPLICATION, {**ONE_CORE, "spark.master.ui.port": str(port), **conf})


@pytest.mark.parametrize("master", ["spark://127.0.0.1:7077", "spark://localhost:7077,127.0.0.1:7078"])
def test_the_page_of_the_master_is_asked(served: tuple[int, list[bytes]], master: str) -> None:
    port, content = served
    content.append(json.dumps(after_a_loss()).encode())
    asked = master_at(port, master)
    assert asked is not None
    assert "none of the 2 workers" in (asked.exhausted(1) or "")


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b"{}", b'{"activeapps": [{}]}'])
def test_another_service_at_the_port(served: tuple[int, list[bytes]], answer: bytes) -> None:
    port, content = served
    content.append(answer)
    asked = master_at(port)
    assert asked is not None and asked.exhausted(1) is None


def test_nobody_at_the_port() -> None:
    asked = master_at(9)
    began = time.monotonic()
    assert asked is not None and asked.exhausted(1) is None
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("master", ["yarn", "k8s://https://host:443", "local[2]", "local-cluster[2,1,1024]"])
def test_clusters_that_do_not_tell(master: str) -> None:
    assert master_at(8080, master) is None


def test_dynamic_allocation_decides_by_itself() -> None:
    assert master_at(8080, **{"spark.dynamicAllocation.enabled": "true"}) is None
