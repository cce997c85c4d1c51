"""What all kinds of keyed state share: caches by namespace, bounded and flushed together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from holdfast.errors import StateAccessError
from holdfast.state.handles import StateMeta
from holdfast.state.key_table import KeyContext, KeyTable
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import id_bytes, sized
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

    __slots__ = ("_spill", "context", "keys", "operator_name", "room", "store")

    def __init__(
        self, context: KeyContext, keys: KeyTable, store: LocalStore, operator_name: str, spill: Callable[[], None]
    ) -> None:
        self.context = context
        self.keys = keys
        self.store = store
        self.operator_name = operator_name
        self.room = 0
        self._spill = spill

    def make_room(self, entries: int = 1) -> None:
        """Call before entries are added to a cache: it may empty all caches."""
        self.room -= entries
        if self.room < 0:
            self._spill()


class Pending:
    """What a flush writes: ranges to delete first, then entries."""

    __slots__ = ("ranges", "writes")

    def __init__(self) -> None:
        self.ranges: list[tuple[bytes, bytes]] = []
        self.writes: list[tuple[bytes, bytes | None]] = []


class Space:
    """The cache of one namespace: by identity, ``live`` entries, and the user's keys of those that are ``dirty``.
    ``absent`` are identities that are known to have nothing in the store.
    """

    __slots__ = ("absent", "dirty", "live", "namespace")

    def __init__(self, namespace: bytes) -> None:
        self.namespace = namespace
        self.live: dict[Hashable, Any] = {}
        self.dirty: dict[Hashable, Any] = {}
        self.absent: set[Hashable] = set()


class KeyedState(ABC):
    """A state of a backend. ``_live`` and ``_dirty`` are those of the current namespace."""

    def __init__(self, access: StateAccess, meta: StateMeta, namespaces: KeyCodec | None) -> None:
        self._access = access
        self._context = access.context
        self._store = access.store
        self.name = meta.name
        self._id = id_bytes(meta.state_id)
        self._namespaces = namespaces
        self._namespace: Any = None
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

    @abstractmethod
    def collect(self, pending: Pending) -> None:
        """Hand over what changed, and take it as written."""

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
                for identity in [identity for identity, cell in space.live.items() if self._is_empty(cell)]:
                    del space.live[identity]
        kept = (self._spaces[None], self._space)
        self._spaces = {identity: space for identity, space in self._spaces.items() if space.live or space in kept}

    def _is_empty(self, cell: Any) -> bool:
        """Whether a cached object says that the key has nothing."""
        return cell is None

    def cached_entries(self) -> int:
        return sum(self._weigh(cell) for space in self._spaces.values() for cell in space.live.values())

    def trim(self, entries: int) -> int:
        """Forget at least so many cached entries, oldest first, if there are; how many are left to forget elsewhere."""
        for space in self._spaces.values():
            for identity in list(space.live):
                if entries <= 0:
                    return 0
                entries -= self._weigh(space.live.pop(identity))
        return max(entries, 0)

    def _weigh(self, cell: Any) -> int:
        """How many entries a cached object counts for."""
        return 1

    def _enter(self, space: Space) -> None:
        self._space = space
        self._live = space.live
        self._dirty = space.dirty

    def _codec(self) -> KeyCodec:
        if self._namespaces is None:
            raise StateAccessError(
                f"State '{self.name}' of operator '{self._access.operator_name}' was registered without a type of "
                f"namespaces; give one to use them."
            )
        return self._namespaces

    def _head(self, space: Space, identity: Hashable, key: Any) -> bytes:
        """The stored key of a key's entry, or what the stored keys of its entries begin with."""
        group, sized_key = self._access.keys.parts(identity, key)
        return group + self._id + sized_key + space.namespace

    def _heads(self, space: Space, keys: dict[Hashable, Any]) -> list[bytes]:
        """The heads of many keys by identity."""
        own, namespace = self._id, space.namespace
        return [group + own + sized_key + namespace for group, sized_key in self._access.keys.many(keys)]

    def _current_head(self) -> bytes:
        return self._head(self._space, self._context.identity, self._context.key)

    def _dirty_spaces(self) -> Iterator[Space]:
        """Namespaces with changes, their marks being reset once the caller has taken them."""
        for space in self._spaces.values():
            if space.dirty:
                yield space
                space.dirty.clear()
                space.absent.clear()


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
