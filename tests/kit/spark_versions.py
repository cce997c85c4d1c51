"""Tests that the Spark they run on cannot pass, and why: the marker ``spark``.

``@pytest.mark.spark(min="4.0", reason="Python data sources begin with Spark 4.0")``

``min``, ``max``    the first and the last line of Spark on which the test works
``internals=True``  its subject is an acceleration, which ``holdfast.spark.internals: off`` switches off
``reason``          why; it is shown in the report and on the page of Spark's versions

Where it does not work the test is a strict expected failure: it is run, and fails when it begins to work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata

import pytest

INTERNALS_OPTION = "holdfast.spark.internals"
#: For tests: the value of that option that their jobs run with.
INTERNALS_VARIABLE = "HOLDFAST_SPARK_INTERNALS"


@dataclass(frozen=True)
class Spark:
    """The one that tests run on."""

    line: tuple[int, int]
    #: Whether accelerations are on that reach behind its public API.
    internals: bool

    @classmethod
    def here(cls) -> Spark:
        # Not from the package itself, which takes a while to import.
        return cls(line_of(metadata.version("pyspark")), os.environ.get(INTERNALS_VARIABLE, "auto") != "off")


def line_of(version: str) -> tuple[int, int]:
    """The line of a version: of 4.0.5 it is (4, 0)."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        raise pytest.UsageError(f"{version!r} is no version of Spark; expected one like 4.0")
    return int(found[1]), int(found[2])


def expect(items: Iterable[pytest.Item], spark: Spark) -> None:
    """Make those that cannot pass strict expected failures."""
    for item in items:
        for marker in item.iter_markers("spark"):
            if marker.args:
                raise pytest.UsageError(f"{item.nodeid}: the marker spark takes names, not {marker.args}")
            reason = obstacle(item.nodeid, marker.kwargs, spark)
            if reason is not None:
                item.add_marker(pytest.mark.xfail(strict=True, reason=reason))
                break


def obstacle(test: str, told: Mapping[str, object], spark: Spark) -> str | None:
    """Why a test with this marker cannot pass here; None where it can."""
    unknown = set(told) - {"min", "max", "internals", "reason"}
    conditions = set(told) & {"min", "max", "internals"}
    if unknown or not conditions or not told.get("reason"):
        raise pytest.UsageError(
            f"{test}: the marker spark has {sorted(told)}; it takes a reason and at least one of min, max and "
            "internals=True"
        )
    too_old = "min" in told and spark.line < line_of(str(told["min"]))
    too_new = "max" in told and spark.line > line_of(str(told["max"]))
    switched_off = bool(told.get("internals")) and not spark.internals
    return str(told["reason"]) if too_old or too_new or switched_off else None
