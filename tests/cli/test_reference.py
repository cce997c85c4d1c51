"""The reference page of the command line tells every verb and every option."""

from __future__ import annotations

import re
from pathlib import Path

import typer
from typer.main import get_command

from holdfast.cli.app import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md"


def test_every_verb_and_option_is_on_the_page():
    page = PAGE.read_text()
    shared = page[: page.index("\n## run")]
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    command = get_command(app)
    context = typer.Context(command)
    verbs = command.list_commands(context)
    assert set(verbs) == set(sections) - {"Options"}
    for verb in verbs:
        for parameter in command.get_command(context, verb).params:
            for option in (option for option in parameter.opts if option.startswith("-")):
                assert f"`{option}" in sections[verb] + shared, f"{verb} {option}"
