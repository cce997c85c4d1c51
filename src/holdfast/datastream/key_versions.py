"""Keys of a stream that change over a restore, as a program declares them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.errors import ProgramError
from holdfast.graph.stream_graph import KeyBy
from holdfast.state.key_migration import KeyMigrations

if TYPE_CHECKING:
    from holdfast.datastream.data_stream import KeyedStream


def check_versions(where: str, first: KeyBy, second: KeyBy) -> None:
    """Two streams whose keys are those of one operator."""
    versions = [one.migrations.versions.current for one in (first, second)]
    if versions[0] != versions[1]:
        raise ProgramError(
            f"{where}: the keys of the first have version {versions[0]}, those of the second {versions[1]}. They are "
            "keys of one state: give both the same migrate_key_from()."
        )


class KeyVersions:
    """What a keyed stream says of the version of its keys. The stream that is given back says it; this one does not."""

    _key_by: KeyBy

    def key_version(self, version: int) -> KeyedStream:
        """Set the version of the keys. Without it, it is one more than the highest given to ``migrate_key_from``."""
        versions = self._key_by.migrations.versions.copy()
        versions.set_version(version)
        return self._keyed_by(replace(self._key_by, migrations=replace(self._key_by.migrations, versions=versions)))

    def migrate_key_from(self, version: int, function: Any, merge: Any = None) -> KeyedStream:
        """When state with keys of ``version`` is restored, ``function`` makes of each key that of the next version.

        All state and timers of the operators behind move along. Two keys that become one are an error, unless ``merge``
        says what becomes of their values: ``merge(state_name, first, second)``. Both functions must depend on nothing
        but what they are given: they run in all tasks that restore.
        """
        if merge is not None and not callable(merge):
            raise ProgramError(
                f"migrate_key_from(): merge is {merge!r}; expected a function of a state's name and two values."
            )
        before = self._key_by.migrations
        versions = before.versions.copy()
        versions.add_step(version, function)
        return self._keyed_by(replace(self._key_by, migrations=KeyMigrations(versions, merge or before.merge)))

    def _keyed_by(self, key_by: KeyBy) -> KeyedStream:
        """This stream with other keys."""
        raise NotImplementedError
