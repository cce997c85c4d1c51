"""The job as its tasks see it: operators, chains, edges and levels. Plain picklable values, made by
``holdfast.graph``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from holdfast.runtime.ready_files import ReadyFiles
from holdfast.state.descriptors import MapStateDescriptor
from holdfast.state.key_migration import KeyMigrations
from holdfast.state.store import StateBackend
from holdfast.types.typeinfo import TypeInformation

if TYPE_CHECKING:
    from holdfast.runtime.alignment import WatermarkAlignment
    from holdfast.runtime.local_aggregation import Combination
    from holdfast.runtime.operator import Operator
    from holdfast.runtime.partitioners import Partitioner
    from holdfast.runtime.query import Query


#: See ``OperatorSpec.factory``.
OperatorFactory: TypeAlias = "Callable[[OperatorSpec], Operator]"


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One operator: what it runs and where its state belongs."""

    operator_id: str
    name: str
    #: What makes the operator that runs it, of this spec: its class, or a function of a module.
    factory: OperatorFactory
    #: The user's function, the source, the sink or the watermark strategy, pickled: every subtask makes its own copy.
    body: bytes
    parallelism: int
    max_parallelism: int
    output_type: TypeInformation
    #: Set behind a ``key_by``: the declared key type, or the pickled type when it was not declared.
    key_type: TypeInformation | None = None
    keyed: bool = False
    key_migrations: KeyMigrations = field(default_factory=KeyMigrations)
    #: Its rows carry event timestamps.
    event_time: bool = False
    uid: str | None = None
    #: What was given to ``broadcast()`` of the stream on its second input.
    broadcast_states: tuple[MapStateDescriptor, ...] = ()
    #: The job gives final results only: event time stands still until the input ends, and then all timers fire.
    batch: bool = False
    #: The types of the side outputs that somebody listens to, by their names.
    side_outputs: Mapping[str, TypeInformation] = field(default_factory=dict)
    #: State may be of a type that is not declared, which is pickled.
    generic_types: bool = True
    #: Time between two watermarks that a strategy makes: None with every row, 0 for only the one at the end.
    watermark_interval_ms: int | None = None
    #: Set where it gives the rows of a source, in whose chain it is, event times: how far ahead of others it may be.
    alignment: WatermarkAlignment | None = None

    def describe(self, subtask: int) -> str:
        """How errors name a subtask."""
        uid = f" (uid {self.uid})" if self.uid else ""
        return f"operator '{self.name}'{uid}, subtask {subtask + 1}/{self.parallelism}"


@dataclass(frozen=True, slots=True)
class EdgeSpec:
    """A connection between two chains. Lower ids are consumed first."""

    edge_id: int
    source_operator: str
    target_operator: str
    partitioner: Partitioner
    type_info: TypeInformation
    source_parallelism: int
    target_parallelism: int
    target_level: int
    #: Which input of the target it feeds: 0, or 1 for the second input of a connected stream.
    input_index: int = 0
    #: Rows carry event timestamps and watermarks.
    event_time: bool = False
    #: It comes from a DataFrame: any number of partitions of Spark's, which count as one channel.
    of_data_frame: bool = False
    #: The side output of the source that it carries; None for its main output.
    tag_id: str | None = None
    #: Its rows are partial aggregates of the source's: they are combined on the way.
    combine: Combination | None = None

    @property
    def given_type(self) -> TypeInformation:
        """The type of the rows that the source gives."""
        return self.type_info if self.combine is None else self.combine.aggregation.row_type


@dataclass(frozen=True, slots=True)
class ChainSpec:
    """Operators that hand rows to each other by a call. ``operators[0]`` is the head."""

    chain_id: int
    level: int
    parallelism: int
    operators: tuple[OperatorSpec, ...]
    #: operator id -> ids of the operators chained behind it
    links: Mapping[str, tuple[str, ...]]
    #: operator id -> ids of the edges that leave the chain there
    outputs: Mapping[str, tuple[int, ...]]
    #: ids of the edges that enter at the head
    inputs: tuple[int, ...]
    #: id of an operator that is chained to a side output -> the side output's name
    side_links: Mapping[str, str] = field(default_factory=dict)
    #: What all rows of the inputs go through before they are the head's.
    query: Query | None = None


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """Limits that tasks obey."""

    envelope_bytes: int = 2 << 20
    max_row_bytes: int = 64 << 20
    #: So many rows, or bytes of them, wait to be combined. Whoever receives them combines again, so there is little in
    #: more.
    combining_rows: int = 262_144
    combining_bytes: int = 32 << 20
    local_dir: str | None = None
    #: Keyed state that an earlier attempt left on the host is used instead of the checkpoint's files.
    local_recovery: bool = True
    #: The folder of the job's local stores on every host: one for each directory that a driver can own.
    store_name: str = ""
    #: So many metrics of an operator's subtask are reported.
    max_metrics: int = 200
    #: What files between epochs are sealed with. It is made on the driver, and nowhere but in the plan.
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class JobPlan:
    """Everything a task needs to know that does not change during an attempt."""

    job_id: str
    job_name: str
    #: Tasks per level; the greatest parallelism of any operator.
    slots: int
    chains: tuple[ChainSpec, ...]
    edges: tuple[EdgeSpec, ...]
    backend: StateBackend
    options: TaskOptions = field(default_factory=TaskOptions)
    #: The job's parameters, which functions read through their runtime context.
    parameters: Mapping[str, str] = field(default_factory=dict)
    #: Known where tasks run.
    files: ReadyFiles = field(default_factory=ReadyFiles)

    @property
    def levels(self) -> range:
        """Levels with tasks of the job's own. Without sources of its own it has none in level 0, where Spark reads
        its DataFrames.
        """
        numbers = [chain.level for chain in self.chains]
        return range(min(numbers), 1 + max(numbers))

    @property
    def batch(self) -> bool:
        """The job gives final results only, and has neither checkpoints nor savepoints."""
        return any(operator.batch for operator in self.operators())

    def chains_of(self, level: int, slot: int) -> list[ChainSpec]:
        return [c for c in self.chains if c.level == level and slot < c.parallelism]

    def queried_at(self, level: int) -> ChainSpec | None:
        """The chain of a level whose rows go through a query. A level has one at most."""
        return next((c for c in self.chains if c.level == level and c.query is not None), None)

    @property
    def queries(self) -> list[Query]:
        return [chain.query for chain in self.chains if chain.query is not None]

    def describe_task(self, level: int, slot: int) -> str:
        """How errors name a task: by its slot, and the operators that run in it."""
        names = ", ".join(f"'{each.name}'" for chain in self.chains_of(level, slot) for each in chain.operators)
        return f"slot {slot + 1}/{self.slots}, the task of {names or 'no operator'}"

    def operators(self) -> list[OperatorSpec]:
        return [operator for chain in self.chains for operator in chain.operators]
