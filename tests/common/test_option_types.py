"""Reading the text of options."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.common.option_types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    MEMORY,
    Option,
    choice,
    format_duration,
    format_memory,
    parse_duration,
    parse_memory,
)
from holdfast.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("10 min", 600_000),
        ("5s", 5_000),
        ("500 ms", 500),
        ("500", 500),
        ("2 H", 7_200_000),
        ("1 day", 86_400_000),
        ("3 minutes", 180_000),
        ("1500 us", 1),
        ("2000000 ns", 2),
        ("0", 0),
    ],
)
def test_durations(text, millis):
    assert parse_duration(text) == millis


@pytest.mark.parametrize(
    ("text", "size"),
    [("5 mb", 5 << 20), ("20kb", 20 << 10), ("7", 7), ("1 G", 1 << 30), ("3 bytes", 3), ("2 tebibytes", 2 << 40)],
)
def test_memory_sizes(text, size):
    assert parse_memory(text) == size


@given(st.integers(0, 2**50))
def test_what_is_shown_reads_as_the_same(number):
    assert parse_duration(format_duration(number)) == number
    assert parse_memory(format_memory(number)) == number


@pytest.mark.parametrize("text", ["", "ten", "-5 s", "5 parsecs", "1.5 s", "5 s 3 ms"])
def test_other_text_is_no_duration(text):
    with pytest.raises(
        ConfigurationError, match=r"The option 'some.key' is '.*'; expected a duration such as '10 min'"
    ):
        Option("some.key", DURATION, 0, "").parse(text)


def test_errors_name_the_key_as_it_was_written():
    with pytest.raises(ConfigurationError) as raised:
        Option("a.new", BOOLEAN, False, "", older=("a.old",)).parse("yes", spelled="A.Old")
    assert str(raised.value) == "The option 'A.Old' is 'yes'; expected 'true' or 'false'"


@pytest.mark.parametrize(("text", "expected"), [("0", "at least 1"), ("11", "at most 10")])
def test_bounds(text, expected):
    with pytest.raises(ConfigurationError, match=f"The option 'n' is '{text}'; expected a value of {expected}"):
        Option("n", INTEGER, 1, "", least=1, most=10).parse(text)


def test_bounds_are_shown_in_the_option_s_unit():
    with pytest.raises(ConfigurationError, match="expected a value of at least 1 kb"):
        Option("n", MEMORY, 1, "", least=1024).parse("10")


def test_choices_ignore_case_and_underscores():
    option = Option("c", choice({"fixed-delay": 1, "fixeddelay": 1, "NO_CLAIM": 2}), None, "")
    assert [option.parse(text) for text in ("FIXED-DELAY", "fixed_delay", "FixedDelay", "no_claim", "No-Claim")] == [
        1,
        1,
        1,
        2,
        2,
    ]
    assert option.kind.show(1) == "fixed-delay"
    with pytest.raises(
        ConfigurationError, match="The option 'c' is 'x'; expected one of fixed-delay, fixeddelay, NO_CLAIM"
    ):
        option.parse("x")
