"""When the next epoch begins."""

from __future__ import annotations

import pytest

from holdfast.job.pace import Pace
from holdfast.types.settings import EpochSettings


def pause(rows: int, more: bool, took: int, **settings: object) -> int:
    """Behind an epoch that began at 1,000."""
    pace = Pace(EpochSettings(**settings))
    pace.epoch_ended(1_000, rows, more)
    return pace.pause_ms(1_000 + took)


def test_sources_that_have_more_are_read_at_once() -> None:
    assert pause(500, True, 60) == 0


def test_few_rows_wait_for_others_until_the_latency_that_is_wanted() -> None:
    assert pause(5, False, 60) == 140
    assert pause(5, False, 60, target_latency_ms=1_000) == 940


def test_an_epoch_that_took_longer_is_followed_at_once() -> None:
    assert pause(5, False, 700) == 0


def test_many_rows_are_worth_an_epoch_of_their_own() -> None:
    assert pause(10_000, False, 60) == 0


def test_streams_that_end_behind_what_is_there_do_not_wait() -> None:
    assert pause(5, False, 60, stream_available_now=True) == 0


@pytest.mark.parametrize("more", [True, False])
def test_the_least_interval_holds_in_any_case(more: bool) -> None:
    assert pause(10_000, more, 60, min_interval_ms=500) == 440
    assert pause(5, more, 60, min_interval_ms=0) == 0


def test_nothing_is_waited_for_at_the_begin() -> None:
    assert Pace(EpochSettings()).pause_ms(1_000) == 0
