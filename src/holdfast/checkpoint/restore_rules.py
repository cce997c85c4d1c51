"""Which stored operator belongs to which operator of a program. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from holdfast.checkpoint.job import JobOperator
from holdfast.errors import RestoreError
from holdfast.state.handles import CheckpointMetadata, OperatorRecord

IGNORE_UNCLAIMED_OPTION = "execution.state-recovery.ignore-unclaimed-state"


@dataclass(frozen=True)
class RestorePlan:
    """What each operator of the program restores; operators without an entry in ``records`` start empty."""

    records: dict[str, OperatorRecord]
    #: for every operator of the program: its own maximum parallelism, or the snapshot's where that was adopted
    max_parallelism: dict[str, int]
    #: stored operators with state that no operator of the program claims, skipped because that was allowed
    skipped: tuple[OperatorRecord, ...]


def match_operators(
    metadata: CheckpointMetadata,
    operators: Sequence[JobOperator],
    key_hash: str,
    allow_non_restored_state: bool = False,
) -> RestorePlan:
    """RestoreError where snapshot and program do not fit."""
    if metadata.key_hash != key_hash:
        raise RestoreError(
            f"checkpoint {metadata.checkpoint_id} spreads keys with {metadata.key_hash}, this program with {key_hash}: "
            "its keyed state would be looked for in the wrong subtasks. Restore it with the version of Holdfast that "
            "wrote it."
        )
    stored = {record.operator_id: record for record in metadata.operators}
    records: dict[str, OperatorRecord] = {}
    claimed: dict[str, JobOperator] = {}
    for operator in operators:
        record = _record_of(operator, stored)
        if record is None:
            continue
        other = claimed.setdefault(record.operator_id, operator)
        if other is not operator:
            raise RestoreError(
                f"operators {other.name!r} and {operator.name!r} both claim the state of operator {record.operator_id} "
                f"({record.name!r}); give them different uids and uid hashes"
            )
        records[operator.operator_id] = record
    skipped = _unclaimed(metadata, claimed.keys(), allow_non_restored_state)
    adopted = {
        operator.operator_id: _max_parallelism(operator, records.get(operator.operator_id)) for operator in operators
    }
    return RestorePlan(records, adopted, skipped)


def holds_state(record: OperatorRecord) -> bool:
    return any(
        snapshot.transactions
        or any(
            held is not None
            for held in (snapshot.keyed, snapshot.operator_state, snapshot.raw_keyed, snapshot.raw_operator)
        )
        for snapshot in record.subtasks
    )


def _record_of(operator: JobOperator, stored: dict[str, OperatorRecord]) -> OperatorRecord | None:
    if operator.uid_hash is not None and operator.uid_hash in stored:
        return stored[operator.uid_hash]
    return stored.get(operator.operator_id)


def _unclaimed(
    metadata: CheckpointMetadata, claimed: Collection[str], allow_non_restored_state: bool
) -> tuple[OperatorRecord, ...]:
    left = tuple(record for record in metadata.operators if record.operator_id not in claimed and holds_state(record))
    if left and not allow_non_restored_state:
        names = ", ".join(f"{record.operator_id} ({record.name!r}, uid {record.uid!r})" for record in left)
        raise RestoreError(
            f"checkpoint {metadata.checkpoint_id} has state of operators that are not in this program: {names}. Give "
            f"the operator its uid back, or drop the state with {IGNORE_UNCLAIMED_OPTION}: true "
            "(allowNonRestoredState)."
        )
    return left


def _max_parallelism(operator: JobOperator, record: OperatorRecord | None) -> int:
    if record is None or not holds_state(record):
        return operator.max_parallelism
    if operator.parallelism > record.max_parallelism:
        raise RestoreError(
            f"operator {operator.name!r} ({operator.operator_id}) has parallelism {operator.parallelism}, and its "
            f"state was taken with maximum parallelism {record.max_parallelism}: reduce its parallelism to at most "
            f"{record.max_parallelism}"
        )
    if operator.max_parallelism_explicit and operator.max_parallelism != record.max_parallelism:
        raise RestoreError(
            f"operator {operator.name!r} ({operator.operator_id}) sets maximum parallelism {operator.max_parallelism}, "
            f"and its state was taken with {record.max_parallelism}. It cannot be changed: set "
            f"{record.max_parallelism}, or none."
        )
    return record.max_parallelism
