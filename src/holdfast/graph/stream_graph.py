"""The program as the user wrote it: nodes and the connections between them, still without parallelism, chains and
levels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import ProgramError
from holdfast.runtime.alignment import WatermarkAlignment
from holdfast.runtime.event_time_column import EventTimeColumn
from holdfast.runtime.local_aggregation import Combination
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.partitioners import Partitioner
from holdfast.runtime.plan import OperatorFactory
from holdfast.runtime.watermarks import TimestampsAndWatermarksOperator
from holdfast.state.descriptors import MapStateDescriptor
from holdfast.state.key_migration import KeyMigrations
from holdfast.types.typeinfo import TypeInformation


@dataclass(frozen=True)
class KeyBy:
    """How a stream is keyed: by columns of its rows, or by a function of them or a KeySelector."""

    key_type: TypeInformation
    columns: tuple[str, ...] = ()
    selector: Any = None
    migrations: KeyMigrations = field(default_factory=KeyMigrations)


@dataclass(eq=False)
class Connection:
    """An input of a node. Without partitioner and key it is forward, or rebalance where the parallelism differs."""

    source: Node
    partitioner: Partitioner | None = None
    key_by: KeyBy | None = None
    input_index: int = 0
    #: The side output that it takes its rows from; None for the main output.
    tag: OutputTag | None = None
    #: False: the key says where rows go, and nothing more.
    keyed_state: bool = True
    #: Its rows are put together before they are exchanged.
    combine: Combination | None = None

    @property
    def state_key(self) -> KeyBy | None:
        """The key that its rows have state by."""
        return self.key_by if self.keyed_state else None

    @property
    def type_info(self) -> TypeInformation:
        if self.combine is not None:
            return self.combine.type_info
        return self.source.output_type if self.tag is None else self.tag.type_info

    @property
    def tag_id(self) -> str | None:
        return None if self.tag is None else self.tag.tag_id


@dataclass(eq=False)
class Node:
    """One operator of the program; the fields that builders set later are plain attributes."""

    name: str
    factory: OperatorFactory | None
    body: Any
    output_type: TypeInformation
    inputs: list[Connection] = field(default_factory=list)
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    uid_hash: str | None = None
    #: Its rows carry event timestamps.
    event_time: bool = False
    #: Set where it gives the rows of a source event times, and is held back with others: it runs in the source's tasks.
    alignment: WatermarkAlignment | None = None
    #: False after disable_chaining: neither side is chained.
    chainable: bool = True
    #: True after start_new_chain: not chained to its input.
    chain_head: bool = False
    #: Parallelism cannot be raised above this: a source that keeps one order.
    parallelism_limit: int | None = None
    #: Set for ``from_data_frame``: the DataFrame, which Spark reads in level 0.
    data_frame: Any = None
    #: Its column of event time, if it has one.
    event_time_column: EventTimeColumn | None = None
    is_sink: bool = False
    #: Made for another operator, and not by the program, which cannot name it.
    auxiliary: bool = False
    #: It only puts streams together, and Flink has no operator for that.
    is_union: bool = False
    #: What was given to ``broadcast()`` of the stream on its second input.
    broadcast_states: tuple[MapStateDescriptor, ...] = ()

    #: Tags that were asked for, by name.
    side_outputs: dict[str, OutputTag] = field(default_factory=dict)

    def giving(self, tag: OutputTag) -> Node:
        """The operator that gives rows to a side output of this one: itself, or the source whose rows it only gives
        their event time.
        """
        timed = self.inputs[0].source if self.factory is TimestampsAndWatermarksOperator else self
        giver = self if timed.inputs else timed
        if not giver.inputs and getattr(giver.body, "side_output", None) != tag:
            raise ProgramError(
                f"The source '{giver.name}' has no side output '{tag.tag_id}': put a process() behind it, whose "
                "function yields (tag, row). A FileSource has one for bad records: with_bad_records_to(tag)."
            )
        return giver

    def request_side_output(self, tag: OutputTag) -> None:
        """Somebody listens to a side output. Its rows have one type for all who do."""
        known = self.side_outputs.setdefault(tag.tag_id, tag)
        if known.type_info != tag.type_info:
            raise ProgramError(
                f"The side output '{tag.tag_id}' of '{self.name}' was asked for as {known.type_info.describe()}, and "
                f"now as {tag.type_info.describe()}. Use one OutputTag, or two names."
            )

    @property
    def bounded(self) -> bool:
        """Whether the rows of this source come to an end."""
        if self.data_frame is not None:
            return not getattr(self.data_frame, "isStreaming", False)
        return bool(getattr(self.body, "bounded", False))

    @property
    def keyed(self) -> bool:
        return any(connection.state_key is not None for connection in self.inputs)

    @property
    def key_type(self) -> TypeInformation | None:
        return None if self._key_by is None else self._key_by.key_type

    @property
    def key_migrations(self) -> KeyMigrations:
        return KeyMigrations() if self._key_by is None else self._key_by.migrations

    @property
    def _key_by(self) -> KeyBy | None:
        """The keys of the first input that has any: those of connected streams agree."""
        return next((c.state_key for c in self.inputs if c.state_key is not None), None)


class StreamGraph:
    """All nodes of a program, in the order in which they were made.

    An environment has a new one after each ``execute``. Streams that were made before belong to it as soon as something
    is added behind them, with all that leads to them.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: set[Node] = set()

    def add(
        self,
        name: str,
        factory: OperatorFactory | None,
        body: Any,
        output_type: TypeInformation,
        inputs: list[Connection],
        event_time: bool | None = None,
    ) -> Node:
        carries_time = any(c.source.event_time for c in inputs) if event_time is None else event_time
        node = Node(name, factory, body, output_type, inputs, event_time=carries_time)
        self._include(node)
        return node

    def _include(self, node: Node) -> None:
        if node in self._known:
            return
        for connection in node.inputs:
            self._include(connection.source)
        self.nodes.append(node)
        self._known.add(node)
