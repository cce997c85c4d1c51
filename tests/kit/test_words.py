"""What the check of words finds, and leaves alone."""

from __future__ import annotations

import pytest

from tests.kit.words import dangling_comments, dangling_docstrings, home_made_words, newest_changes


@pytest.mark.parametrize(
    "line",
    [
        "windows by the clock",
        "a sum would go around",
        "sums that go around",
        "goes around 64",
        "the JVM's second compiler",
        "functions are told of it",
        "a source that hears of checkpoints",
        "dealt out in turn",
        "a batch that goes through the loop",
        "two windows become one",
        "rows that stand for several",
        "windows by the\n    # clock",
        "#: windows by the\n#: clock",
    ],
)
def test_home_made_words_are_found(line: str) -> None:
    ((number, why),) = home_made_words(f"first\n{line}")
    assert number == 2 and "a word of our own" in why


def test_of_a_changelog_the_newest_part_is_read() -> None:
    text = "# Changelog\n\n## 2, not released yet\n\n- by the clock\n\n## 1\n\n- by the clock\n"
    assert [line for line, _ in home_made_words(newest_changes(text))] == [5]


def test_other_words_are_left_alone() -> None:
    assert not list(home_made_words("processing time; a sum overflows; go around the corner"))


@pytest.mark.parametrize("begin", ["Of", "Those", "That", "The same"])
def test_docstrings_that_need_the_line_above_are_found(begin: str) -> None:
    assert [line for line, _ in dangling_docstrings(f'def f():\n    """{begin} rows."""')] == [1]


@pytest.mark.parametrize("begin", ["Given to", "For", "Picklable.", "Its", "See"])
def test_a_class_says_what_it_is(begin: str) -> None:
    assert [line for line, _ in dangling_docstrings(f'class A:\n    """{begin} rows."""')] == [1]
    assert not list(dangling_docstrings(f'def f():\n    """{begin} rows."""'))


@pytest.mark.parametrize("begin", ["By", "Without", "With", "Its", "These", "Around", "Also"])
def test_a_function_of_the_sources_says_what_it_does_or_gives(begin: str) -> None:
    source = f'def f():\n    """{begin} rows."""'
    assert [line for line, _ in dangling_docstrings(source, of_functions=True)] == [1]
    assert not list(dangling_docstrings(source))
    assert not list(dangling_docstrings(f'"""{begin} rows."""', of_functions=True))


def test_comments_on_attributes_lean_on_their_own_attribute_only() -> None:
    (found,) = dangling_comments("#: The rows.\na = 1\n#: The same, sorted.\nb = 2\n#: Of a key.\nc = 3\n")
    assert found[0] == 3


def test_docstrings_that_stand_alone_are_left_alone() -> None:
    assert not list(dangling_docstrings('"""Rows of a job."""\nclass A:\n    """Offers rows."""'))
