"""What removes expired state that nobody reads: the walk over it at the end of epochs, and full images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from holdfast.state.layout import LOCAL_PREFIX
from holdfast.state.ttl_cleanup import entries_to_check
from holdfast.testing.contracts.keyed_subtask import MAX_PARALLELISM
from holdfast.testing.contracts.stores import LOWEST
from tests.state.backend_under_test import Subtask
from tests.state.expiring import KINDS, TTL, builder, content, descriptor, put, restored, snapshot
from tests.state.snapshot_memory import MemoryFiles, chain
from tests.state.stores import ENTRY_BACKENDS

BACKGROUND = builder().build()
WINDOW = "bigint"


@pytest.fixture(params=ENTRY_BACKENDS)
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subtask]:
    subtask = Subtask(request.param, tmp_path / "source")
    yield subtask
    subtask.close()


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


def stored(task: Subtask) -> int:
    """Entries of states in the store."""
    return sum(1 for _ in task.store.scan(LOWEST, LOCAL_PREFIX))


def fill(task: Subtask, kind: str, keys: range, config: Any = BACKGROUND) -> Any:
    state = task.backend.state(descriptor(kind, config), WINDOW)
    for key in keys:
        task.at(key)
        put(state, kind, key)
    return state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cached", [True, False])
def test_keys_that_nobody_asks_for_again_go_away(task: Subtask, kind: str, cached: bool) -> None:
    fill(task, kind, range(50))
    task.next_epoch(cached)
    task.advance(TTL // 2)
    state = fill(task, kind, range(50, 60))
    state.set_current_namespace(3)
    fill(task, kind, range(20))
    task.next_epoch(cached)
    state = task.backend.state(descriptor(kind, BACKGROUND), WINDOW)
    assert stored(task) == 80
    task.advance(TTL // 2)
    task.next_epoch(cached)
    assert stored(task) == 30
    state = task.backend.state(descriptor(kind, BACKGROUND), WINDOW)
    state.set_current_namespace(None)
    for key in range(70):
        task.at(key)
        assert (content(state, kind) is not None) == (50 <= key < 60)


def test_they_go_from_the_caches_too(task: Subtask) -> None:
    states = [fill(task, kind, range(50)) for kind in KINDS]
    task.next_epoch(cached=True)
    task.advance(TTL)
    assert all(state.cached_entries() >= 50 for state in states) and len(task.backend._keys) == 50
    task.next_epoch(cached=True)
    assert [state.cached_entries() for state in states] == [0] * len(KINDS) and len(task.backend._keys) == 0


def test_a_failed_epoch_removes_nothing(task: Subtask) -> None:
    fill(task, "value", range(50))
    task.next_epoch()
    task.backend.state(descriptor("value", BACKGROUND), WINDOW)
    task.advance(TTL)
    task.backend.end_epoch()
    assert stored(task) == 0
    task.restart()
    assert stored(task) == 50


def test_the_walk_has_a_length_and_goes_on_in_another_process(task: Subtask) -> None:
    fill(task, "value", range(6000))
    task.next_epoch()
    left = [stored(task)]
    for _ in range(8):
        task.backend.state(descriptor("value", BACKGROUND), WINDOW)
        task.advance(TTL)
        task.next_epoch()
        left.append(stored(task))
    removed = [before - after for before, after in pairwise(left) if before]
    assert left[-1] == 0
    assert all(700 < one <= 1000 for one in removed[:-1]), "a look into a key group counts as four"


def test_the_walk_is_faster_than_a_state_grows(task: Subtask) -> None:
    sizes = []
    for epoch in range(12):
        fill(task, "value", range(3000 * epoch, 3000 * (epoch + 1)))
        task.advance(TTL)
        task.next_epoch(cached=True)
        sizes.append(stored(task))
    assert max(sizes) < 3 * 3000


def test_a_walk_begins_some_time_after_the_one_before(task: Subtask) -> None:
    fill(task, "value", range(10))
    task.next_epoch(cached=True)
    task.advance(TTL // 4 - 1)
    fill(task, "value", range(10, 20))
    task.advance(TTL // 4 * 3 + 1)
    task.next_epoch(cached=True)
    assert stored(task) == 10
    task.advance(TTL // 4 - 1)
    task.next_epoch(cached=True)
    assert stored(task) == 10, "these have expired, for a short time"
    task.advance(1)
    task.next_epoch(cached=True)
    assert stored(task) == 0


def test_removals_are_in_deltas(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, "value", range(20))
    full = snapshot(task, files)
    base = task.commit().epoch
    task.backend.resume(task.stamp)
    task.advance(TTL)
    delta = snapshot(task, files, base)
    task.next_epoch()
    assert sum(file.entries for file in delta.files) == 20
    again = restored(task, tmp_path / "target", [chain(full, delta)], files)
    assert stored(again) == stored(task) == 0
    again.close()


def test_a_snapshot_and_the_commit_behind_it_hold_the_same(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    fill(task, "value", range(3000))
    task.next_epoch(cached=True)
    task.advance(TTL)
    full = snapshot(task, files)
    task.next_epoch()
    again = restored(task, tmp_path / "target", [full], files)
    assert 0 < stored(again) == stored(task) < 3000
    again.close()


def test_without_the_background_state_stays(task: Subtask) -> None:
    fill(task, "value", range(10), builder().disable_cleanup_in_background().build())
    for _ in range(3):
        task.next_epoch(cached=True)
        task.advance(TTL)
    assert stored(task) == 10


def test_clean_up_by_accesses(task: Subtask) -> None:
    config = builder().cleanup_incrementally(2, False).build()
    state = fill(task, "value", range(200), config)
    task.next_epoch(cached=True)
    task.advance(TTL)
    task.next_epoch(cached=True)
    before = stored(task)
    assert before == 200, "nothing was accessed"
    for _ in range(50):
        task.at(10**6)
        state.value()
    task.next_epoch(cached=True)
    assert 200 - 2 * 50 <= stored(task) < before


def test_clean_up_by_rows(task: Subtask) -> None:
    fill(task, "value", range(200), builder().cleanup_incrementally(1, True).build())
    for _ in range(2):
        # The first walk has begun with the epoch that wrote them.
        task.next_epoch(cached=True)
        task.advance(TTL)
        assert stored(task) > 0
        task.backend.begin_batch(200 + 4 * MAX_PARALLELISM)
    task.next_epoch(cached=True)
    assert stored(task) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("asked", [True, False])
def test_full_images(task: Subtask, files: MemoryFiles, tmp_path: Path, kind: str, asked: bool) -> None:
    config = builder().disable_cleanup_in_background()
    config = (config.cleanup_full_snapshot() if asked else config).build()
    fill(task, kind, range(10), config)
    other = task.backend.state(descriptor("value" if kind == "map" else "map"), WINDOW)
    put(other, "value" if kind == "map" else "map", 1)
    task.next_epoch(cached=True)
    task.advance(TTL // 2)
    fill(task, kind, range(10, 13), config)
    task.next_epoch(cached=True)
    task.advance(TTL // 2)
    full = snapshot(task, files)
    assert stored(task) == 14, "the local store is as it was"
    assert sum(file.entries for file in full.files) == (4 if asked else 14)
    again = restored(task, tmp_path / "target", [full], files)
    state = again.backend.state(descriptor(kind, config), WINDOW)
    for key in range(13):
        again.at(key)
        assert (content(state, kind) is not None) == (key >= 10)
    again.close()


def test_full_images_keep_every_entry_of_other_states(task: Subtask, files: MemoryFiles, tmp_path: Path) -> None:
    """A map entry without a value is stored as no bytes at all."""
    fill(task, "value", range(3), builder().cleanup_full_snapshot().build())
    fill(task, "list", range(3), builder().disable_cleanup_in_background().build())
    task.at(1)
    task.backend.state(descriptor("map"), WINDOW).put_all({"none": None, "one": 1})
    task.advance(TTL)
    again = restored(task, tmp_path / "target", [snapshot(task, files)], files)
    again.at(1)
    assert dict(again.backend.state(descriptor("map"), WINDOW).items()) == {"none": None, "one": 1}
    assert stored(again) == 2 + 3
    again.close()


def test_what_was_left_out_of_an_image_comes_with_the_delta_that_renews_it(
    task: Subtask, files: MemoryFiles, tmp_path: Path
) -> None:
    config = builder().disable_cleanup_in_background().cleanup_full_snapshot().build()
    state = fill(task, "value", range(2), config)
    task.next_epoch(cached=True)
    task.advance(TTL)
    full = snapshot(task, files)
    base = task.commit().epoch
    task.backend.resume(task.stamp)
    task.at(1)
    state.update(1)
    delta = snapshot(task, files, base)
    again = restored(task, tmp_path / "target", [chain(full, delta)], files)
    state = again.backend.state(descriptor("value", config), WINDOW)
    again.at(1)
    assert state.value() == 1 and stored(again) == 1
    again.close()


@pytest.mark.parametrize(
    ("config", "checked"),
    [
        (builder(), 1000 + 2 * 30),
        (builder().cleanup_in_rocksdb_compact_filter(7), 1000 + 2 * 30),
        (builder().cleanup_incrementally(5, False), 5 * 100),
        (builder().cleanup_incrementally(5, True), 5 * (100 + 40)),
        (builder().cleanup_incrementally(5, False).cleanup_in_rocksdb_compact_filter(7), 500 + 1060),
        (builder().disable_cleanup_in_background(), 0),
        (builder().disable_cleanup_in_background().cleanup_full_snapshot(), 0),
        (builder().disable_cleanup_in_background().cleanup_incrementally(1, False), 100),
    ],
)
def test_how_many_entries_are_checked(config: Any, checked: int) -> None:
    assert entries_to_check(config.build(), accesses=100, written=30, rows=40) == checked
