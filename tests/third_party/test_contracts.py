"""The shipped suites on what another package adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.state.store import StateBackend
from holdfast.testing.contracts import ExternalSinkContract, NativeImageContract


class TestAcmeBackend(NativeImageContract):
    @pytest.fixture
    def backend(self) -> StateBackend:
        from acme_streams.backend import AcmeBackend

        return AcmeBackend()


class TestShelfSink(ExternalSinkContract):
    @pytest.fixture
    def sink(self, tmp_path: Path) -> TwoPhaseCommitSink:
        from acme_streams.sink import ShelfSink

        self._sink = ShelfSink(tmp_path / "shelf")
        return self._sink

    def visible(self, tmp_path: Path) -> list[int]:
        return self._sink.published()
