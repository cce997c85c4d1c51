"""The rows of a DataFrame as an Arrow table, on every line of Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def arrow_rows(frame: Any) -> pa.Table:
    if hasattr(frame, "toArrow"):
        table: pa.Table = frame.toArrow()
        return table
    # Before Spark 4.0 a DataFrame has a method of its own for pandas alone.
    from pyspark.sql.pandas.types import to_arrow_schema

    return pa.Table.from_batches(frame._collect_as_arrow(), to_arrow_schema(frame.schema))
