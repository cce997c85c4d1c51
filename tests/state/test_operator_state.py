from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import StateAccessError, StateDescriptorError, StateMigrationError, StateTypeError
from holdfast.state.broadcast_state import BroadcastState
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from holdfast.state.handles import ListStateSnapshot
from holdfast.state.operator_state import DefaultOperatorStateBackend, RegisteredStates
from holdfast.state.redistribution import redistribute
from holdfast.types.typeinfo import Types

NUMBERS = ListStateDescriptor("numbers", Types.LONG())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LIST(Types.LONG()))


def backend(*restored: ListStateSnapshot) -> DefaultOperatorStateBackend:
    return DefaultOperatorStateBackend("operator 'reader', subtask 1/1", RegisteredStates.of(restored))


def numbers(*values: int, name: str = "numbers") -> DefaultOperatorStateBackend:
    filled = backend()
    filled.get_list_state(ListStateDescriptor(name, Types.LONG())).update(values)
    return filled


class TestLists:
    def test_methods(self) -> None:
        state = backend().get_list_state(NUMBERS)
        assert state.get() == []
        state.add(1)
        state.add_all(iter([2, 3]))
        assert state.get() == list(state) == [1, 2, 3]
        state.update([4])
        assert state.get() == [4]
        state.clear()
        assert state.get() == []

    def test_values_of_another_type_leave_the_list_as_it_was(self) -> None:
        state = backend().get_list_state(NUMBERS)
        state.add(1)
        for change in (lambda: state.add("x"), lambda: state.add_all([2, "x"]), lambda: state.update([2, None])):
            with pytest.raises(StateTypeError, match=r"operator 'reader', .* operator state 'numbers': .* LONG"):
                change()
        assert state.get() == [1]

    def test_an_element_changed_in_place_is_not_changed_in_the_state(self) -> None:
        state = backend().get_list_state(ListStateDescriptor("lists", list[int]))
        mine = [1]
        state.add(mine)
        mine.append(2)
        state.get()[0].append(3)
        assert state.get() == [[1]]

    @pytest.mark.parametrize("mode", ["get_list_state", "get_union_list_state"])
    def test_restored(self, mode: str) -> None:
        before = backend()
        getattr(before, mode)(NUMBERS).update([1, 2])
        after = backend(*before.snapshot())
        assert getattr(after, mode)(NUMBERS).get() == [1, 2]
        assert after.snapshot() == before.snapshot()

    def test_asked_for_again_is_the_same_object(self) -> None:
        both = backend()
        assert both.get_list_state(NUMBERS) is both.get_list_state(ListStateDescriptor("numbers", "bigint"))
        assert both.get_broadcast_state(RULES) is both.get_broadcast_state(RULES)

    def test_two_types_under_one_name_are_an_error_that_names_both(self) -> None:
        one = backend()
        one.get_list_state(NUMBERS)
        with pytest.raises(StateDescriptorError, match=r"'reader'.*'numbers' of LONG and .*'numbers' of STRING"):
            one.get_list_state(ListStateDescriptor("numbers", Types.STRING()))
        one.get_broadcast_state(RULES)
        with pytest.raises(StateDescriptorError, match="'rules'"):
            one.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.LONG()))

    def test_descriptors_of_another_kind_are_refused(self) -> None:
        descriptor: Any = ValueStateDescriptor("numbers", Types.LONG())
        with pytest.raises(StateDescriptorError, match="expected a ListStateDescriptor"):
            backend().get_list_state(descriptor)
        with pytest.raises(StateDescriptorError, match="expected a MapStateDescriptor"):
            backend().get_broadcast_state(descriptor)


class TestModes:
    message = r"'reader'.*incompatible state assignment modes.*'numbers'.*\[SPLIT_DISTRIBUTE\].*\[UNION\]"

    def test_registered_with_another_mode(self) -> None:
        one = backend()
        one.get_list_state(NUMBERS)
        with pytest.raises(StateDescriptorError, match=self.message):
            one.get_union_list_state(NUMBERS)

    def test_restored_with_another_mode(self) -> None:
        restored = backend(*numbers(1, 2).snapshot())
        with pytest.raises(StateDescriptorError, match=self.message):
            restored.get_union_list_state(NUMBERS)
        assert restored.get_list_state(NUMBERS).get() == [1, 2]

    def test_lists_and_maps_have_separate_names(self) -> None:
        one = backend()
        one.get_list_state(ListStateDescriptor("same", int)).add(1)
        one.get_broadcast_state(MapStateDescriptor("same", str, int)).put("a", 2)
        again = backend(*one.snapshot())
        assert again.get_list_state(ListStateDescriptor("same", int)).get() == [1]
        assert again.get_broadcast_state(MapStateDescriptor("same", str, int)).get("a") == 2


class TestTypesAtRestore:
    def test_a_wider_type_reads_what_was_stored(self) -> None:
        narrow = backend()
        narrow.get_list_state(ListStateDescriptor("numbers", Types.INT())).update([1, 2])
        narrow.get_broadcast_state(MapStateDescriptor("m", Types.INT(), Types.FLOAT())).put(1, 0.5)
        wide = backend(*narrow.snapshot())
        assert wide.get_list_state(NUMBERS).get() == [1, 2]
        assert wide.get_broadcast_state(MapStateDescriptor("m", Types.LONG(), Types.DOUBLE())).get(1) == 0.5
        assert wide.snapshot()[1].serializers["value"]["type"] == Types.LONG().to_json()

    def test_another_type_is_an_error_that_names_operator_state_and_both_types(self) -> None:
        restored = backend(*numbers(1).snapshot())
        with pytest.raises(
            StateMigrationError, match=r"'reader'.*'numbers' was stored with type LONG and .* STRING"
        ):
            restored.get_list_state(ListStateDescriptor("numbers", Types.STRING()))
        assert restored.snapshot() == numbers(1).snapshot()

    def test_another_type_of_a_map_is_an_error(self) -> None:
        before = backend()
        before.get_broadcast_state(MapStateDescriptor("m", str, int)).put("a", 1)
        for other in (MapStateDescriptor("m", int, int), MapStateDescriptor("m", str, str)):
            with pytest.raises(StateMigrationError, match=r"'reader'.*state 'm' was stored"):
                backend(*before.snapshot()).get_broadcast_state(other)

    def test_elements_that_were_written_with_different_types_are_read_together(self) -> None:
        narrow = backend()
        narrow.get_list_state(ListStateDescriptor("numbers", Types.INT())).update([1, 2])
        merged = redistribute([narrow.snapshot(), numbers(3).snapshot()], 1)[0]
        assert len(merged) == 2
        assert backend(*merged).get_list_state(NUMBERS).get() == [1, 2, 3]


class TestNobodyAsks:
    def test_restored_state_is_written_again(self) -> None:
        before = numbers(1, 2)
        before.get_broadcast_state(RULES).put("a", [1])
        stored = before.snapshot()
        for _ in range(3):
            stored = backend(*stored).snapshot()
        assert stored == before.snapshot()

    def test_names_include_what_nobody_asked_for(self) -> None:
        before = numbers(1)
        before.get_broadcast_state(RULES)
        restored = backend(*before.snapshot())
        restored.get_list_state(ListStateDescriptor("more", int))
        restored.get_broadcast_state(MapStateDescriptor("other", int, int))
        assert restored.get_registered_state_names() == {"numbers", "more"}
        assert restored.get_registered_broadcast_state_names() == {"rules", "other"}

    def test_a_union_list_that_nobody_asks_for_stays_one_list(self) -> None:
        """Every subtask has all of it after a restore. Written by all of them it would grow with every checkpoint."""
        before = backend()
        before.get_union_list_state(NUMBERS).update(range(7))
        stored = [before.snapshot()]
        for parallelism in (3, 3, 2, 5, 1):
            shares = redistribute(stored, parallelism)
            stored = [
                DefaultOperatorStateBackend("", RegisteredStates.of(share), subtask, parallelism).snapshot()
                for subtask, share in enumerate(shares)
            ]
        assert backend(*stored[0]).get_union_list_state(NUMBERS).get() == list(range(7))

    def test_in_another_process_of_the_attempt_it_is_still_known_who_asked(self) -> None:
        """A function may ask for a list once and keep no handle: the list is the function's all the same."""
        before = backend()
        before.get_union_list_state(NUMBERS).update([1, 2])
        before.get_broadcast_state(RULES).put("a", [1])
        one = DefaultOperatorStateBackend("", RegisteredStates.of(before.snapshot()), 1, 2)
        one.get_union_list_state(NUMBERS)
        for _ in range(2):
            one = DefaultOperatorStateBackend("", DefaultOperatorStateBackend.unpack(one.pack()), 1, 2)
        assert one.snapshot() == before.snapshot()

    def test_what_was_asked_for_is_written_as_it_is_now(self) -> None:
        restored = backend(*numbers(1, 2).snapshot())
        restored.get_list_state(NUMBERS).clear()
        assert [snapshot.elements for snapshot in restored.snapshot()] == [()]


class TestBroadcast:
    def test_methods(self) -> None:
        state = backend().get_broadcast_state(MapStateDescriptor("m", str, int))
        assert state.is_empty()
        state.put("a", 1)
        state.put_all({"b": 2, "c": 3})
        state["d"] = 4
        assert state.get("a") == state["a"] == 1
        assert state.get("z") is None
        assert state.contains("b") and "b" in state and not state.contains("z")
        assert list(state.items()) == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
        assert list(state.keys()) == list(state) == ["a", "b", "c", "d"]
        assert list(state.values()) == [1, 2, 3, 4]
        state.remove("a")
        state.remove("a")
        del state["d"]
        assert dict(state.items()) == {"b": 2, "c": 3}
        state.clear()
        assert state.is_empty()

    def test_entries_may_be_removed_while_they_are_walked(self) -> None:
        state = backend().get_broadcast_state(MapStateDescriptor("m", str, int))
        state.put_all({"a": 1, "b": 2})
        for key in state:
            state.remove(key)
        assert state.is_empty()

    def test_restored(self) -> None:
        before = backend()
        before.get_broadcast_state(RULES).put_all({"a": [1, 2], "b": []})
        state = backend(*before.snapshot()).get_broadcast_state(RULES)
        assert dict(state.items()) == {"a": [1, 2], "b": []}

    def test_removed_and_cleared_entries_are_not_stored(self) -> None:
        before = backend()
        state = before.get_broadcast_state(RULES)
        state.put_all({"a": [1], "b": [2]})
        state.remove("a")
        assert dict(backend(*before.snapshot()).get_broadcast_state(RULES).items()) == {"b": [2]}
        state.clear()
        assert before.snapshot()[0].elements == ()

    def test_a_restored_map_is_walked_in_the_order_in_which_it_was_put(self) -> None:
        before = backend()
        state = before.get_broadcast_state(MapStateDescriptor("m", int, int))
        state.put_all({300: 1, -1: 2, 5: 3})
        state.put(300, 4)
        restored = backend(*before.snapshot()).get_broadcast_state(MapStateDescriptor("m", int, int))
        assert list(restored.items()) == list(state.items()) == [(300, 4), (-1, 2), (5, 3)]

    def test_what_is_put_is_read_as_a_restored_subtask_reads_it(self) -> None:
        before = backend()
        descriptor = MapStateDescriptor("m", Types.DOUBLE(), Types.TUPLE([Types.DOUBLE()]))
        state = before.get_broadcast_state(descriptor)
        state.put(1, (2,))
        assert repr(list(state.items())) == repr(
            list(backend(*before.snapshot()).get_broadcast_state(descriptor).items())
        )

    def test_entries_of_another_type_leave_the_map_as_it_was(self) -> None:
        state = backend().get_broadcast_state(MapStateDescriptor("m", str, int))
        state.put("a", 1)
        for change in (lambda: state.put(1, 1), lambda: state.put("a", "x"), lambda: state.put_all({"a": 2, "b": "x"})):
            with pytest.raises(StateTypeError, match=r"operator 'reader', .* operator state 'm': A value of class"):
                change()
        assert dict(state.items()) == {"a": 1}

    @pytest.mark.parametrize("descriptor", [RULES, MapStateDescriptor("rules")], ids=["typed", "pickled"])
    def test_a_value_changed_in_place_changes_nothing(self, descriptor: MapStateDescriptor) -> None:
        before = backend()
        state = before.get_broadcast_state(descriptor)
        mine = [1]
        state.put("a", mine)
        mine.append(2)
        state.get("a").append(3)
        for value in [*state.values(), *(value for _, value in state.read_only("rules").items())]:
            value.append(4)
        assert state.get("a") == state.read_only("rules")["a"] == [1]
        assert backend(*before.snapshot()).get_broadcast_state(descriptor).get("a") == [1]

    def test_the_read_only_view_follows_and_cannot_write(self) -> None:
        state = backend().get_broadcast_state(MapStateDescriptor("m", str, int))
        view: Any = state.read_only("m")
        state.put("a", 1)
        assert view.get("a") == 1 and view.contains("a") and not view.is_empty()
        assert not isinstance(view, BroadcastState)
        for change in (
            lambda: view.put("a", 2),
            lambda: view.put_all({"a": 2}),
            lambda: view.remove("a"),
            lambda: view.clear(),
            lambda: view.__setitem__("a", 2),
            lambda: view.__delitem__("a"),
        ):
            with pytest.raises(StateAccessError, match="'m' can only be read in process_element"):
                change()
        assert dict(state.items()) == {"a": 1}


def test_snapshots_are_ordered_by_name() -> None:
    one = backend()
    for name in ("b", "c", "a"):
        one.get_list_state(ListStateDescriptor(name, int))
    assert [snapshot.name for snapshot in one.snapshot()] == ["a", "b", "c"]
