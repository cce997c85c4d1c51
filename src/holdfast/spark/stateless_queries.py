"""Which queries may run on each epoch's rows: those whose results for a row do not depend on other rows.

Spark's physical plan of the query tells, through ``explain()``. What stands between the rows of the stream and the
result must be among operators that are known to take a row at a time, in the task that has it. Whatever else is there
is refused, by the name that the program knows it by.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from pyspark.sql import DataFrame

from holdfast.errors import ProgramError
from holdfast.runtime.query import View
from holdfast.spark.plan_text import explained
from holdfast.spark.plan_tree import PlanNode, above, nodes_of

_ROW_BY_ROW = frozenset({"Project", "Filter", "Generate", "BatchEvalPython", "ArrowEvalPython"})
_SUBQUERIES = frozenset({"Subquery", "SubqueryBroadcast", "ReusedSubquery"})
_BROADCAST_JOINS = frozenset({"BroadcastHashJoin", "BroadcastNestedLoopJoin"})
_JOIN_TYPE = re.compile(r"\b(Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|ExistenceJoin)\b")
#: By the side of the stream: joins in which each row of the result is of a row of the stream.
_LEFT = frozenset({"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti", "ExistenceJoin"})
_RIGHT = frozenset({"Inner", "Cross", "RightOuter"})

_TEXTS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
#: Texts that are times when they are read as such, a zone behind them or not.
_MOMENT = re.compile(r"['\"]\s*(now|today|tomorrow|yesterday)\b[\w\s:/+-]*['\"]", re.IGNORECASE)
_FUNCTIONS = "now|rand|randn|random|uniform|randstr|uuid|shuffle|monotonically_increasing_id|spark_partition_id|curdate"
_OF_THE_MOMENT = re.compile(
    rf"\b(?:(?:{_FUNCTIONS}|unix_timestamp)\s*\(|current_(?:timestamp|date|time)\b|localtimestamp\b)"
    r"|\b(?:date|timestamp(?:_ntz|_ltz)?)\s*'\w+'|\b(?:cast|try_cast|to_date|(?:try_)?to_timestamp(?:_ntz|_ltz)?)\s*\(\s*'\w+'"
    r"|'\w+'\s*::",
    re.IGNORECASE,
)


#: In an analysed plan, where texts are not quoted: one that looks like a call is refused for nothing.
_OF_THE_MOMENT_IN_PLAN = re.compile(
    rf"\b(?:{_FUNCTIONS}|current_(?:timestamp|date|time)|localtimestamp)\(|\bcast\((?:now|today|tomorrow|yesterday)\b",
    re.IGNORECASE,
)
_ANALYSED = re.compile(r"== Analyzed Logical Plan ==\n(.*?)\n== ", re.DOTALL)


class _Reason(NamedTuple):
    """Nodes by the beginning of their names; what the program calls them, and what it can use instead."""

    nodes: tuple[str, ...]
    what: str
    instead: str


_REASONS = (
    _Reason(("Window",), "a window function (OVER)", "key_by(...) and a function with keyed state"),
    _Reason(
        ("HashAggregate", "ObjectHashAggregate", "SortAggregate", "Aggregate"),
        "an aggregation (GROUP BY, DISTINCT, count, sum, ...)",
        "key_by(...) with aggregate(...), or with window(...), behind the query",
    ),
    _Reason(
        ("TakeOrdered", "CollectLimit", "CollectTail", "GlobalLimit", "LocalLimit", "BaseLimit", "Offset"),
        "LIMIT or OFFSET",
        "key_by(...) and a function that counts in keyed state",
    ),
    _Reason(
        ("SortMergeJoin", "ShuffledHashJoin", "CartesianProduct", "CoGroup"),
        "a join whose other side is not sent to all tasks",
        "the hint BROADCAST(its name) for a table, in SELECT /*+ BROADCAST(t) */ ... or in the subquery of IN or "
        "EXISTS, and broadcast(t) in a DataFrame's join(...); stream.join(...), connect(...) or interval_join(...) for "
        "another stream",
    ),
    _Reason(("Sort",), "ORDER BY", "a window that sorts its rows"),
    _Reason(("Union",), "UNION", "stream.union(...); rows of a table come by from_data_frame(...)"),
    _Reason(("Sample",), "TABLESAMPLE", "filter(...)"),
)
_ANYTHING_ELSE = "an operator that is not known to take one row at a time ({})"


def refuse_moments(text: str) -> None:
    """ProgramError for functions that Spark computes once for a plan, which is kept over epochs."""
    _refuse_moment(_OF_THE_MOMENT.search(_TEXTS.sub(_without_text, text)))


def refuse_moments_of_plan(frame: DataFrame) -> None:
    """ProgramError for such functions in what was done to a DataFrame."""
    analysed = _ANALYSED.search(explained(frame, extended=True))
    _refuse_moment(analysed and _OF_THE_MOMENT_IN_PLAN.search(analysed[1]))


def _refuse_moment(found: re.Match[str] | None) -> None:
    if found is not None:
        name = found[0].rstrip("( ")
        raise ProgramError(
            f"The query has {name}, which Spark computes, or seeds, once for a plan, and not for each row or epoch. "
            "Put it into a map() in front of the query or behind it."
        )


def _without_text(quoted: re.Match[str]) -> str:
    """Nothing in the place of a text or a comment, unless the text is a time of the moment."""
    moment = _MOMENT.fullmatch(quoted[0])
    return "''" if moment is None else f"'{moment[1]}'"


def view_that_is_read(frame: DataFrame, markers: Sequence[tuple[str, View]]) -> View:
    """The view that a query reads. ProgramError unless it reads one, once, and is without state. ``frame`` is what
    comes of the query where each view is a function with the name beside it.
    """
    nodes = nodes_of(explained(frame))
    reads = [(place, view) for place, node in enumerate(nodes) for name, view in markers if f"{name}(" in node.text]
    if not reads:
        names = ", ".join(f"'{view.name}'" for _, view in markers) or "none"
        raise ProgramError(
            f"No row of a stream can come out of the query: it reads none of the environment's views ({names}), or "
            "its conditions are never true. Spark's own tables come by env.from_data_frame(spark.sql(...))."
        )
    if len({view.name for _, view in reads}) > 1:
        first, second = sorted({view.name for _, view in reads})[:2]
        raise ProgramError(
            f"The query reads two streams, '{first}' and '{second}': to put their rows together needs state. Use "
            "stream.join(...), connect(...), interval_join(...), or union(...) in front of the query."
        )
    if len(reads) > 1:
        raise ProgramError(
            f"The query reads the view '{reads[0][1].name}' {len(reads)} times: to put its rows together needs state, "
            "and a union of two queries is env.sql(...).union(env.sql(...)). Let it read the view once."
        )
    _refuse_state(nodes, reads[0][0])
    return reads[0][1]


def _refuse_state(nodes: Sequence[PlanNode], place: int) -> None:
    path = above(nodes, place)
    # What is in front of the value of a subquery is none of the stream's.
    names = list(takewhile(lambda name: name not in _SUBQUERIES, (nodes[number].name for number in path)))
    for reason in _REASONS:
        if any(name.startswith(reason.nodes) for name in names):
            raise _has(reason.what, reason.instead)
    if len(names) < len(path):
        raise _has("the stream in a subquery", "the stream in FROM, and the table in the subquery")
    for number in path:
        node = nodes[number]
        if node.name in _BROADCAST_JOINS:
            _check_join(nodes, number, place)
        elif node.name == "BroadcastExchange":
            raise _sent_to_all()
        elif node.name not in _ROW_BY_ROW:
            raise _has(_ANYTHING_ELSE.format(node.name), "a function of Holdfast's behind the query")


def _check_join(nodes: Sequence[PlanNode], join: int, place: int) -> None:
    node = nodes[join]
    found = _JOIN_TYPE.search(node.text)
    children = [
        number
        for number in range(join + 1, len(nodes))
        if nodes[number].depth > node.depth and above(nodes, number)[0] == join
    ]
    of_stream = max(child for child in children if child <= place)
    side = _LEFT if of_stream == children[0] else _RIGHT
    if nodes[of_stream].name == "BroadcastExchange":
        raise _sent_to_all()
    if found is None or found[0] not in side:
        raise _has(
            f"an outer join that keeps the rows of the table ({found[0] if found else node.text})",
            "a join that keeps those of the stream: what no row of the stream has matched would come in each epoch",
        )


def _sent_to_all() -> ProgramError:
    return _has(
        "a join in which the stream is sent to all tasks",
        "a join that keeps the stream's rows, with the hint BROADCAST(...) for the table",
    )


def _has(what: str, instead: str) -> ProgramError:
    return ProgramError(
        f"The query cannot run on a stream: it has {what}, which would need what other epochs have read. A query sees "
        f"the rows of one epoch. Use {instead}."
    )
