"""Values of pickled types reach processes that cannot import their class."""

from __future__ import annotations

import pickle
import sys

import pytest

from holdfast.types import pickling


@pytest.fixture
def by_value(monkeypatch):
    """A pickler by value that marks what it was used for."""
    monkeypatch.setattr(pickling, "_by_value", None)
    seen = []
    pickling.use_by_value_pickler(lambda value: seen.append(value) or b"by value")
    return seen


def test_importable_values_are_pickled_by_reference(by_value):
    assert pickling.loads(pickling.dumps({"a": (1, None)})) == {"a": (1, None)}
    assert by_value == []


def test_values_of_the_main_module_travel_by_value(by_value, monkeypatch):
    class InMain:
        pass

    InMain.__module__, InMain.__qualname__ = "__main__", "InMain"
    monkeypatch.setattr(sys.modules["__main__"], "InMain", InMain, raising=False)
    assert b"__main__" in pickle.dumps(InMain())
    assert pickling.dumps(InMain()) == b"by value"


def test_what_pickle_refuses_travels_by_value(by_value):
    assert pickling.dumps(lambda: 1) == b"by value"


def test_without_a_pickler_by_value_the_error_is_pickles_own(monkeypatch):
    monkeypatch.setattr(pickling, "_by_value", None)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickling.dumps(lambda: 1)
