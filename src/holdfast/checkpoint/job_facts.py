"""What the coordinator knows about the job whose checkpoints it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JobOperator:
    """One operator of the running program. ``uid_hash`` overrides the operator id when a snapshot is looked up."""

    operator_id: str
    name: str
    parallelism: int
    max_parallelism: int
    uid: str | None = None
    uid_hash: str | None = None
    #: Set by the program, or fixed by what was restored before: not to be exchanged for that of a snapshot.
    max_parallelism_explicit: bool = False
    #: Behind a ``key_by``: it can have keyed state.
    keyed: bool = True
    #: It publishes transactions.
    is_sink: bool = True
    #: The ids of the operators whose rows it gets.
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobFacts:
    """``key_hash`` names the function that spreads keys over key groups, ``backend`` what keeps the state of tasks."""

    job_id: str
    job_name: str
    key_hash: str
    operators: tuple[JobOperator, ...]
    backend: str | None = None

    def subtasks(self) -> frozenset[tuple[str, int]]:
        """Every (operator, subtask) that must acknowledge a checkpoint."""
        return frozenset(
            (operator.operator_id, subtask) for operator in self.operators for subtask in range(operator.parallelism)
        )
