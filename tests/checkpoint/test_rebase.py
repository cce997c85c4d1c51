from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.checkpoint.job_facts import JobOperator
from holdfast.checkpoint.rebase import compose, full_image_due, full_images_due
from holdfast.checkpoint.shared_files import snapshot_files
from holdfast.errors import CheckpointError
from holdfast.state.handles import KeyedFile, KeyedSnapshot, NativeFile, NativeImage, SnapshotKind, SubtaskSnapshot
from tests.checkpoint.samples import OPERATOR, handle, keyed, keyed_file, metadata, record, snapshot

FULL = keyed_file("shared/1-1-full", 1000)


def delta(size: int = 10, number: int = 2) -> KeyedFile:
    return keyed_file(f"shared/1-{number}-delta", size, SnapshotKind.DELTA, number)


class TestDue:
    def test_without_a_base(self) -> None:
        assert full_image_due(keyed())
        assert full_image_due(keyed(delta()))

    def test_a_chain_grows_while_it_is_cheaper_than_its_base(self) -> None:
        assert not full_image_due(keyed(FULL))
        assert not full_image_due(keyed(FULL, delta(500)))
        assert full_image_due(keyed(FULL, delta(501)))
        assert not full_image_due(keyed(FULL, delta(900, 2), delta(50, 3)))
        assert full_image_due(keyed(FULL, delta(900, 2), delta(51, 3)))

    def test_an_image_of_several_files_is_one_image(self) -> None:
        image = [FULL, *(keyed_file(f"shared/1-1-{part}", 1000, SnapshotKind.DELTA) for part in range(99))]
        assert not full_image_due(keyed(*image), max_files=10)
        assert not full_image_due(keyed(*image, delta(50_000)), max_files=10)
        assert full_image_due(keyed(*image, delta(50_001)), max_files=10)

    def test_a_delta_of_several_files_is_one_delta(self) -> None:
        assert not full_image_due(keyed(FULL, delta(250), delta(250)))
        assert full_image_due(keyed(FULL, delta(251), delta(250)))

    def test_a_chain_does_not_grow_for_ever(self) -> None:
        assert not full_image_due(keyed(FULL, *[delta(0)] * 8), max_files=10)
        assert full_image_due(keyed(FULL, *[delta(0)] * 9), max_files=10)

    @given(base=st.integers(1, 10_000), sizes=st.lists(st.integers(0, 2_000), max_size=100))
    def test_what_is_restored_is_bounded_by_twice_the_base_and_one_delta(self, base: int, sizes: list[int]) -> None:
        chain = [keyed_file("full", base)]
        for size in sizes:
            if full_image_due(keyed(*chain)):
                break
            chain.append(delta(size, len(chain) + 1))
        deltas = [file.handle.size for file in chain[1:]]
        assert sum(deltas[:-1]) <= base

    def operator(self, parallelism: int = 2, max_parallelism: int = 128) -> JobOperator:
        return JobOperator(OPERATOR, "counter", parallelism, max_parallelism)

    def test_each_subtask_is_judged_by_its_own_chain(self) -> None:
        subtasks = [snapshot(0, keyed=keyed(FULL, delta(900))), snapshot(1, keyed=keyed(FULL))]
        base = metadata(1, [record(subtasks=subtasks, parallelism=2)])
        assert full_images_due(base, [self.operator()]) == {(OPERATOR, 0)}

    def test_operators_without_keyed_state_in_the_base(self) -> None:
        base = metadata(1, [record(subtasks=[snapshot(0), snapshot(1)], parallelism=2)])
        assert full_images_due(base, [self.operator()]) == {(OPERATOR, 0), (OPERATOR, 1)}
        assert full_images_due(metadata(1), [self.operator()]) == {(OPERATOR, 0), (OPERATOR, 1)}

    def test_another_backend_starts_anew(self) -> None:
        subtasks = [snapshot(0, keyed=keyed(FULL, backend="heap")), snapshot(1, keyed=keyed(FULL, backend="lmdb"))]
        base = metadata(1, [record(subtasks=subtasks, parallelism=2)])
        assert full_images_due(base, [self.operator()], "lmdb") == {(OPERATOR, 0)}
        assert full_images_due(base, [self.operator()], None) == frozenset()

    @pytest.mark.parametrize("changed", [{"parallelism": 1}, {"max_parallelism": 256}])
    def test_a_rescaled_operator_starts_anew(self, changed: dict[str, int]) -> None:
        subtasks = [snapshot(number, keyed=keyed(FULL)) for number in range(2)]
        base = metadata(1, [record(subtasks=subtasks, parallelism=2)])
        assert full_images_due(base, [self.operator()]) == frozenset()
        rescaled = self.operator(**changed)
        assert len(full_images_due(base, [rescaled])) == rescaled.parallelism

    def test_the_files_of_a_database_replace_each_other(self) -> None:
        assert not full_image_due(native(1, 1))
        assert not full_image_due(native(1, 2))
        assert not full_image_due(msgspec.structs.replace(native(1, 2), files=(delta(100, 3),)))
        assert full_image_due(msgspec.structs.replace(native(1, 2), files=(delta(101, 3),))), "deltas on top of it"


def native(*written_by: int) -> KeyedSnapshot:
    """A database of files of 100 bytes, each stored by a checkpoint."""
    files = [NativeFile(f"{n}.sst", handle(f"shared/1-{by}-{n}", 100), by) for n, by in enumerate(written_by)]
    return msgspec.structs.replace(keyed(backend="rocksdb"), native=NativeImage("rocksdb", tuple(files), False))


class TestDatabases:
    base = snapshot(keyed=native(1, 2, 3))

    def test_a_database_stands_alone(self) -> None:
        for written in (native(4, 4), native(1, 2, 3, 4), native(1, 4)):
            composed = compose(snapshot(keyed=written), self.base, full_wanted=False)
            assert composed.keyed == written

    def test_no_change_and_deltas_go_on_top_of_it(self) -> None:
        unchanged = compose(snapshot(keyed=keyed(backend="rocksdb")), self.base, full_wanted=False)
        assert unchanged.keyed == self.base.keyed
        on_top = compose(snapshot(keyed=keyed(delta(5, 4), backend="rocksdb")), self.base, full_wanted=False)
        assert on_top.keyed is not None and self.base.keyed is not None
        assert (on_top.keyed.native, on_top.keyed.files) == (self.base.keyed.native, (delta(5, 4),))

    @pytest.mark.parametrize("base", [base, snapshot(keyed=keyed(FULL)), None])
    def test_files_that_the_base_does_not_hold_are_refused(self, base: SubtaskSnapshot | None) -> None:
        with pytest.raises(CheckpointError, match=r"counts on the file 1\.sst of checkpoint 1, which its base"):
            compose(snapshot(keyed=native(1 if base is self.base else 4, 1, 4)), base, full_wanted=False)

    def test_a_full_image_counts_on_nothing(self) -> None:
        with pytest.raises(CheckpointError, match=r"counts on the file 0\.sst of checkpoint 1"):
            compose(snapshot(keyed=native(1, 4)), self.base, full_wanted=True)

    def test_all_of_its_files_are_referenced(self) -> None:
        assert self.base.keyed is not None and self.base.keyed.native is not None
        assert snapshot_files(self.base) == {file.handle.path for file in self.base.keyed.native.files}


class TestCompose:
    base = snapshot(keyed=keyed(FULL, delta(10, 2)))

    def test_a_delta_is_appended(self) -> None:
        composed = compose(snapshot(keyed=keyed(delta(5, 3)), bytes_written=5), self.base, full_wanted=False)
        assert composed.keyed is not None
        assert composed.keyed.files == (FULL, delta(10, 2), delta(5, 3))
        assert composed.bytes_written == 5

    def test_a_full_image_starts_a_new_chain(self) -> None:
        written = snapshot(keyed=keyed(keyed_file("shared/1-3-full")))
        assert compose(written, self.base, full_wanted=False) == written
        assert compose(written, None, full_wanted=True) == written

    def test_no_file_means_no_change_when_a_delta_was_wanted(self) -> None:
        composed = compose(snapshot(keyed=keyed()), self.base, full_wanted=False)
        assert composed.keyed is not None
        assert composed.keyed.files == (FULL, delta(10, 2))

    def test_no_file_means_empty_state_when_a_full_image_was_wanted(self) -> None:
        assert compose(snapshot(keyed=keyed()), self.base, full_wanted=True).keyed == keyed()

    def test_without_keyed_state_nothing_is_composed(self) -> None:
        assert compose(snapshot(), self.base, full_wanted=False) == snapshot()

    @pytest.mark.parametrize(
        ("written", "base", "full_wanted", "message"),
        [
            (keyed(delta()), None, False, "no keyed state"),
            (keyed(delta()), snapshot(), False, "no keyed state"),
            (keyed(delta()), base, True, "where a full image was asked for"),
            (keyed(delta(), key_groups=(0, 63)), base, False, r"\(0, 63\) on a base of \(0, 127\)"),
            (keyed(delta(), backend="lmdb"), base, False, "delta of backend lmdb on a base of heap"),
        ],
    )
    def test_a_delta_that_does_not_fit_is_refused(
        self, written: object, base: object, full_wanted: bool, message: str
    ) -> None:
        with pytest.raises(CheckpointError, match=f"subtask 0 of operator {OPERATOR}.*{message}"):
            compose(snapshot(keyed=written), base, full_wanted)  # type: ignore[arg-type]  # all that is asked
