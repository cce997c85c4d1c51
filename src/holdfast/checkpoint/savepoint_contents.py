"""What is in a savepoint, in words: the part of its ``_metadata`` that is for people and for other programs."""

from __future__ import annotations

from typing import Any

from holdfast.state.handles import CheckpointMetadata, FileHandle, OperatorRecord
from holdfast.types.typeinfo import TypeInformation


def describe_states(metadata: CheckpointMetadata) -> list[dict[str, Any]]:
    """Every state: whose it is, its name, kind and types, how many rows it has, and its Parquet files if it has any."""
    return [state for record in metadata.operators for state in _states_of(record)]


def _states_of(record: OperatorRecord) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}

    def state(name: str, kind: str, types: dict[str, Any]) -> dict[str, Any]:
        owner = {"operator": record.name, "uid": record.uid, "operator_id": record.operator_id}
        blank: dict[str, Any] = {
            **owner,
            "state": name,
            "kind": kind,
            "types": _texts(types),
            "rows": None,
            "files": [],
        }
        return found.setdefault((name, kind), blank)

    for snapshot in record.subtasks:
        if snapshot.keyed is not None:
            key = {"key": snapshot.keyed.key_serializer}
            by_id = {
                one.state_id: state(one.name, one.kind, {**key, **one.serializers}) for one in snapshot.keyed.states
            }
            for file in snapshot.keyed.files:
                if file.state_id is not None:
                    _add(by_id[file.state_id], file.handle)
        for table in snapshot.operator_tables:
            _add(state(table.name, table.mode.lower(), table.serializers), table.handle)
        if snapshot.raw_keyed is not None:
            _add(state("", "raw keyed", {}), snapshot.raw_keyed.handle)
        if snapshot.raw_operator is not None:
            _add(state("", "raw operator", {}), snapshot.raw_operator)
    return list(found.values())


def _add(state: dict[str, Any], handle: FileHandle | None) -> None:
    if handle is not None and handle.table is not None:
        state["rows"] = (state["rows"] or 0) + handle.table.rows
        state["files"].append(handle.path)


def _texts(serializers: dict[str, Any]) -> dict[str, str]:
    return {role: TypeInformation.from_json(one["type"]).describe() for role, one in serializers.items()}
