"""A thousand damaged files, over all stories, on all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path

from tests.hostile.cases import Stage, Story, stories
from tests.hostile.outcome import Outcome


def damage(seed: int, cases: int, root: Path) -> Iterator[Outcome]:
    """``cases`` of them, over all stories. Processes are made anew, so that each is one that can be forked."""
    every = stories()
    whole = sum(story.cases for story in every)
    ends = [round(cases * sum(story.cases for story in every[: place + 1]) / whole) for place in range(len(every))]
    work = [
        (story, end - begin, seed, root / f"story-{place}")
        for place, (story, begin, end) in enumerate(zip(every, [0, *ends], ends, strict=False))
        if end > begin
    ]
    with multiprocessing.get_context("spawn").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        for outcomes in pool.imap_unordered(_story, work):
            yield from outcomes


def _story(given: tuple[Story, int, int, Path]) -> list[Outcome]:
    story, cases, seed, root = given
    return list(Stage(story, root).cases(cases, seed))
