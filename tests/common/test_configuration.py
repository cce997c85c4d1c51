"""Configuration behaves as PyFlink's, and options are found under every spelling."""

from __future__ import annotations

import copy

import pytest

from holdfast.common import options
from holdfast.common.configuration import Configuration
from holdfast.errors import ConfigurationError


def test_typed_getters_and_setters():
    configuration = Configuration()
    configuration.set_string("s", "text").set_integer("i", 3).set_boolean("b", True).set_float("f", 0.5)
    configuration.set_bytearray("y", bytearray(b"\x00\xff"))
    assert configuration.get_string("s", "") == "text"
    assert configuration.get_integer("i", 0) == 3
    assert configuration.get_boolean("b", False) is True
    assert configuration.get_float("f", 0.0) == 0.5
    assert configuration.get_bytearray("y", bytearray()) == bytearray(b"\x00\xff")
    assert configuration.to_dict() == {"s": "text", "i": "3", "b": "true", "f": "0.5", "y": "00ff"}


def test_defaults_and_keys():
    configuration = Configuration.from_dict({"a": 1, "flag": True})
    assert configuration.get_integer("missing", 7) == 7
    assert configuration.get_string("missing", "x") == "x"
    assert configuration.get_bytearray("missing", bytearray(b"d")) == b"d"
    assert configuration.key_set() == {"a", "flag"}
    assert configuration.contains_key("a") and not configuration.contains_key("b")
    assert configuration.get_boolean("flag", False)
    assert configuration.remove_config("a") is True
    assert configuration.remove_config("a") is False


def test_text_of_another_type_is_an_error():
    with pytest.raises(ConfigurationError, match="The option 'i' is 'three'; expected a whole number"):
        Configuration.from_dict({"i": "three"}).get_integer("i", 0)


def test_copies_are_independent_and_equal():
    original = Configuration.from_dict({"a": "1"})
    for same in (Configuration(original), copy.deepcopy(original)):
        assert same == original and hash(same) == hash(original)
        same.set_string("a", "2")
        assert same != original


def test_add_all_with_prefix():
    configuration = Configuration.from_dict({"a": "1"})
    configuration.add_all(Configuration.from_dict({"a": "2"})).add_all(Configuration.from_dict({"b": "3"}), "p.")
    target: dict[str, str] = {}
    configuration.add_all_to_dict(target)
    assert target == {"a": "2", "p.b": "3"}
    assert str(configuration) == "{a=2, p.b=3}"


@pytest.mark.parametrize("key", ["state.backend.type", "state.backend", "STATE.BACKEND", "State.Backend.Type"])
def test_an_option_is_found_under_every_spelling(key):
    configuration = Configuration.from_dict({key: "heap"})
    assert configuration.get(options.BACKEND) == "heap"
    assert configuration.contains(options.BACKEND)
    configuration.remove(options.BACKEND)
    assert configuration.key_set() == set()


def test_the_key_itself_goes_before_its_older_spellings():
    configuration = Configuration.from_dict({"state.backend": "heap", "state.backend.type": "lmdb"})
    assert configuration.get(options.BACKEND) == "lmdb"


def test_what_is_layered_over_wins_in_any_spelling():
    program = Configuration.from_dict({"STATE.BACKEND": "heap", "own": "1"})
    file = Configuration.from_dict({"state.backend.type": "rocksdb", "own": "2", "parallelism.default": "4"})
    merged = program.layered_over(file)
    assert merged.get(options.BACKEND) == "heap"
    assert merged.get(options.PARALLELISM) == 4
    assert merged.get_string("own", "") == "1"
    assert file.get(options.BACKEND) == "rocksdb"
