"""Options are documented once, and the reference page says the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from holdfast.common import options
from holdfast.common.options_reference import render

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


def test_the_reference_page_is_up_to_date():
    assert REFERENCE.read_text() == render(), "run 'make docs' and commit the result"


def test_the_module_prints_the_reference():
    command = [sys.executable, "-m", "holdfast.common.options_reference"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == (render(), "")


def test_no_spelling_means_two_options():
    spellings = [spelling for option in options.ALL for spelling in (option.key, *option.older)]
    assert len(spellings) == len(set(spellings)) == len(options.BY_SPELLING)
    assert all(spelling == spelling.lower() for spelling in spellings)
    assert not set(spellings) & set(options.WITHOUT_EFFECT)


def test_every_option_has_a_description_and_a_readable_default():
    for option in options.ALL:
        assert option.description.endswith(".")
        if option.default is not None:
            assert option.parse(option.kind.show(option.default)) == option.default


def test_every_option_is_in_the_reference_once():
    page = render()
    for option in options.ALL:
        assert page.count(f"\n| `{option.key}` |") == 1
