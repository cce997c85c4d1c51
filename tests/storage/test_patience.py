from __future__ import annotations

import threading

import pytest

from holdfast.errors import StorageError
from holdfast.storage.patience import Patience


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Patience:
    monkeypatch.setattr(Patience, "SECONDS", 0.1)
    return Patience()


def test_an_answer_and_an_error_come_back(patience: Patience) -> None:
    assert patience.ask("count", lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        patience.ask("divide", lambda: 1 // 0)

    def time_out() -> None:
        raise TimeoutError("of the storage's own")

    with pytest.raises(TimeoutError, match="own"):
        patience.ask("wait", time_out)


def test_what_hangs_is_left_behind_and_nothing_is_asked_meanwhile(patience: Patience) -> None:
    release = threading.Event()
    with pytest.raises(StorageError, match=r"not answered for 0\.1 s; it was asked to wait"):
        patience.ask("wait", release.wait)
    with pytest.raises(StorageError, match="still does not answer; now it was asked to count"):
        patience.ask("count", lambda: 7)
    release.set()
    assert patience._running is not None
    patience._running.result(5)
    assert patience.ask("count", lambda: 7) == 7
