"""Known aggregates, for ``aggregate`` of keyed and windowed streams. Holdfast's own: PyFlink has them in its Table API.
An aggregate of a program's own is an ``Aggregate`` that names a ``Partial`` of a ``PartialFunction``.
"""

from holdfast.runtime.aggregates import (
    Aggregate,
    Average,
    Count,
    Earliest,
    Latest,
    Max,
    Min,
    Sum,
    Variance,
)
from holdfast.runtime.partial_aggregates import Partial, PartialFunction

__all__ = [
    "Aggregate",
    "Average",
    "Count",
    "Earliest",
    "Latest",
    "Max",
    "Min",
    "Partial",
    "PartialFunction",
    "Sum",
    "Variance",
]
