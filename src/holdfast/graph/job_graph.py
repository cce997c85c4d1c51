"""The job as a plain value: operators with their ids and parallelism, the edges between them, and the job's settings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import mmh3

from holdfast.errors import NotPicklableError, ProgramError
from holdfast.graph.required_uids import require_uids
from holdfast.graph.stream_graph import Connection, Node, StreamGraph
from holdfast.runtime.contracts import Function
from holdfast.runtime.partitioners import Broadcast, Forward, KeyGroupHash, Partitioner, Rebalance, Rescale
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.state.keygroups import default_max_parallelism
from holdfast.types.dependencies import DependencySettings
from holdfast.types.settings import (
    BackendSettings,
    CheckpointSettings,
    EpochSettings,
    FailureSettings,
    ProgramSettings,
    RecoverySettings,
    RestartSettings,
    SparkSettings,
    TextForm,
    ZooKeeperSettings,
)


@dataclass(frozen=True)
class JobSettings:
    """Everything about a job that is not its operators."""

    checkpoint: CheckpointSettings
    restart: RestartSettings
    backend: BackendSettings
    epoch: EpochSettings
    recovery: RecoverySettings
    #: None where nothing is set: Spark's default parallelism, and the rule by parallelism.
    parallelism: int | None = None
    max_parallelism: int | None = None
    #: Final results only, at the end of the input.
    batch: bool = False
    #: Neighbours may run in one task.
    chaining: bool = True
    spark: SparkSettings = field(default_factory=SparkSettings)
    program: ProgramSettings = field(default_factory=ProgramSettings)
    dependencies: DependencySettings = field(default_factory=DependencySettings)
    #: None: without standby drivers.
    zookeeper: ZooKeeperSettings | None = None
    text_form: TextForm = TextForm.FLINK
    failures: FailureSettings = field(default_factory=FailureSettings)


@dataclass(frozen=True, eq=False)
class JobOperator:
    """One operator. ``max_parallelism_explicit`` decides whether a restored value may be adopted: not when the program
    sets one, nor when one was adopted already.
    """

    operator_id: str
    node: Node
    name: str
    uid: str | None
    parallelism: int
    max_parallelism: int
    max_parallelism_explicit: bool
    #: Pickled function, source, sink or strategy.
    body: bytes


@dataclass(frozen=True, eq=False)
class JobEdge:
    source: JobOperator
    target: JobOperator
    connection: Connection
    partitioner: Partitioner


@dataclass(frozen=True)
class JobGraph:
    job_id: str
    name: str
    operators: tuple[JobOperator, ...]
    edges: tuple[JobEdge, ...]
    settings: JobSettings

    def inputs_of(self, operator: JobOperator) -> list[JobEdge]:
        return [edge for edge in self.edges if edge.target is operator]

    def outputs_of(self, operator: JobOperator) -> list[JobEdge]:
        return [edge for edge in self.edges if edge.source is operator]


def build_job_graph(
    graph: StreamGraph,
    job_id: str,
    name: str,
    settings: JobSettings,
    parallelism: int,
    adopted: Mapping[str, int] | None = None,
) -> JobGraph:
    """Resolve ids, parallelism and partitioning. ``parallelism`` is for operators that set none. ``adopted`` are
    maximum parallelisms taken over from a restored snapshot, by operator id.
    """
    if not graph.nodes:
        raise ProgramError("The program has no operators. Add a source and at least one sink before execute().")
    if not any(node.is_sink for node in graph.nodes):
        raise ProgramError(
            "The program has no sink: nothing would come out of it. Add print(), sink_to(...) or use "
            "execute_and_collect()."
        )
    if not settings.program.auto_uids:
        require_uids(graph)
    ids = _operator_ids(graph)
    operators: dict[Node, JobOperator] = {}
    aligned = {node.inputs[0].source: node for node in graph.nodes if node.alignment is not None}
    for node in graph.nodes:
        if isinstance(node.body, TwoPhaseCommitSink):
            node.body.bind_checkpoint_directory(settings.checkpoint.directory)
            node.body.bind_publication(settings.checkpoint.publishes)
            node.body.bind_text_form(settings.text_form)
        wanted = _wanted_parallelism(node, aligned)
        operators[node] = _operator(node, wanted, ids[node], parallelism, settings.max_parallelism, adopted or {})
    edges = tuple(
        _edge(connection, operators[connection.source], operators[node])
        for node in graph.nodes
        for connection in node.inputs
    )
    return JobGraph(job_id, name, tuple(operators.values()), edges, settings)


def _wanted_parallelism(node: Node, aligned: Mapping[Node, Node]) -> int | None:
    """What the program sets. An aligned source and what gives its rows event times are one in that: for a PyFlink
    program they are one operator.
    """
    source = node.inputs[0].source if node.alignment is not None else node
    timed = aligned.get(source)
    if timed is None:
        return node.parallelism
    if None not in (source.parallelism, timed.parallelism) and source.parallelism != timed.parallelism:
        raise ProgramError(
            f"The source '{source.name}' is to run with {source.parallelism} subtasks, and its watermarks with "
            f"{timed.parallelism}: with_watermark_alignment() needs one parallelism for both. Set it once, behind the "
            "watermark strategy."
        )
    return source.parallelism or timed.parallelism


def _operator(
    node: Node,
    wanted: int | None,
    operator_id: str,
    default_parallelism: int,
    job_maximum: int | None,
    adopted: Mapping[str, int],
) -> JobOperator:
    parallelism = wanted or min(default_parallelism, node.parallelism_limit or default_parallelism)
    if node.parallelism_limit is not None and parallelism > node.parallelism_limit:
        raise ProgramError(
            f"'{node.name}' runs with at most {node.parallelism_limit} subtasks, and {parallelism} were asked for."
        )
    explicit = node.max_parallelism or job_maximum
    maximum = explicit or adopted.get(operator_id) or default_max_parallelism(parallelism)
    if parallelism > maximum:
        raise ProgramError(
            f"'{node.name}': parallelism {parallelism} is above its maximum parallelism {maximum}. "
            "Lower the parallelism, or raise the maximum with set_max_parallelism()."
        )
    if isinstance(node.body, TwoPhaseCommitSink):
        node.body.bind_parallelism(parallelism)
    return JobOperator(
        operator_id,
        node,
        node.name,
        node.uid,
        parallelism,
        maximum,
        explicit is not None or operator_id in adopted,
        _pickle(node),
    )


def _pickle(node: Node) -> bytes:
    try:
        return bytes(cloudpickle.dumps(node.body))
    except Exception as error:
        culprit = _unpicklable_field(node.body)
        where = f" (its field '{culprit}')" if culprit else ""
        raise NotPicklableError(
            f"The function of '{node.name}' cannot be sent to the executors{where}: {type(error).__name__}: {error}. "
            "Make connections, locks and open files in open(), not in the constructor or in a closure."
        ) from error


def _unpicklable_field(body: Any) -> str | None:
    for name, value in getattr(body, "__dict__", {}).items():
        try:
            cloudpickle.dumps(value)
        except Exception:
            return str(name)
    return None


def _edge(connection: Connection, source: JobOperator, target: JobOperator) -> JobEdge:
    if connection.key_by is not None:
        key = connection.key_by
        partitioner: Partitioner = KeyGroupHash(key.key_type, target.max_parallelism, key.columns, key.selector)
    elif isinstance(connection.partitioner, Rescale):
        partitioner = Rescale(source.parallelism)
    elif connection.partitioner is not None:
        partitioner = connection.partitioner
    else:
        # The partitions of a DataFrame are not the subtasks of an operator, however many there are.
        same = source.parallelism == target.parallelism and source.node.data_frame is None
        partitioner = Forward() if same else Rebalance()
    for what, function in partitioner.functions().items():
        _check_function(function, what, source, target)
    if isinstance(partitioner, Forward) and source.node.data_frame is not None:
        raise ProgramError(
            f"forward() from the DataFrame '{source.name}' to '{target.name}': a DataFrame has partitions of Spark's, "
            "and no subtasks. Leave forward() out, or use rebalance()."
        )
    if isinstance(partitioner, Forward) and source.parallelism != target.parallelism:
        raise ProgramError(
            f"forward() from '{source.name}' ({source.parallelism} subtasks) to '{target.name}' "
            f"({target.parallelism}): "
            "forward needs the same parallelism on both sides. Use rebalance(), or set the same parallelism."
        )
    return JobEdge(source, target, connection, partitioner)


def _check_function(function: Any, what: str, source: JobOperator, target: JobOperator) -> None:
    """It can be sent to the executors. Spark's own tasks split a DataFrame: no operator is there to open it."""
    try:
        cloudpickle.dumps(function)
    except Exception as error:
        raise NotPicklableError(
            f"The {what} before '{target.name}' cannot be sent to the executors: {type(error).__name__}: {error}"
        ) from error
    if source.node.data_frame is None or not isinstance(function, Function):
        return
    if type(function).open is not Function.open:
        raise ProgramError(
            f"The {what} before '{target.name}' has open(), which nobody calls on the DataFrame '{source.name}'. Use a "
            "function or column names, or put a map() before it."
        )


def is_broadcast(edge: JobEdge) -> bool:
    return isinstance(edge.partitioner, Broadcast)


def operator_id_of_uid(uid: str) -> str:
    """Flink's id of a uid: 128-bit Murmur3 of its UTF-8 bytes."""
    return mmh3.hash_bytes(uid.encode(), 0, True).hex()


def stored_operator_id(uid_hash: str) -> str:
    """The id of a stored operator as a program gives it; ProgramError when it is none."""
    plain = str(uid_hash).lower()
    if len(plain) != 32 or not set(plain) <= set("0123456789abcdef"):
        raise ProgramError(
            f"set_uid_hash() takes the id of a stored operator, which has 32 hexadecimal digits; got {uid_hash!r}."
        )
    return plain


def _operator_ids(graph: StreamGraph) -> dict[Node, str]:
    ids: dict[Node, str] = {}
    owners: dict[str, Node] = {}
    for place, node in enumerate(graph.nodes):
        if node.uid is not None:
            operator_id = operator_id_of_uid(node.uid)
        else:
            position = hashlib.md5(usedforsecurity=False)
            position.update(f"{place}|{node.name}|".encode())
            for connection in node.inputs:
                position.update(ids[connection.source].encode())
            operator_id = position.hexdigest()
        if operator_id in owners:
            raise ProgramError(
                f"'{owners[operator_id].name}' and '{node.name}' have the same uid ('{node.uid}'). "
                "Uids must be unique."
            )
        owners[operator_id] = node
        ids[node] = operator_id
    _check_uid_hashes(graph, owners)
    return ids


def _check_uid_hashes(graph: StreamGraph, owners: dict[str, Node]) -> None:
    """Two operators that look for one state cannot both be restored: not from a snapshot, nor after a failure."""
    claims = dict(owners)
    for node in graph.nodes:
        if node.uid_hash is not None and claims.setdefault(node.uid_hash, node) is not node:
            raise ProgramError(
                f"'{node.name}' has set_uid_hash('{node.uid_hash}'), and '{claims[node.uid_hash].name}' looks for the "
                "state of the same id. Give one of them another uid, or leave its uid hash out."
            )
