from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.checkpoint.restart import RestartStrategy, backoff, strategy_for
from holdfast.errors import ConfigurationError
from holdfast.types.settings import (
    ExponentialDelaySettings,
    FailureRateSettings,
    FixedDelaySettings,
    NoRestartSettings,
    RestartSettings,
)


def test_none() -> None:
    decision = strategy_for(NoRestartSettings()).on_failure(0)
    assert (decision.restart, decision.delay_ms) == (False, 0)
    assert "disabled" in decision.reason


def test_fixed_delay_restarts_as_often_as_it_says() -> None:
    strategy = strategy_for(FixedDelaySettings(attempts=3, delay_ms=250))
    decisions = [strategy.on_failure(now) for now in range(4)]
    assert [decision.restart for decision in decisions] == [True, True, True, False]
    assert {decision.delay_ms for decision in decisions[:3]} == {250}
    assert "all 3 restarts" in decisions[3].reason


def test_fixed_delay_defaults() -> None:
    strategy = strategy_for(FixedDelaySettings())
    assert strategy.on_failure(0).delay_ms == 1000
    assert not strategy.on_failure(0).restart


class TestFailureRate:
    def test_too_many_in_one_interval(self) -> None:
        strategy = strategy_for(FailureRateSettings(max_failures=2, interval_ms=100, delay_ms=7))
        assert [strategy.on_failure(now).restart for now in (0, 50, 100)] == [True, True, False]

    def test_one_millisecond_more_is_enough(self) -> None:
        strategy = strategy_for(FailureRateSettings(max_failures=2, interval_ms=100, delay_ms=7))
        decisions = [strategy.on_failure(now) for now in (0, 50, 101, 151, 202)]
        assert all(decision.restart and decision.delay_ms == 7 for decision in decisions)

    def test_no_failure_allowed(self) -> None:
        assert not strategy_for(FailureRateSettings(max_failures=0, interval_ms=100)).on_failure(5).restart

    @given(st.integers(0, 5), st.integers(1, 100), st.lists(st.integers(0, 60), max_size=30))
    def test_agrees_with_counting(self, allowed: int, interval: int, gaps: list[int]) -> None:
        strategy = strategy_for(FailureRateSettings(allowed, interval))
        now, seen = 0, []
        for gap in gaps:
            now += gap
            seen.append(now)
            recent = [time for time in seen if now - time <= interval]
            assert strategy.on_failure(now).restart == (len(recent) <= allowed)


class TestExponentialDelay:
    def strategy(self, reset_threshold_ms: int = 3_600_000, attempts: int | None = None) -> RestartStrategy:
        return strategy_for(ExponentialDelaySettings(1000, 10_000, 2.0, reset_threshold_ms, 0.0, attempts), Random(3))

    def fail_after_each_restart(self, strategy: RestartStrategy, times: int) -> list[int]:
        now, delays = 0, []
        for _ in range(times):
            decision = strategy.on_failure(now)
            assert decision.restart
            delays.append(decision.delay_ms)
            now += decision.delay_ms + 10
        return delays

    def test_the_delays_grow_to_the_maximum(self) -> None:
        assert self.fail_after_each_restart(self.strategy(), 6) == [1000, 2000, 4000, 8000, 10_000, 10_000]

    def test_thousands_of_failures_do_not_overflow(self) -> None:
        assert self.fail_after_each_restart(self.strategy(), 5000)[-1] == 10_000

    def test_failures_before_the_restart_belong_to_it(self) -> None:
        strategy = self.strategy()
        assert strategy.on_failure(0).delay_ms == 1000
        assert strategy.on_failure(400).delay_ms == 600
        assert strategy.on_failure(999).delay_ms == 1
        assert strategy.on_failure(1000).delay_ms == 2000

    def test_a_quiet_time_begins_anew(self) -> None:
        strategy = self.strategy(reset_threshold_ms=5000)
        strategy.on_failure(0)
        assert strategy.on_failure(1000 + 4999).delay_ms == 2000
        assert strategy.on_failure(5999 + 2000 + 5000).delay_ms == 1000

    def test_the_number_of_restarts_can_be_limited(self) -> None:
        strategy = self.strategy(attempts=2)
        assert strategy.on_failure(0).restart
        assert strategy.on_failure(1).restart  # the same restart
        assert strategy.on_failure(5000).restart
        refused = strategy.on_failure(50_000)
        assert not refused.restart
        assert "2 restarts" in refused.reason

    @given(
        number=st.integers(0, 250),
        initial=st.integers(1, 5000),
        more=st.integers(0, 100_000),
        multiplier=st.floats(1.01, 10),
        jitter=st.floats(0, 1),
        seed=st.integers(0, 1000),
    )
    def test_delays_stay_within_their_bounds(
        self, number: int, initial: int, more: int, multiplier: float, jitter: float, seed: int
    ) -> None:
        settings = ExponentialDelaySettings(initial, initial + more, multiplier, jitter=jitter)
        delay = backoff(settings, number, Random(seed))
        assert initial <= delay <= initial + more
        plain = min(initial * multiplier**number, initial + more)
        assert delay >= min(plain * (1 - jitter), initial + more) - 1
        assert delay <= plain * (1 + jitter) + 1 or delay == initial

    def test_jitter_spreads_the_delays_to_both_sides(self) -> None:
        settings = ExponentialDelaySettings(1000, 10_000, 2.0, jitter=0.1)
        delays = [backoff(settings, 2, Random(seed)) for seed in range(200)]
        assert 3600 <= min(delays) < 3700 and 4300 < max(delays) <= 4400


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"restart-strategy\.type"):
        strategy_for(RestartSettings())
