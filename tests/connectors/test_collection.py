from __future__ import annotations

import pickle
import random
from dataclasses import dataclass

import pytest

from holdfast.connectors.collection import CollectionSource
from holdfast.errors import HoldfastError, RestoreError
from holdfast.runtime.source import ReaderContext, ReadLimit
from holdfast.types.row import Row
from holdfast.types.typeinfo import Types
from tests.connectors.driving import limit_of, positions_of, read_epoch, readers_of, run_with_failures


@pytest.mark.parametrize("type_info", [None, Types.LONG()])
@pytest.mark.parametrize("seed", range(15))
def test_every_value_comes_once_and_in_order_whatever_fails(seed, type_info):
    rng = random.Random(seed)
    values = list(range(rng.choice([0, 1, 99, 1000])))
    source = CollectionSource(values, type_info)

    assert run_with_failures(source, rng, epoch_rows=120, max_parallelism=3) == values


def test_a_type_gives_columns_and_rows_of_that_type():
    source = CollectionSource([(1, "a"), (2, "b")], "id INT, name STRING")
    (reader,) = readers_of(source, 1)

    (batch,) = reader.read(limit_of(10))

    assert batch.arrow.schema.names == ["id", "name"]
    assert batch.values == [Row("id", "name")(1, "a"), Row("id", "name")(2, "b")]
    assert source.output_type() == Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])


@dataclass
class Order:
    item: str


def test_without_a_type_values_stay_the_objects_they_are():
    order = Order("tea")
    source = CollectionSource([order, {"a": 1}, None])
    (batch,) = source.create_reader(ReaderContext(0, 1, None)).read(limit_of(10))

    assert batch.arrow is None
    assert batch.values[0] is order
    assert batch.values[1:] == [{"a": 1}, None]
    assert source.output_type() is None


def test_a_value_of_another_type_is_an_error_of_the_program():
    with pytest.raises(HoldfastError, match="LONG"):
        CollectionSource([1, 2, "three"], Types.LONG())


def test_batches_are_bounded_and_cross_no_chunk():
    values = list(range(150_000))
    (reader,) = readers_of(CollectionSource(values, int), 1)

    batches = list(reader.read(limit_of(140_000)))

    assert [len(batch) for batch in batches] == [65_536, 65_536, 8_928]
    assert not reader.ended
    assert read_epoch(reader) == values[140_000:]
    assert reader.ended


def test_values_that_were_read_do_not_travel_again():
    reader = CollectionSource(list(range(300_000)), int).create_reader(ReaderContext(0, 1, None))
    before = len(pickle.dumps(reader))
    read_epoch(reader, 200_000)
    after = len(pickle.dumps(reader))

    assert after < before / 2
    assert read_epoch(pickle.loads(pickle.dumps(reader))) == list(range(200_000, 300_000))


def test_the_deadline_ends_an_epoch_but_never_before_its_first_batch():
    (reader,) = readers_of(CollectionSource(list(range(200_000))), 1)

    assert [len(batch) for batch in reader.read(ReadLimit(200_000, deadline=0.0))] == [65_536]
    assert [len(batch) for batch in reader.read(ReadLimit(0, deadline=0.0))] == []


def test_only_the_first_subtask_reads():
    readers = readers_of(CollectionSource([1, 2, 3]), 3)

    assert [read_epoch(reader) for reader in readers] == [[1, 2, 3], [], []]
    assert all(reader.ended for reader in readers)
    assert positions_of(readers) == [3]


def test_a_collection_that_became_shorter_cannot_be_continued():
    with pytest.raises(RestoreError, match=r"had read 5 values.*only 3.*longer"):
        readers_of(CollectionSource([1, 2, 3]), 1, restored=[5])
