"""Spark Connect is refused by name, before anything starts.

An epoch needs broadcast variables, local properties of its Spark job, the list of executors and ``foreachBatch`` in the
driver's process. A client of Spark Connect has none of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from holdfast.errors import ConfigurationError

_ADVICE = (
    "Holdfast runs in classic sessions only: start the program with spark-submit or with a master "
    "(spark.master=local[*], spark://..., yarn, k8s://...), without SPARK_REMOTE, spark.remote and "
    "spark.api.mode=connect. docs/how-to/run-on-a-cluster.md says how."
)


def refuse_connect(found: Any) -> None:
    """For a session or a DataFrame."""
    if type(found).__module__.startswith("pyspark.sql.connect"):
        kind = type(found).__name__
        raise ConfigurationError(f"The program's {kind} is one of Spark Connect, which is not supported. {_ADVICE}")


def refuse_connect_settings(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> None:
    """For a session that is yet to be made."""
    told = {name: value for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED") if (value := environment.get(name))}
    if "spark.remote" in settings:
        told["spark.remote"] = settings["spark.remote"]
    if settings.get("spark.api.mode", "").lower() == "connect":
        told["spark.api.mode"] = "connect"
    if told:
        seen = ", ".join(f"{name}={value}" for name, value in told.items())
        raise ConfigurationError(f"The session would be of Spark Connect ({seen}), which is not supported. {_ADVICE}")
