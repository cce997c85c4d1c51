"""The result of a rehearsal: an object to look into, and a table to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.state.outcomes import Fate, StateOutcome

_HEADER = ("operator", "state", "kind", "outcome", "why")
#: Subtasks whose bytes are printed one by one.
_SHOWN_SUBTASKS = 8


@dataclass(frozen=True)
class OperatorPlan:
    """One operator of the program, or one that only the snapshot has."""

    operator_id: str
    name: str
    uid: str | None
    #: As stored and as in the program; None where it is not.
    parallelism: tuple[int | None, int | None]
    max_parallelism: tuple[int | None, int | None]
    states: tuple[StateOutcome, ...]
    #: What each of its subtasks reads of the snapshot's files.
    bytes_per_subtask: tuple[int, ...] = ()
    refusal: str | None = None
    warnings: tuple[str, ...] = ()

    def state(self, name: str) -> StateOutcome:
        """The outcome of the state of a name; KeyError when there is none."""
        found = next((outcome for outcome in self.states if outcome.state == name), None)
        if found is None:
            raise KeyError(f"operator {self.name!r} has no state {name!r}; it has {[one.state for one in self.states]}")
        return found

    def describe(self) -> str:
        uid = f" (uid {self.uid})" if self.uid is not None else ""
        return f"{self.name}{uid}"


@dataclass(frozen=True)
class RestorePlan:
    """What a job that starts from a snapshot would do with its state. ``print`` shows it as a table."""

    path: str
    checkpoint_id: int
    operators: tuple[OperatorPlan, ...]
    #: Why the snapshot as a whole is refused.
    refusal: str | None = None

    def operator(self, name: str) -> OperatorPlan:
        """The operator of a uid, else of a name; KeyError when there is none."""
        by_uid = [one for one in self.operators if one.uid == name]
        found = next(iter(by_uid or [one for one in self.operators if one.name == name]), None)
        if found is None:
            known = [one.describe() for one in self.operators]
            raise KeyError(f"no operator has the uid or name {name!r}; there are {known}")
        return found

    @property
    def possible(self) -> bool:
        """Whether nothing is refused, as far as that is known."""
        return not self.refusals()

    def refusals(self) -> list[str]:
        """Every reason why the job would not start, or fail when a function asks for its state."""
        found = [] if self.refusal is None else [self.refusal]
        for operator in self.operators:
            reasons = [one.detail for one in operator.states if one.fate is Fate.REFUSED]
            found += dict.fromkeys([*([operator.refusal] if operator.refusal else []), *reasons])
        return list(dict.fromkeys(found))

    @property
    def total_bytes(self) -> int:
        """What all subtasks together read."""
        return sum(sum(operator.bytes_per_subtask) for operator in self.operators)

    def __str__(self) -> str:
        verdict = f"possible, {_bytes(self.total_bytes)} to read" if self.possible else "refused"
        lines = [f"Restore of checkpoint {self.checkpoint_id} ({self.path}): {verdict}"]
        lines += [f"  {self.refusal}"] if self.refusal is not None else []
        lines += ["", *_aligned([_HEADER, *self._rows()]), ""]
        lines += [line for operator in self.operators for line in _layout(operator)]
        lines += [f"warning: {warning}" for operator in self.operators for warning in operator.warnings]
        return "\n".join(lines)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for operator in self.operators:
            if operator.refusal is not None and not operator.states:
                yield operator.describe(), "-", "-", Fate.REFUSED.value, operator.refusal
            for number, one in enumerate(operator.states):
                yield operator.describe() if number == 0 else "", one.state, one.kind, one.fate.value, one.detail


def _layout(operator: OperatorPlan) -> Iterator[str]:
    """How an operator's subtasks change, and what they read."""
    reads = operator.bytes_per_subtask
    if not reads or not operator.states:
        return
    layout = f"{operator.describe()}: {_change(operator.parallelism)} subtasks"
    layout += f", maximum parallelism {_change(operator.max_parallelism)}"
    if len(reads) > _SHOWN_SUBTASKS:
        yield f"{layout}; {_bytes(min(reads))} to {_bytes(max(reads))} to read for each"
    else:
        yield f"{layout}; to read: {', '.join(map(_bytes, reads))}"


def _change(pair: tuple[int | None, int | None]) -> str:
    old, new = pair
    return f"{new}" if old in (None, new) else f"{old} -> {new}"


def _bytes(number: int) -> str:
    return f"{number:,} B"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]
