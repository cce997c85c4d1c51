"""Spark's physical plan as nodes, read from the text that ``explain()`` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LINE = re.compile(r"(?P<indent>(?:[ :]  )*(?:[+:]- )?)(?:\*\(\d+\) )?(?P<text>\S.*)")
_TITLE = "== "


class PlanNode(NamedTuple):
    depth: int
    text: str

    @property
    def name(self) -> str:
        found = re.match(r"\w+", self.text)
        return found[0] if found else self.text


def nodes_of(text: str) -> list[PlanNode]:
    """Each node before its children, the first of these first."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_TITLE)]
    nodes: list[PlanNode] = []
    for line in lines:
        found = _LINE.match(line)
        # What begins a line behind the first and is nobody's child goes on with a text in the program that has lines.
        if found and (found["indent"] or not nodes):
            nodes.append(PlanNode(len(found["indent"]), found["text"]))
    return nodes


def above(nodes: Sequence[PlanNode], place: int) -> list[int]:
    """The places of the nodes that the rows of one go through, from it up to the root."""
    path, depth = [], nodes[place].depth
    for number in range(place - 1, -1, -1):
        if nodes[number].depth < depth:
            depth = nodes[number].depth
            path.append(number)
    return path


def without(nodes: Sequence[PlanNode], names: frozenset[str]) -> Iterator[PlanNode]:
    """All nodes but those of these names and what is below them."""
    left_out: int | None = None
    for node in nodes:
        if left_out is not None and node.depth > left_out:
            continue
        left_out = node.depth if node.name in names else None
        if left_out is None:
            yield node
