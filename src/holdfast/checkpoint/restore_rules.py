"""Which stored operator belongs to which operator of a program, and what becomes of its state. Pure.

``decide`` finds out everything and raises nothing: a rehearsal shows it. ``match_operators`` is the same for a job
that is about to start, and raises where something is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from holdfast.checkpoint.job_facts import JobOperator
from holdfast.errors import RestoreError
from holdfast.state.handles import CheckpointMetadata, OperatorRecord, SubtaskSnapshot

IGNORE_UNCLAIMED_OPTION = "execution.state-recovery.ignore-unclaimed-state"
CHANGE_MAX_PARALLELISM_OPTION = "holdfast.recovery.change-max-parallelism"


@dataclass(frozen=True)
class RestoreRules:
    """What is expected of a snapshot, and what was allowed. ``key_hash`` names the function that spreads keys."""

    key_hash: str
    allow_non_restored_state: bool = False
    change_max_parallelism: bool = False


@dataclass(frozen=True)
class OperatorMatch:
    """One operator of the program: what it restores, and why it cannot."""

    operator: JobOperator
    #: None: the snapshot does not have the operator, which starts empty.
    record: OperatorRecord | None
    #: Its own, or the snapshot's where that was adopted.
    max_parallelism: int
    refusal: str | None = None
    warnings: tuple[str, ...] = ()
    #: Parts of the record that are left behind, because that was allowed: ``keyed state``, ``transactions``.
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Matching:
    """What a restore does with each operator of the program and of the snapshot."""

    operators: tuple[OperatorMatch, ...]
    #: Stored operators with state that no operator of the program claims.
    unclaimed: tuple[OperatorRecord, ...]
    #: Why the snapshot as a whole is refused.
    refusal: str | None = None
    #: Why the unclaimed state is; None when it is left behind.
    unclaimed_refusal: str | None = None

    @property
    def records(self) -> dict[str, OperatorRecord]:
        """The records to restore, by operator id; operators without an entry start empty."""
        return {m.operator.operator_id: m.record for m in self.operators if m.record is not None}

    @property
    def max_parallelism(self) -> dict[str, int]:
        return {match.operator.operator_id: match.max_parallelism for match in self.operators}

    def refusals(self) -> list[str]:
        """The reasons why nothing can start from the snapshot."""
        found = [self.refusal, self.unclaimed_refusal, *(match.refusal for match in self.operators)]
        return [reason for reason in found if reason is not None]

    def warnings(self) -> list[str]:
        """What somebody who starts from the snapshot should know."""
        left = [
            f"State of operator '{record.name}' ({record.operator_id}) is left behind: no operator of the program "
            "claims it."
            for record in self.unclaimed
        ]
        return [*(warning for match in self.operators for warning in match.warnings), *left]


def match_operators(metadata: CheckpointMetadata, operators: Sequence[JobOperator], rules: RestoreRules) -> Matching:
    """RestoreError where snapshot and program do not fit."""
    matching = decide(metadata, operators, rules)
    for reason in matching.refusals():
        raise RestoreError(reason)
    return matching


def decide(metadata: CheckpointMetadata, operators: Sequence[JobOperator], rules: RestoreRules) -> Matching:
    """What a restore does, refusals included."""
    stored = {record.operator_id: record for record in metadata.operators}
    claimed: dict[str, JobOperator] = {}
    matches: list[OperatorMatch] = []
    for operator in operators:
        record = _record_of(operator, stored)
        if record is None:
            matches.append(OperatorMatch(operator, None, operator.max_parallelism))
            continue
        first = claimed.setdefault(record.operator_id, operator)
        matches.append(_match(operator, record, rules) if first is operator else _second_claim(first, operator, record))
    unclaimed = _unclaimed(metadata, claimed.keys())
    refusal, unclaimed_refusal = _other_key_hash(metadata, rules), _refuse_unclaimed(metadata, unclaimed, rules)
    return Matching(_with_finished(matches), unclaimed, refusal, unclaimed_refusal)


def holds_state(record: OperatorRecord) -> bool:
    """Whether anything would be lost without the record."""
    return any(
        _has_keyed_entries(snapshot)
        or snapshot.operator_state is not None
        or snapshot.operator_tables
        or snapshot.raw_operator is not None
        or snapshot.transactions
        for snapshot in record.subtasks
    )


def _has_keyed_entries(snapshot: SubtaskSnapshot) -> bool:
    managed = snapshot.keyed is not None and snapshot.keyed.has_entries
    return managed or _has_raw_keyed_state(snapshot)


def _has_raw_keyed_state(snapshot: SubtaskSnapshot) -> bool:
    return snapshot.raw_keyed is not None


def _record_of(operator: JobOperator, stored: dict[str, OperatorRecord]) -> OperatorRecord | None:
    if operator.uid_hash is not None and operator.uid_hash in stored:
        return stored[operator.uid_hash]
    return stored.get(operator.operator_id)


def _match(operator: JobOperator, record: OperatorRecord, rules: RestoreRules) -> OperatorMatch:
    if not holds_state(record):
        return OperatorMatch(operator, record, operator.max_parallelism)
    warnings = []
    if operator.uid is None and record.operator_id == operator.operator_id:
        warnings.append(
            f"Operator '{operator.name}' has no uid: its state was found by its position in the program "
            f"({operator.operator_id}), and is not found any more once the program changes. Give it a uid, and "
            f"set_uid_hash('{operator.operator_id}') for the first start with it."
        )
    dropped = _without_a_place(operator, record)
    refusal = _refuse_dropped(operator, record, dropped, rules)
    wanted = _wanted_max_parallelism(operator, record)
    if wanted != record.max_parallelism:
        refusal = refusal or _refuse_change(operator, record, wanted, rules)
        warnings.append(_cost_of_change(operator, record, wanted))
    if dropped:
        warnings.append(f"The {' and '.join(dropped)} of operator '{operator.name}' is left behind.")
    return OperatorMatch(operator, record, wanted, refusal, tuple(warnings), dropped)


def _second_claim(first: JobOperator, operator: JobOperator, record: OperatorRecord) -> OperatorMatch:
    refusal = (
        f"operators {first.name!r} and {operator.name!r} both claim the state of operator {record.operator_id} "
        f"({record.name!r}); give them different uids and uid hashes"
    )
    return OperatorMatch(operator, None, operator.max_parallelism, refusal)


def _other_key_hash(metadata: CheckpointMetadata, rules: RestoreRules) -> str | None:
    if metadata.key_hash == rules.key_hash:
        return None
    return (
        f"checkpoint {metadata.checkpoint_id} spreads keys with {metadata.key_hash}, this program with "
        f"{rules.key_hash}: its keyed state would be looked for in the wrong subtasks. Restore it with the version of "
        "Holdfast that wrote it."
    )


# -- operators whose input had ended


def _with_finished(matches: Sequence[OperatorMatch]) -> tuple[OperatorMatch, ...]:
    """Whoever had finished stays finished, so nothing more may come to it. Inputs stand before those they feed."""
    over: set[str] = set()
    names = {match.operator.operator_id: match.operator.name for match in matches}
    result: list[OperatorMatch] = []
    for match in matches:
        operator, record = match.operator, match.record
        fed = [names[source] for source in operator.inputs if source not in over]
        if record is None:
            # A new operator behind inputs that have ended gets nothing either.
            ended = bool(operator.inputs) and not fed
        elif record.finished and fed and not holds_state(record):
            match, ended = OperatorMatch(operator, None, operator.max_parallelism), False
        else:
            ended = record.finished
            if ended and fed:
                match = replace(match, refusal=match.refusal or _refuse_input(operator, fed))
        if ended:
            over.add(operator.operator_id)
        result.append(match)
    return tuple(result)


def _refuse_input(operator: JobOperator, fed: Sequence[str]) -> str:
    return (
        f"the input of operator {operator.name!r} ({operator.operator_id}) had ended, and in this program it gets rows "
        f"of {' and '.join(map(repr, fed))}: its event time is at its end, and its timers will not fire any more. Take "
        f"the new input away, or give the operator another uid, and drop its state with {IGNORE_UNCLAIMED_OPTION}: "
        "true (allowNonRestoredState)."
    )


# -- state that nobody takes


def _unclaimed(metadata: CheckpointMetadata, claimed: Collection[str]) -> tuple[OperatorRecord, ...]:
    return tuple(record for record in metadata.operators if record.operator_id not in claimed and holds_state(record))


def _refuse_unclaimed(
    metadata: CheckpointMetadata, unclaimed: Sequence[OperatorRecord], rules: RestoreRules
) -> str | None:
    if not unclaimed or rules.allow_non_restored_state:
        return None
    names = ", ".join(f"{record.operator_id} ({record.name!r}, uid {record.uid!r})" for record in unclaimed)
    return (
        f"checkpoint {metadata.checkpoint_id} has state of operators that are not in this program: {names}. Give the "
        "operator its uid back (one without a uid is claimed with set_uid_hash and its id), or drop the state with "
        f"{IGNORE_UNCLAIMED_OPTION}: true (allowNonRestoredState)."
    )


def _without_a_place(operator: JobOperator, record: OperatorRecord) -> tuple[str, ...]:
    """What the record holds and the operator can do nothing with."""
    keyed = not operator.keyed and any(map(_has_keyed_entries, record.subtasks))
    transactions = not operator.is_sink and any(snapshot.transactions for snapshot in record.subtasks)
    return (*(["keyed state"] if keyed else []), *(["transactions"] if transactions else []))


def _refuse_dropped(
    operator: JobOperator, record: OperatorRecord, dropped: Sequence[str], rules: RestoreRules
) -> str | None:
    if not dropped or rules.allow_non_restored_state:
        return None
    reasons = {"keyed state": "is not behind a key_by", "transactions": "is not a sink"}
    return (
        f"the snapshot has {' and '.join(dropped)} of operator {record.name!r}, and in this program {operator.name!r} "
        f"({operator.operator_id}) {' and '.join(reasons[part] for part in dropped)}. Give the operator another uid "
        f"and the state back to one like the old, or drop the state with {IGNORE_UNCLAIMED_OPTION}: true "
        "(allowNonRestoredState)."
    )


# -- maximum parallelism


def _wanted_max_parallelism(operator: JobOperator, record: OperatorRecord) -> int:
    if operator.max_parallelism_explicit or operator.parallelism > record.max_parallelism:
        return operator.max_parallelism
    return record.max_parallelism


def _refuse_change(operator: JobOperator, record: OperatorRecord, wanted: int, rules: RestoreRules) -> str | None:
    who, stored = f"operator {operator.name!r} ({operator.operator_id})", record.max_parallelism
    if rules.change_max_parallelism:
        if not any(map(_has_raw_keyed_state, record.subtasks)):
            return None
        return (
            f"the maximum parallelism of {who} cannot change from {stored} to {wanted}: it has raw keyed state, bytes "
            f"of its own per key group in which no keys can be found. Set {stored}."
        )
    change = f"change it with {CHANGE_MAX_PARALLELISM_OPTION}: true. {_cost_of_change(operator, record, wanted)}"
    if operator.parallelism > stored:
        return (
            f"{who} has parallelism {operator.parallelism}, and its state was taken with maximum parallelism "
            f"{stored}: reduce its parallelism to at most {stored}, or {change}"
        )
    return (
        f"{who} sets maximum parallelism {wanted}, and its state was taken with {stored}: set {stored}, or none, or "
        f"{change}"
    )


def _cost_of_change(operator: JobOperator, record: OperatorRecord, wanted: int) -> str:
    size = sum(handle.size for s in record.subtasks if s.keyed is not None for handle in s.keyed.handles())
    return (
        f"With another maximum parallelism ({record.max_parallelism} to {wanted}) the key groups of operator "
        f"'{operator.name}' are computed anew from its keys: each of its {operator.parallelism} subtasks reads all "
        f"{size} bytes of its keyed state instead of a share ({operator.parallelism * size} bytes in all), and the "
        "next checkpoint is full."
    )
