"""What tests of whole operators share."""

from __future__ import annotations

import pytest

from holdfast.state import backends
from tests.state.stores import LMDB_IMAGE, entry_point_of_lmdb_image


@pytest.fixture(autouse=True)
def _lmdb_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends._BUILT_IN, LMDB_IMAGE, entry_point_of_lmdb_image())
