"""What the documentation shows works: programs run and print what it says, links lead somewhere."""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import PROJECT, blocks_of, pages, programs, translated

_LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")
#: A place within a page, of this one where the page is left out.
_PLACE = re.compile(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("block", programs(), ids=lambda block: block.name)
def test_programs_run(block, host, tmp_path):
    done = host.run(translated(block.code), tmp_path)
    assert done.code == 0, f"{block.name} ended with {done.code}\n{done.stdout}\n{done.stderr}"
    if block.output is not None:
        assert sorted(done.stdout.splitlines()) == sorted(block.output), done.stderr


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page):
    missing = [link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_into_pages_meet_a_heading(page):
    for link, place in _PLACE.findall(page.read_text()):
        target = page.parent / link if link else page
        headings = map(_place_of, _HEADING.findall(target.read_text()))
        assert place in headings, f"{target} has no heading for #{place}"


def _place_of(heading):
    """As GitHub names the places of headings."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_readme_has_a_program_with_its_output():
    assert any(block.output for block in blocks_of(PROJECT / "README.md") if block.language == "python")


def test_the_index_has_every_page():
    docs = PROJECT / "docs"
    indexes = [docs / "README.md", docs / "decisions" / "README.md"]
    linked = {(index.parent / link).resolve() for index in indexes for link in _LINK.findall(index.read_text())}
    assert set(docs.rglob("*.md")) - {docs / "README.md"} <= linked
