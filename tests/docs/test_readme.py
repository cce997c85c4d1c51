"""What the documentation shows works: programs run and print what it says, parts parse, links lead somewhere."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs.blocks import PROJECT, all_blocks, blocks_of, pages

_KNOWN_LANGUAGES = {"python", "py", "yaml", "sh", "sql", "text", "toml"}
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")


@pytest.mark.slow
@pytest.mark.parametrize("block", all_blocks("python"), ids=lambda block: block.name)
def test_programs_run(block, host, tmp_path):
    done = host.run(block.code, tmp_path)
    assert done.code == 0, f"{block.name} ended with {done.code}\n{done.stdout}\n{done.stderr}"
    if block.output is not None:
        assert sorted(done.stdout.splitlines()) == sorted(block.output), done.stderr


@pytest.mark.parametrize("block", [*all_blocks("py"), *all_blocks("python")], ids=lambda block: block.name)
def test_code_is_python(block):
    ast.parse(block.code, filename=block.name)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_block_says_what_it_is(page):
    assert {block.language for block in blocks_of(page)} <= _KNOWN_LANGUAGES


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page):
    missing = [link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing


def test_the_readme_has_a_program_with_its_output():
    assert any(block.output for block in blocks_of(PROJECT / "README.md") if block.language == "python")
