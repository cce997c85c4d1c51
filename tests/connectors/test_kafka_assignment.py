"""Which subtask reads which Kafka partition: none is lost or read twice, whatever the parallelism."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.connectors.kafka.assignment import STORED_TYPE, new_partitions, owner_of, share_of
from holdfast.connectors.kafka.offsets import KafkaTopicPartition
from holdfast.state.serializers import serializer_for

_partitions = st.builds(KafkaTopicPartition, st.sampled_from(["orders", "clicks", "ü", "a-1"]), st.integers(0, 40))
_positions = st.dictionaries(_partitions, st.tuples(st.integers(0, 2**62), st.none() | st.integers(0, 2**62)))
_parallelisms = st.lists(st.integers(1, 17), min_size=1, max_size=6)


def through_a_checkpoint(stored: list[Any]) -> list[Any]:
    serializer = serializer_for(STORED_TYPE)
    return serializer.decode_many(serializer.encode_many(stored))


@given(_positions, _parallelisms)
def test_over_any_rescales_every_partition_has_one_reader_and_keeps_its_position(
    positions: dict[KafkaTopicPartition, tuple[int, int | None]], parallelisms: list[int]
) -> None:
    begun = [(p.topic, p.partition, offset, stop, "id") for p, (offset, stop) in positions.items()]
    state = begun
    for parallelism in parallelisms:
        shares = [share_of(through_a_checkpoint(state), subtask, parallelism) for subtask in range(parallelism)]
        state = [split.stored() for share in shares for split in share.values()]
    key = lambda stored: (stored[0], stored[1])  # noqa: E731
    assert sorted(state, key=key) == sorted(begun, key=key)


@given(st.sets(_partitions), st.sets(_partitions), _parallelisms)
def test_new_partitions_are_begun_by_one_subtask_each_over_any_rescales(
    first: set[KafkaTopicPartition], later: set[KafkaTopicPartition], parallelisms: list[int]
) -> None:
    known: set[KafkaTopicPartition] = set()
    for round_number, parallelism in enumerate(parallelisms):
        found = dict.fromkeys(first if round_number == 0 else first | later, "id")
        begun: list[KafkaTopicPartition] = []
        for subtask in range(parallelism):
            mine = {p for p in known if owner_of(p, parallelism) == subtask}
            begun += new_partitions(found, mine, subtask, parallelism)
        assert len(begun) == len(set(begun))
        assert set(begun) == found.keys() - known
        known |= set(begun)


@given(st.integers(1, 16), st.integers(1, 64))
def test_the_partitions_of_a_topic_are_divided_evenly(parallelism: int, count: int) -> None:
    owners = [owner_of(KafkaTopicPartition("topic", number), parallelism) for number in range(count)]
    sizes = [owners.count(subtask) for subtask in range(parallelism)]
    assert max(sizes) - min(sizes) <= 1


def test_topics_of_one_partition_do_not_all_go_to_one_subtask() -> None:
    assert len({owner_of(KafkaTopicPartition(f"topic-{number}", 0), 4) for number in range(20)}) == 4
