"""What all kinds of keyed state share: caches by namespace, bounded and flushed together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from holdfast.errors import StateAccessError, StateError
from holdfast.state.handles import StateMeta
from holdfast.state.key_table import KeyContext, KeyTable
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import HEAD_LENGTH, id_bytes, read_sized, sized
from holdfast.state.store import LocalStore

#: Sized bytes of the namespace that states have unless an operator sets another one.
VOID = sized(b"")
#: Before every other namespace, so that none has the bytes of VOID.
_NAMESPACE_TAG = b"n"


def namespace_bytes(codec: KeyCodec, namespace: Any) -> bytes:
    """A namespace as it stands in stored keys."""
    return sized(_NAMESPACE_TAG + codec.encode(namespace))


def read_namespace(codec: KeyCodec | None, data: bytes) -> Any:
    """The namespace of an unsized part of a stored key."""
    return codec.decode(data[len(_NAMESPACE_TAG) :]) if data and codec is not None else None


class StateAccess:
    """What the states of one backend work with. ``room`` is how many cache entries may still be made before a spill."""

    __slots__ = ("context", "empty_caches", "keys", "operator_name", "room", "store", "where")

    def __init__(
        self,
        context: KeyContext,
        keys: KeyTable,
        store: LocalStore,
        operator_name: str,
        empty_caches: Callable[[], None],
    ) -> None:
        self.context = context
        self.keys = keys
        self.store = store
        self.operator_name = operator_name
        #: How errors name the subtask.
        self.where = ""
        self.room = 0
        #: Writes what changed, and empties all caches.
        self.empty_caches = empty_caches

    def make_room(self, entries: int = 1) -> None:
        """Call before entries are added to a cache: it may empty all caches."""
        self.room -= entries
        if self.room < 0:
            self.empty_caches()


class Cached:
    """What a cache holds of one key: the bytes that the stored keys of its entries begin with, and when it was changed.

    It is found by the key once for each access. What a flush needs is in it, and is not looked up again.
    """

    __slots__ = ("changed_in", "head")

    def __init__(self, head: bytes) -> None:
        self.head = head
        #: The number of the flush that writes it, or wrote it last.
        self.changed_in = -1


class Pending:
    """What a flush writes: ranges to delete first, then entries."""

    __slots__ = ("ranges", "writes")

    def __init__(self) -> None:
        self.ranges: list[tuple[bytes, bytes]] = []
        self.writes: list[tuple[bytes, bytes | None]] = []


class Space:
    """The cache of one namespace, by the identities of keys."""

    __slots__ = ("live", "namespace")

    def __init__(self, namespace: bytes) -> None:
        self.namespace = namespace
        self.live: dict[Hashable, Any] = {}


class KeyedState(ABC):
    """A state of a backend. ``_live`` is the cache of the current namespace; ``_dirty`` is what the flush with the
    number ``_flush`` is to write, of all of them.
    """

    def __init__(self, access: StateAccess, meta: StateMeta, namespaces: KeyCodec | None) -> None:
        self._access = access
        self._context = access.context
        self._store = access.store
        self.name = meta.name
        self._id = id_bytes(meta.state_id)
        self._namespaces = namespaces
        self._namespace: Any = None
        self._dirty: list[Any] = []
        self._flush = 0
        self._spaces: dict[Hashable, Space] = {None: Space(VOID)}
        self._enter(self._spaces[None])

    def set_current_namespace(self, namespace: Any) -> None:
        """Work on another namespace from now on; None is the one that states have by default."""
        if namespace is self._namespace:
            return
        identity = None if namespace is None else self._codec().identity(namespace)
        space = self._spaces.get(identity)
        if space is None:
            self._access.make_room()
            encoded = VOID if namespace is None else namespace_bytes(self._codec(), namespace)
            space = self._spaces[identity] = Space(encoded)
        self._namespace = namespace
        self._enter(space)

    def expect(self, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        """Rows of these keys come next: what is likely to be read may be read ahead."""

    def adopt_keys(self, older: Any) -> None:
        """Go on with the keys that an object of the same state has in its cache, which is of no use any more. Their
        state is another one by now.
        """

    def collect(self, pending: Pending) -> None:
        """Hand over what changed, and take it as written."""
        if self._dirty:
            self._collect(self._dirty, pending)
            self._dirty = []
            self._flush += 1

    @abstractmethod
    def _collect(self, changed: list[Any], pending: Pending) -> None:
        """Hand over what these objects of the caches have that is not written."""

    def drop_caches(self) -> None:
        """Forget what is cached; nothing may be dirty."""
        for space in self._spaces.values():
            space.live.clear()
        kept = (self._spaces[None], self._space)
        self._spaces = {identity: space for identity, space in self._spaces.items() if space in kept}

    def drop_empty_namespaces(self) -> None:
        """Forget which keys have nothing in a namespace, and the namespaces of which nothing else is cached: those of
        windows come and go. Nothing may be dirty.
        """
        for space in self._spaces.values():
            if space.namespace is not VOID:
                for identity in [identity for identity, cached in space.live.items() if self._is_empty(cached)]:
                    del space.live[identity]
        kept = (self._spaces[None], self._space)
        self._spaces = {identity: space for identity, space in self._spaces.items() if space.live or space in kept}

    @abstractmethod
    def _is_empty(self, cached: Any) -> bool:
        """Whether a cached object says that the key has nothing."""

    def cached_entries(self) -> int:
        return sum(self._weigh(cached) for space in self._spaces.values() for cached in space.live.values())

    def trim(self, entries: int) -> int:
        """Forget at least so many cached entries, oldest first, if there are; how many are left to forget elsewhere."""
        for space in self._spaces.values():
            for identity in list(space.live):
                if entries <= 0:
                    return 0
                entries -= self._weigh(space.live.pop(identity))
        return max(entries, 0)

    @abstractmethod
    def _weigh(self, cached: Any) -> int:
        """How many entries a cached object counts for."""

    def _mark(self, cached: Cached) -> None:
        """It was changed."""
        if cached.changed_in != self._flush:
            cached.changed_in = self._flush
            self._dirty.append(cached)

    @property
    def label(self) -> str:
        """How errors name it."""
        return f"state '{self.name}'"

    def _placed(self, error: StateError, cached: Cached) -> StateError:
        """What was raised for a key that need not be the current one, with its place."""
        key = f"key {self._key_of(cached.head)!r:.100}"
        return error.at(state=self.label, key=key, operator=self._access.where)

    def _enter(self, space: Space) -> None:
        self._space = space
        self._live = space.live

    def _codec(self) -> KeyCodec:
        if self._namespaces is None:
            raise StateAccessError(
                f"State '{self.name}' of operator '{self._access.operator_name}' was registered without a type of "
                f"namespaces; give one to use them."
            )
        return self._namespaces

    def _current_head(self) -> bytes:
        """The stored key of the current key's entry, or what the stored keys of its entries begin with."""
        group, sized_key = self._access.keys.parts(self._context.identity, self._context.key)
        return group + self._id + sized_key + self._space.namespace

    def _heads(self, keys: dict[Hashable, Any]) -> list[bytes]:
        """The heads of many keys by identity."""
        own, namespace = self._id, self._space.namespace
        return [group + own + sized_key + namespace for group, sized_key in self._access.keys.many(keys)]

    def _key_of(self, head: bytes) -> Any:
        """The key whose entries begin with ``head``."""
        return self._access.keys.codec.decode(read_sized(head, HEAD_LENGTH)[0])


class MergingNamespaces(KeyedState):
    """States whose namespaces can be merged."""

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Make the current key's state of ``sources`` part of that of ``target``, and empty them."""
        current = self._namespace
        taken: list[Any] = []
        for source in sources:
            self.set_current_namespace(source)
            taken += self._take()
        self.set_current_namespace(target)
        if taken:
            self._absorb(taken)
        self.set_current_namespace(current)

    @abstractmethod
    def _take(self) -> list[Any]:
        """Remove the current key's state and give its parts."""

    @abstractmethod
    def _absorb(self, parts: list[Any]) -> None:
        """Add parts to the current key's state."""
