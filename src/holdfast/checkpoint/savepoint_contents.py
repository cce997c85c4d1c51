"""What is in a savepoint, in words: the part of its ``_metadata`` that is for people and for other programs."""

from __future__ import annotations

from typing import Any

from holdfast.state.handles import CheckpointMetadata, FileHandle, OperatorRecord
from holdfast.types.typeinfo import TypeInformation


def describe_states(metadata: CheckpointMetadata) -> list[dict[str, Any]]:
    """Every state of a canonical savepoint: whose it is, its name, kind and types, its Parquet files and their rows."""
    return [state for record in metadata.operators for state in _States(record).found.values()]


class _States:
    """The states of one operator, by kind and name, over all its subtasks."""

    def __init__(self, record: OperatorRecord) -> None:
        self.found: dict[tuple[str, str], dict[str, Any]] = {}
        self._owner = {"operator": record.name, "uid": record.uid, "operator_id": record.operator_id}
        for snapshot in record.subtasks:
            if snapshot.keyed is not None:
                files = snapshot.keyed.files
                for meta in snapshot.keyed.states:
                    types = {"key": snapshot.keyed.key_serializer, **meta.serializers}
                    self._add(meta.kind, meta.name, types, [f.handle for f in files if f.state_id == meta.state_id])
            for table in snapshot.operator_tables:
                self._add(table.mode.lower(), table.name, table.serializers, [table.handle])
            if snapshot.raw_keyed is not None:
                self._add("raw keyed", "", {}, [snapshot.raw_keyed.handle])
            if snapshot.raw_operator is not None:
                self._add("raw operator", "", {}, [snapshot.raw_operator])

    def _add(self, kind: str, name: str, serializers: dict[str, Any], handles: list[FileHandle | None]) -> None:
        types = {role: TypeInformation.from_json(one["type"]).describe() for role, one in serializers.items()}
        blank: dict[str, Any] = {**self._owner, "state": name, "kind": kind, "types": types, "rows": 0, "files": []}
        state = self.found.setdefault((kind, name), blank)
        for handle in handles:
            if handle is not None and handle.table is not None:
                state["rows"] += handle.table.rows
                state["files"].append(handle.path)
