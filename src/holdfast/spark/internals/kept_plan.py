"""A plan of Spark's that is kept, and run over other rows each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

_EXCHANGE, _OF_RDD = "ShuffleExchangeExec", "RDDScanExec"
#: What it has read once is the same for all runs: a table, with which the rows of RDDs are joined.
_SENT_TO_ALL = "BroadcastExchangeExec"
_KINDS = (_EXCHANGE, _OF_RDD, _SENT_TO_ALL)


class KeptPlan:
    """A plan keeps what it has once run, and would give the same rows again. So each run is one of a copy: over the
    RDDs that it is given, in the order in which the plan reads them.
    """

    def __init__(self, session: SparkSession, plan: Any) -> None:
        self._session = session
        java: Any = session.sparkContext._jvm
        self._sessions = java.SparkSession
        self._root = _Node.of(plan, java.PythonUtils.toSeq)
        self._rdds = sum(1 for _ in self._root.all(_OF_RDD))
        self._shares = any(self._root.all(_SENT_TO_ALL))
        if self._rdds and not all(node.children for node in self._root.all(_EXCHANGE)):
            raise ValueError(f"An exchange is over none of the plan's RDDs, and would run once:\n{plan.toString()}")

    def over(self, rdds: Sequence[Any]) -> Any:
        """A copy, whose nodes belong to the plan's session: the thread may have another one at hand."""
        if len(rdds) != self._rdds:
            raise ValueError(f"The plan reads {self._rdds} RDDs and was given {len(rdds)}.")
        before = self._sessions.getActiveSession()
        self._sessions.setActiveSession(self._session._jsparkSession)
        try:
            return self._root.over(iter(rdds)) if rdds else self._cloned()
        finally:
            if before.isDefined():
                self._sessions.setActiveSession(before.get())
            else:
                self._sessions.clearActiveSession()

    def _cloned(self) -> Any:
        clone = self._root.plan.clone()
        return self._root.sharing(clone) if self._shares else clone

    def exchanges(self, copy: Any) -> Iterator[Any]:
        """The nodes of a copy that shuffle rows."""
        return self._root.exchanges(copy)


@dataclass(frozen=True)
class _Node:
    """A node of the plan, and those below it that lead to nodes of the known kinds, by their place."""

    plan: Any
    kind: str
    children: Mapping[int, _Node]
    #: Makes a sequence of Scala's of a list.
    to_seq: Callable[[list[Any]], Any]

    @classmethod
    def of(cls, plan: Any, to_seq: Callable[[list[Any]], Any]) -> _Node:
        below = plan.children()
        kind = str(plan.getClass().getSimpleName())
        places = range(0 if kind == _SENT_TO_ALL else below.size())
        nodes = {place: cls.of(below.apply(place), to_seq) for place in places}
        matter = {place: node for place, node in nodes.items() if node.children or node.kind in _KINDS}
        return cls(plan, kind, matter, to_seq)

    def all(self, kind: str) -> Iterator[_Node]:
        if self.kind == kind:
            yield self
        for node in self.children.values():
            yield from node.all(kind)

    def over(self, rdds: Iterator[Any]) -> Any:
        """What is above RDDs is made anew, the rest is shared."""
        plan = self.plan
        if self.kind == _OF_RDD:
            # Versions of Spark have five fields or six, of which the second is the RDD.
            fields = [plan.productElement(place) for place in range(plan.productArity())]
            return plan.copy(fields[0], next(rdds), *fields[2:])
        if self.kind == _SENT_TO_ALL:
            return plan
        below = plan.children()
        children = [below.apply(place) for place in range(below.size())]
        for place, node in self.children.items():
            children[place] = node.over(rdds)
        return plan.withNewChildren(self.to_seq(children))

    def sharing(self, clone: Any) -> Any:
        """A clone of the node, over those of its own that have read what they read once."""
        if self.kind == _SENT_TO_ALL:
            return self.plan
        if not any(self.all(_SENT_TO_ALL)):
            return clone
        below = clone.children()
        children = [below.apply(place) for place in range(below.size())]
        for place, node in self.children.items():
            children[place] = node.sharing(children[place])
        return clone.withNewChildren(self.to_seq(children))

    def exchanges(self, plan: Any) -> Iterator[Any]:
        if self.kind == _EXCHANGE:
            yield plan
        for place, node in self.children.items():
            yield from node.exchanges(plan.children().apply(place))
