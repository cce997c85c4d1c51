"""StateTtlConfig as PyFlink programs use it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from holdfast.common import Duration, Time
from holdfast.datastream.state import StateTtlConfig
from holdfast.errors import ConfigurationError, ProgramError

UpdateType, StateVisibility = StateTtlConfig.UpdateType, StateTtlConfig.StateVisibility


def test_defaults_are_flinks() -> None:
    config = StateTtlConfig.new_builder(Time.seconds(1)).build()
    assert config.get_ttl() == Time.seconds(1)
    assert config.get_update_type() is UpdateType.OnCreateAndWrite
    assert config.get_state_visibility() is StateVisibility.NeverReturnExpired
    assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
    assert config.is_enabled()
    strategies = config.get_cleanup_strategies()
    assert strategies.is_cleanup_in_background() and not strategies.in_full_snapshot()
    incremental = strategies.get_incremental_cleanup_strategy()
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (5, False)
    assert strategies.get_rocksdb_compact_filter_cleanup_strategy().get_query_time_after_num_entries() == 1000


def test_everything_that_can_be_set() -> None:
    builder = StateTtlConfig.new_builder(Time.seconds(1)).set_ttl(Time.days(7)).use_processing_time()
    config = (
        builder.set_update_type(UpdateType.OnReadAndWrite)
        .set_state_visibility(StateVisibility.ReturnExpiredIfNotCleanedUp)
        .set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)
        .cleanup_full_snapshot()
        .cleanup_incrementally(10, True)
        .cleanup_in_rocksdb_compact_filter(500, Duration.of_days(1))
        .disable_cleanup_in_background()
        .build()
    )
    assert config.get_ttl() == Time.days(7) and config.milliseconds == 7 * 24 * 3600 * 1000
    assert config.get_update_type() is UpdateType.OnReadAndWrite
    assert config.get_state_visibility() is StateVisibility.ReturnExpiredIfNotCleanedUp
    strategies = config.get_cleanup_strategies()
    assert strategies.in_full_snapshot() and not strategies.is_cleanup_in_background()
    incremental = strategies.get_incremental_cleanup_strategy()
    assert (incremental.get_cleanup_size(), incremental.run_cleanup_for_every_record()) == (10, True)
    compaction = strategies.get_rocksdb_compact_filter_cleanup_strategy()
    assert compaction.get_query_time_after_num_entries() == 500
    assert compaction.get_periodic_compaction_time() == Duration.of_days(1)


def test_short_forms() -> None:
    builder = StateTtlConfig.new_builder(Time.seconds(1))
    assert builder.update_ttl_on_read_and_write().build().get_update_type() is UpdateType.OnReadAndWrite
    assert builder.update_ttl_on_create_and_write().build().get_update_type() is UpdateType.OnCreateAndWrite
    expired = StateVisibility.ReturnExpiredIfNotCleanedUp
    assert builder.return_expired_if_not_cleaned_up().build().get_state_visibility() is expired
    assert builder.never_return_expired().build().get_state_visibility() is StateVisibility.NeverReturnExpired


def test_without_the_background_there_is_no_default_strategy() -> None:
    strategies = StateTtlConfig.new_builder(Time.seconds(1)).disable_cleanup_in_background().build()
    found = strategies.get_cleanup_strategies()
    assert found.get_incremental_cleanup_strategy() is None
    assert found.get_rocksdb_compact_filter_cleanup_strategy() is None


def test_disabled() -> None:
    assert not StateTtlConfig.new_builder(Time.seconds(1)).set_update_type(UpdateType.Disabled).build().is_enabled()


def test_configs_are_values_that_travel() -> None:
    builder = StateTtlConfig.new_builder(Time.seconds(1)).cleanup_incrementally(3, False)
    config = builder.build()
    assert pickle.loads(pickle.dumps(config)) == config == builder.build()
    assert config != builder.update_ttl_on_read_and_write().build()


@pytest.mark.parametrize(("ttl", "milliseconds"), [(Duration.of_minutes(2), 120_000), (Time.milliseconds(7), 7)])
def test_lengths_of_time(ttl: Any, milliseconds: int) -> None:
    assert StateTtlConfig.new_builder(ttl).build().milliseconds == milliseconds


def test_what_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"Time\(millis=0\) was given; it must be longer than 0"):
        StateTtlConfig.new_builder(Time.seconds(0)).build()
    with pytest.raises(ConfigurationError, match="'1 hour' is not a length of time"):
        StateTtlConfig.new_builder("1 hour").build()
    with pytest.raises(ProgramError, match="cleanup_incrementally was given 0 entries"):
        StateTtlConfig.new_builder(Time.seconds(1)).cleanup_incrementally(0, True)
