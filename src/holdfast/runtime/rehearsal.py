"""What becomes of the state of one operator at a restore, found out without restoring it.

Every decision is taken by the code that takes it in a task: ``keyed_share`` and ``registry.merge`` say what a subtask
gets, ``rewrite_for`` and the operator state backend whether a state that is asked for can be given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from holdfast.errors import HoldfastError
from holdfast.runtime.declarations import Declarations, Occasion, declarations_of
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.restored_state import keyed_share, open_raw_state, restored_lists, written_lists
from holdfast.runtime.state_context import OperatorStateContext, raw_state_not_asked_for
from holdfast.state import registry
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from holdfast.state.handles import DistributionMode, ListStateSnapshot, OperatorRecord, StateMeta
from holdfast.state.keys import KeyCodec
from holdfast.state.migration import rewrite_for
from holdfast.state.operator_state import DefaultOperatorStateBackend, RegisteredStates
from holdfast.state.outcomes import Fate, StateOutcome
from holdfast.state.restore import KeyedShare, RestoreForecast
from holdfast.state.snapshot_io import CountingReader, SnapshotReader

_KINDS = {
    DistributionMode.SPLIT_DISTRIBUTE: "split list",
    DistributionMode.UNION: "union list",
    DistributionMode.BROADCAST: "broadcast map",
}
_NOT_DECLARED = "not declared by the function: it stays as it is, in the state and in checkpoints"
_TTL_ON = "gets a time to live: all of it counts as accessed at the restore"
_TTL_OFF = "loses its time to live: what had expired and was not yet removed stays"
#: The worst that happens to a state on any subtask happens to the job.
_SEVERITY = (Fate.REFUSED, Fate.MIGRATED, Fate.KEPT, Fate.NEW)


@dataclass(frozen=True)
class OperatorOutcome:
    """The states of one operator, and what each of its subtasks reads."""

    states: tuple[StateOutcome, ...]
    bytes_per_subtask: tuple[int, ...]
    #: Why the operator itself refuses what it restores.
    refusal: str | None = None


def rehearse_operator(
    spec: OperatorSpec, record: OperatorRecord | None, reader: SnapshotReader, occasion: Occasion
) -> OperatorOutcome:
    """``record`` is what the snapshot has of the operator, None when it has nothing."""
    shares = _Shares(spec, record, reader)
    declared = declarations_of(spec, record, reader, occasion)
    states = [
        *_keyed_outcomes(spec, shares, declared),
        *_list_outcomes(spec, shares, declared),
        *_raw_outcomes(spec, record, declared),
    ]
    if declared.refusal is not None:
        states = [
            one if one.fate is Fate.NEW else replace(one, fate=Fate.REFUSED, detail=declared.refusal) for one in states
        ]
    refusal = declared.refusal or (shares.keyed_refusal if _raw_of(record)["keyed"] else None)
    return OperatorOutcome(tuple(states), tuple(shares.bytes_read), refusal)


def stored_states(record: OperatorRecord, reader: SnapshotReader, fate: Fate, detail: str) -> list[StateOutcome]:
    """All states of a record, which share one fate."""
    lists = {(state.name, state.mode) for state in written_lists(record, reader)}
    return [
        *(StateOutcome(name, kind, fate, detail) for name, kind in sorted(_stored_kinds(record).items())),
        *(StateOutcome(name, _KINDS[mode], fate, detail) for name, mode in sorted(lists)),
        *(StateOutcome(kind, "raw", fate, detail) for kind, present in _raw_of(record).items() if present),
    ]


class _Shares:
    """What the snapshot has for each subtask."""

    def __init__(self, spec: OperatorSpec, record: OperatorRecord | None, reader: SnapshotReader) -> None:
        self.stored_kinds = _stored_kinds(record) if record is not None and spec.keyed else {}
        #: By subtask: its operator state, its registered keyed states, and the bytes that both take to read.
        self.lists: list[tuple[ListStateSnapshot, ...]] = []
        self.registries: list[registry.StateRegistry] = []
        self.bytes_read: list[int] = []
        #: Why no keyed state can be restored.
        self.keyed_refusal: str | None = None
        #: What happens to its keys, for people.
        self.key_change: str | None = None
        forecast = RestoreForecast(reader)
        for subtask in range(spec.parallelism):
            counting = CountingReader(reader)
            self.lists.append(restored_lists(spec, subtask, record, counting))
            _read_raw_state(spec, subtask, record, counting)
            keyed = self._keyed(spec, subtask, record, forecast) if spec.keyed else 0
            self.bytes_read.append(counting.bytes_read + keyed)

    def _keyed(self, spec: OperatorSpec, subtask: int, record: OperatorRecord | None, forecast: RestoreForecast) -> int:
        try:
            share = keyed_share(spec, subtask, record)
            self.registries.append(registry.merge(share.snapshots)[0])
            self.key_change = _key_change(spec, share) or self.key_change
        except HoldfastError as error:
            self.keyed_refusal = str(error)
            return 0
        return forecast.bytes_of(share)


def _keyed_outcomes(spec: OperatorSpec, shares: _Shares, declared: Declarations) -> Iterable[StateOutcome]:
    taken: set[str] = set()
    for name, (meta, descriptor) in sorted(declared.keyed.items()):
        names = [name, *(() if descriptor is None else descriptor.former_names)]
        taken.update(names)
        if shares.keyed_refusal is not None and shares.stored_kinds.keys() & set(names):
            yield StateOutcome(name, meta.kind, Fate.REFUSED, shares.keyed_refusal)
        else:
            stored = [form for one in shares.registries for former in names for form in one.forms(former)]
            outcomes = [_keyed_outcome(spec, known, meta, descriptor) for known in stored]
            yield _with_key_change(_worst(outcomes or [_new(name, meta.kind)]), shares)
    for name, kind in sorted(shares.stored_kinds.items()):
        if name in taken:
            continue
        if shares.keyed_refusal is not None:
            yield StateOutcome(name, kind, Fate.REFUSED, shares.keyed_refusal)
        else:
            yield _with_key_change(_not_declared(name, kind, declared), shares)


def _keyed_outcome(
    spec: OperatorSpec, stored: StateMeta, wanted: StateMeta, descriptor: StateDescriptor | None
) -> StateOutcome:
    try:
        rewrite = rewrite_for(spec.name, stored, wanted, descriptor, now=0)
    except HoldfastError as error:
        return StateOutcome(wanted.name, stored.kind, Fate.REFUSED, str(error))
    ttl = "" if stored.ttl == wanted.ttl else _TTL_ON if wanted.ttl else _TTL_OFF
    details = [*_how(stored.name, stored.version, wanted.name, wanted.version), *([ttl] if ttl else [])]
    fate = Fate.KEPT if rewrite is None else Fate.MIGRATED
    return StateOutcome(wanted.name, wanted.kind, fate, "; ".join(details))


def _how(old_name: str, old_version: int, name: str, version: int) -> list[str]:
    """What a program's own declarations do to a state."""
    renamed = [] if old_name == name else [f"was '{old_name}'"]
    steps = [] if old_version == version else [f"by its functions, from version {old_version} to {version}"]
    return renamed + steps


def _key_change(spec: OperatorSpec, share: KeyedShare) -> str | None:
    plan = None if share.regrouping is None else share.regrouping.keys
    if plan is None:
        return None
    if not plan.moves:
        return f"its keys become {KeyCodec.for_type(spec.key_type).type_info}"
    return (
        f"its keys migrate from version {plan.versions[0]} to {plan.versions[1]}: each of {spec.parallelism} subtasks "
        "reads all of it"
    )


def _with_key_change(outcome: StateOutcome, shares: _Shares) -> StateOutcome:
    """State whose keys change is migrated, whatever else happens to it."""
    if shares.key_change is None or outcome.fate not in (Fate.KEPT, Fate.MIGRATED):
        return outcome
    detail = "; ".join(part for part in (shares.key_change, outcome.detail) if part)
    return replace(outcome, fate=Fate.MIGRATED, detail=detail)


def _list_outcomes(spec: OperatorSpec, shares: _Shares, declared: Declarations) -> Iterable[StateOutcome]:
    stored = _distinct(state for lists in shares.lists for state in lists)
    backend = DefaultOperatorStateBackend(spec.describe(0), RegisteredStates.of(stored))
    asked: set[int] = set()
    for (name, mode), descriptor in sorted(declared.lists.items(), key=lambda entry: entry[0]):
        names = (name, *descriptor.former_names)
        mine = [s for s in stored if s.name in names and _is_map(s.mode) == _is_map(mode)]
        asked.update(id(snapshot) for snapshot in mine)
        try:
            _ask(backend, descriptor, mode)
        except HoldfastError as error:
            yield StateOutcome(name, _KINDS[mode], Fate.REFUSED, str(error))
            continue
        yield _list_outcome(name, _KINDS[mode], mine, descriptor)
    left = {(snapshot.name, snapshot.mode) for snapshot in stored if id(snapshot) not in asked}
    for name, mode in sorted(left):
        yield _not_declared(name, _KINDS[mode], declared)


def _list_outcome(
    name: str, kind: str, stored: list[ListStateSnapshot], descriptor: StateDescriptor
) -> StateOutcome:
    if not stored:
        return _new(name, kind)
    types = {role: serializer.snapshot() for role, serializer in descriptor.serializers().items()}
    version = descriptor.versions.current
    changed = any((snapshot.serializers, snapshot.version) != (types, version) for snapshot in stored)
    details = dict.fromkeys(part for one in stored for part in _how(one.name, one.version, name, version))
    return StateOutcome(name, kind, Fate.MIGRATED if changed else Fate.KEPT, "; ".join(details))


def _raw_of(record: OperatorRecord | None) -> dict[str, bool]:
    """Which raw state a record has, by the words of errors."""
    subtasks = record.subtasks if record is not None else ()
    return {
        "keyed": any(snapshot.raw_keyed is not None for snapshot in subtasks),
        "operator": any(snapshot.raw_operator is not None for snapshot in subtasks),
    }


def _raw_outcomes(
    spec: OperatorSpec, record: OperatorRecord | None, declared: Declarations
) -> Iterable[StateOutcome]:
    for (kind, present), asked in zip(_raw_of(record).items(), declared.raw_asked, strict=True):
        if kind == "keyed" and not spec.keyed:
            continue
        if present and asked:
            yield StateOutcome(kind, "raw", Fate.KEPT, "read and written by the operator itself")
        elif present and declared.unknown is not None:
            yield StateOutcome(kind, "raw", Fate.UNKNOWN, declared.unknown)
        elif present:
            yield StateOutcome(kind, "raw", Fate.REFUSED, raw_state_not_asked_for(spec.describe(0), kind))


def _read_raw_state(
    spec: OperatorSpec, subtask: int, record: OperatorRecord | None, reader: SnapshotReader
) -> None:
    """As an operator does that reads all of it."""
    state = OperatorStateContext(DefaultOperatorStateBackend(spec.describe(subtask)))
    open_raw_state(state, spec, subtask, record, reader)
    for provider in [*state.raw_keyed_inputs, *state.raw_operator_inputs]:
        provider.get_stream()
    state.close_raw_inputs()


def _is_map(mode: DistributionMode) -> bool:
    """Lists of both kinds share their names; broadcast maps have names of their own."""
    return mode is DistributionMode.BROADCAST


def _distinct(states: Iterable[ListStateSnapshot]) -> list[ListStateSnapshot]:
    """Which states there are and of which types, without their elements."""
    found: list[ListStateSnapshot] = []
    for state in states:
        bare = msgspec.structs.replace(state, elements=())
        if bare not in found:
            found.append(bare)
    return found


def _ask(backend: DefaultOperatorStateBackend, descriptor: StateDescriptor, mode: DistributionMode) -> None:
    if isinstance(descriptor, MapStateDescriptor):
        backend.get_broadcast_state(descriptor)
    elif isinstance(descriptor, ListStateDescriptor) and mode is DistributionMode.UNION:
        backend.get_union_list_state(descriptor)
    elif isinstance(descriptor, ListStateDescriptor):
        backend.get_list_state(descriptor)


def _not_declared(name: str, kind: str, declared: Declarations) -> StateOutcome:
    if declared.unknown is not None:
        return StateOutcome(name, kind, Fate.UNKNOWN, declared.unknown)
    return StateOutcome(name, kind, Fate.KEPT, _NOT_DECLARED)


def _new(name: str, kind: str) -> StateOutcome:
    return StateOutcome(name, kind, Fate.NEW)


def _worst(outcomes: list[StateOutcome]) -> StateOutcome:
    return min(outcomes, key=lambda outcome: _SEVERITY.index(outcome.fate))


def _stored_kinds(record: OperatorRecord) -> dict[str, str]:
    return {meta.name: meta.kind for s in record.subtasks if s.keyed is not None for meta in s.keyed.states}
