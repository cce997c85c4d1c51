"""The keyed state of one (operator, subtask): registered states and timers on top of a local store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from holdfast.errors import StateDescriptorError, StateError
from holdfast.state.descriptors import MapStateDescriptor, StateDescriptor
from holdfast.state.handles import StateMeta, StateMigrated
from holdfast.state.key_table import KeyContext, KeyTable
from holdfast.state.keyed_state import KeyedState, Pending, StateAccess
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import MIGRATED, REGISTRY_KEY, number_bytes, read_number
from holdfast.state.migration import rewrite_for
from holdfast.state.registry import TIMERS, StateRegistry
from holdfast.state.rewriting import Form, Progress, Rewriter
from holdfast.state.state_kinds import make_state
from holdfast.state.store import LocalStore, Stamp
from holdfast.state.stored_keys import stored_keys
from holdfast.state.timers import TimeDomain, TimerQueue
from holdfast.state.ttl_cells import deadline
from holdfast.state.ttl_cleanup import TtlCleanup
from holdfast.state.ttl_states import ExpiringState
from holdfast.types.clock import wall_clock
from holdfast.types.resolve import resolve

#: Cache entries of one epoch, unless the cache between epochs may be larger.
_EPOCH_CACHE = 500_000
#: In a meta that is not registered yet.
_NO_ID = -1


class KeyedScope(NamedTuple):
    """Whose state it is: the operator, its key codec and the key groups of the subtask."""

    operator_name: str
    key_codec: KeyCodec
    key_groups: KeyGroupRange
    max_parallelism: int
    subtask: int = 0
    #: Of the keys, as the program counts them.
    key_version: int = 0
    #: How errors name the subtask; empty where only the operator is known.
    where: str = ""


class KeyedStateBackend:
    """States by name, for one worker process and a line of epochs that it commits itself.

    It is made inside a transaction of the store (after ``LocalStore.begin``). The operator sets ``context.key`` and
    ``context.identity`` per row; states and timers work on them. ``begin_batch`` comes before rows and timers: states
    with a time to live take the clock's time there. ``commit`` ends the epoch. ``resume`` begins the next one and says
    whether this object, its states and their caches may go on; otherwise a new one is made.

    All caches together hold a bounded number of entries; beyond it they are written to the store early and emptied.
    ``cache_limit`` entries stay for the next epoch, None being no limit.
    """

    def __init__(
        self,
        store: LocalStore,
        scope: KeyedScope,
        backend_name: str,
        cache_limit: int | None,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self.store = store
        self.scope = scope
        self.backend_name = backend_name
        self.context = KeyContext()
        self._cache_limit = sys.maxsize if cache_limit is None else cache_limit
        self._keys = KeyTable(scope.key_codec, scope.key_groups, scope.max_parallelism, scope.operator_name)
        self._access = StateAccess(self.context, self._keys, store, scope.operator_name, self._spill)
        self._access.where = scope.where or f"operator '{scope.operator_name}'"
        self._access.room = max(self._cache_limit, _EPOCH_CACHE)
        self.ttl = TtlCleanup(scope.key_groups, clock)
        self._cleaned_up = False
        self._states: dict[str, KeyedState] = {}
        self._timers: dict[str, TimerQueue] = {}
        self._committed: Stamp | None = None
        #: Why changes of this epoch are lost.
        self._not_written: BaseException | None = None
        stored = store.get(REGISTRY_KEY)
        if stored is None:
            self._registry = StateRegistry(scope.key_codec.snapshot(), scope.key_version)
        else:
            self._registry = StateRegistry.decode(stored)
            scope.key_codec.require_same(self._registry.key_serializer, scope.operator_name)
        self._stored_registry = stored
        self._names_at_first = {meta.name for meta in self._registry.states()}
        #: What was migrated since this object was made.
        self.migrations: list[StateMigrated] = []

    # Registration

    def state(self, descriptor: StateDescriptor, namespace_type: Any = None, owned: bool = False) -> Any:
        """The state of a descriptor: always the same object for one name. ``owned`` is for an operator that shows its
        values to nobody.

        Restored state is checked against the descriptor here, and rewritten if its type or version needs that, or if it
        has got or lost a time to live.
        """
        namespaces = None if namespace_type is None else KeyCodec.for_type(resolve(namespace_type))
        serializers = descriptor.serializers()
        snapshots = {"value": serializers["value"].snapshot()}
        if isinstance(descriptor, MapStateDescriptor):
            snapshots["map_key"] = KeyCodec.for_type(descriptor.key_type_info).snapshot()
        if namespaces is not None:
            snapshots["namespace"] = namespaces.snapshot()
        ttl = descriptor.ttl_config
        version = descriptor.versions.current
        wanted = StateMeta(descriptor.get_name(), _NO_ID, descriptor.kind, snapshots, ttl is not None, version)
        meta = self._register(wanted, descriptor)
        if meta.name not in self._states:
            state = make_state(descriptor, self._access, meta, namespaces, self.ttl.time, owned)
            if isinstance(state, ExpiringState):
                self.ttl.add(meta, state)
            self._states[meta.name] = state
        elif ttl != self.ttl.config_of(meta.name):
            raise StateDescriptorError(
                f"Operator '{self.scope.operator_name}' asks for the {descriptor.describe()} with two different times "
                f"to live: {self.ttl.config_of(meta.name)} and {ttl}. Use one descriptor, or two names."
            )
        return self._states[meta.name]

    def timers(self, name: str, domain: TimeDomain, namespace_type: Any = None) -> TimerQueue:
        """The timers of one service name and domain: always the same object."""
        namespaces = None if namespace_type is None else KeyCodec.for_type(resolve(namespace_type))
        snapshots = {} if namespaces is None else {"namespace": namespaces.snapshot()}
        meta = self._register(StateMeta(f"_timers/{domain.name.lower()}/{name}", _NO_ID, TIMERS, snapshots), None)
        if meta.name not in self._timers:
            self._timers[meta.name] = TimerQueue(self._access, meta, namespaces)
        return self._timers[meta.name]

    def states_meta(self) -> tuple[StateMeta, ...]:
        """All states of the store, those included that were restored and not asked for."""
        return self._registry.states()

    def restored_names(self) -> set[str]:
        """The names of the states that were there before anybody asked for one in this process."""
        return self._names_at_first

    @property
    def migrated_in(self) -> int:
        """The last epoch in which stored entries were migrated; -1 when there was none."""
        stored = self.store.get(MIGRATED)
        return -1 if stored is None else read_number(stored)

    def adopt_keys(self, other: KeyedStateBackend) -> None:
        """Go on with what another backend, which is of no use any more, knows of keys, if it is the same here: their
        stored forms, and which of them were in use.
        """
        mine, its = self.scope, other.scope
        same_range = (mine.key_groups, mine.max_parallelism) == (its.key_groups, its.max_parallelism)
        if same_range and mine.key_codec.snapshot() == its.key_codec.snapshot():
            self._keys = self._access.keys = other._keys
            for name, state in self._states.items():
                if name in other._states:
                    state.adopt_keys(other._states[name])

    def apply_to_all_keys(self, descriptor: StateDescriptor, function: Callable[[Any, Any], Any]) -> None:
        """Call ``function(key, state)`` for every key of the subtask that has the state, with that key as the current
        one. What the function does to the state is done to that key's. A key whose state has expired does not have it.
        """
        state, ttl = self.state(descriptor), descriptor.ttl_config
        codec, context = self.scope.key_codec, self.context
        (meta,) = self._registry.forms(descriptor.get_name())
        # Keys are found in the store: those that have the state only in a cache must be there too.
        self.flush()
        before = context.key, context.identity
        expired_at = None if ttl is None else deadline(ttl, self.ttl.time.now)
        try:
            for key in stored_keys(self.store, self.scope.key_groups, meta.state_id, codec, expired_at):
                context.key, context.identity = key, codec.identity(key)
                function(key, state)
        finally:
            context.key, context.identity = before

    def key_column(self, keys: Sequence[Any]) -> pa.Array:
        """Keys as bulk access takes them."""
        return self._keys.column.write(keys)

    def identified(self, keys: pa.Array) -> tuple[Sequence[Hashable], list[Any]]:
        """What caches know the keys of a column by, and the keys."""
        return next(self._keys.slices(keys, len(keys))) if len(keys) else ((), [])

    def timers_ordered_by(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> list[bytes]:
        """For each of several keys: by what timers of one time and namespace fire one after the other."""
        known = len(self._keys)
        parts = self._keys.many(dict(zip(identities, keys, strict=True)))
        self._access.make_room(len(self._keys) - known)
        return [group + sized_key for group, sized_key in parts]

    # Epochs

    def begin_batch(self, rows: int = 0) -> None:
        """So many rows, or timers, come next."""
        self.ttl.begin_batch(rows)

    def expect(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        """Rows of these keys come next."""
        for state in self._states.values():
            state.expect(identities, keys)

    def flush(self) -> None:
        """Write what changed to the store's transaction. After one that failed nothing can be committed, whoever has
        caught the error: what it took from the caches is not in the store.
        """
        if self._not_written is not None:
            raise StateError(
                f"State of operator '{self.scope.operator_name}' could not be written earlier in this epoch "
                f"({type(self._not_written).__name__}: {self._not_written}), so the epoch cannot be committed."
            ) from self._not_written
        try:
            self._write_changes()
        except BaseException as error:
            self._not_written = error
            raise

    def end_epoch(self) -> None:
        """Nothing more is read or changed in this epoch: write what changed, and clean up expired state. For whoever
        reads the store's transaction then; ``commit`` does it too. Only the first call of an epoch cleans up.
        """
        self.flush()
        if not self._cleaned_up:
            self._cleaned_up = True
            self.ttl.run(self.store, self._keys)

    def commit(self, stamp: Stamp) -> None:
        """End the epoch, commit the store, and keep what may be kept for the next one."""
        self.end_epoch()
        self.store.commit(stamp)
        self._committed = stamp
        self._cleaned_up = False
        self.context.clear()
        for state in self._states.values():
            state.drop_empty_namespaces()
        cached = sum(state.cached_entries() for state in self._states.values())
        excess = cached - self._cache_limit
        for state in self._states.values():
            if excess > 0:
                excess = state.trim(excess)
        if len(self._keys) > self._cache_limit:
            self._keys.clear()
        self._access.room = max(self._cache_limit, _EPOCH_CACHE) - min(cached, self._cache_limit)

    def resume(self, base: Stamp) -> bool:
        """Begin the epoch after ``base``. True if this object may go on: ``base`` is what it committed last.

        False: the transaction is open, but this object is of no further use, and a new one is to be made.
        """
        mine, self._committed = self._committed == base, None
        self.store.begin(base)
        return mine

    # Inside

    def _write_changes(self) -> None:
        pending = Pending()
        for state in self._states.values():
            state.collect(pending)
        for queue in self._timers.values():
            queue.collect(pending)
        registry = self._registry.encode()
        if registry != self._stored_registry:
            pending.writes.append((REGISTRY_KEY, registry))
            self._stored_registry = registry
        for start, end in pending.ranges:
            self.store.delete_range(start, end)
        if pending.writes:
            self.store.write(pending.writes)

    def _register(self, wanted: StateMeta, descriptor: StateDescriptor | None) -> StateMeta:
        """The state of a name, whose id is not known to whoever asks for it."""
        if wanted.name in self._states or wanted.name in self._timers:
            (known,) = self._registry.forms(wanted.name)
            if msgspec.structs.replace(wanted, state_id=known.state_id) != known:
                raise self._disagreement(known, wanted)
            return known
        known_forms = self._stored_forms(wanted.name, () if descriptor is None else descriptor.former_names)
        meta = self._migrated(known_forms, wanted, descriptor)
        for form in known_forms:
            self._registry.remove(form)
        self._registry.put(meta)
        return meta

    def _stored_forms(self, name: str, former_names: tuple[str, ...]) -> list[StateMeta]:
        taken = next((former for former in former_names if former in self._states), None)
        if taken is not None:
            raise StateDescriptorError(
                f"Operator '{self.scope.operator_name}' declares the state '{name}' as renamed from '{taken}', which "
                "it uses as well. Leave one of them out."
            )
        return [form for one in (name, *former_names) for form in self._registry.forms(one)]

    def _migrated(
        self, known_forms: list[StateMeta], wanted: StateMeta, descriptor: StateDescriptor | None
    ) -> StateMeta:
        """Make one state of the forms that are stored, in the running transaction."""
        if not known_forms:
            return msgspec.structs.replace(wanted, state_id=self._registry.next_id())
        scope, now = self.scope, self.ttl.time.read()
        forms = [
            Form(one.state_id, one.name, one.version, rewrite_for(scope.operator_name, one, wanted, descriptor, now))
            for one in known_forms
        ]
        alone = len(forms) == 1 and (forms[0].rewrite is None or forms[0].rewrite.entry is None)
        state_id = forms[0].state_id if alone else self._registry.next_id()
        if not alone or forms[0].rewrite is not None:
            rewriter = Rewriter(self.store, scope.key_groups, scope.operator_name, scope.key_codec.decode)
            for number, form in enumerate(forms):
                versions = form.version, wanted.version
                progress = Progress(scope.operator_name, scope.subtask, wanted.name, versions)
                rewriter.rewrite(form, state_id, progress, beside=number > 0)
                self.migrations.append(progress.done())
            stamp = self.store.stamp()
            assert stamp is not None, "a transaction is open"
            self.store.write([(MIGRATED, number_bytes(stamp.epoch + 1))])
        return msgspec.structs.replace(wanted, state_id=state_id)

    def _disagreement(self, known: StateMeta, meta: StateMeta) -> StateDescriptorError:
        def text(one: StateMeta) -> str:
            types = ", ".join(f"{role} {snapshot['type']}" for role, snapshot in sorted(one.serializers.items()))
            version = f" in version {one.version}" if one.version else ""
            return f"{one.kind} state of {types or 'no types'}{version}" + (" with a time to live" if one.ttl else "")

        return StateDescriptorError(
            f"Operator '{self.scope.operator_name}' registers the name '{known.name}' twice: as {text(known)}, and as "
            f"{text(meta)}. Use one descriptor, or two names."
        )

    def _spill(self) -> None:
        """Write early and empty the caches."""
        self.flush()
        for state in self._states.values():
            state.drop_caches()
        self._keys.clear()
        self._access.room = max(self._cache_limit, _EPOCH_CACHE)
