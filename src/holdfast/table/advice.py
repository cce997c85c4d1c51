"""What takes the place of PyFlink's tables, by name and by module."""

from __future__ import annotations

import sys
from functools import partial
from typing import Final, NoReturn

from holdfast.errors import UnavailableImportError

_PAGE: Final = "docs/how-to/coming-from-pyflink.md has a table of the usual Table programs"
_QUERIES: Final = (
    "there is no Table API; name a stream with env.create_temporary_view(name, stream), and env.sql(query) is the "
    "stream of a query's rows"
)
_FUNCTIONS: Final = "register it with Spark, spark.udf.register(name, function, type), and call it in env.sql(query)"
_TYPES: Final = "declare columns with Types of holdfast.common"
_WINDOWS: Final = "group a stream with key_by(...).window(...).aggregate(...)"
_EXPRESSIONS: Final = "write the expression into the text of env.sql(query)"
_SAME: Final = "import it from holdfast.common"

#: A name, or the module of one -> what to use instead. All others are queries.
_INSTEAD: Final[dict[str, str]] = {
    "Row": _SAME,
    "RowKind": _SAME,
    "DataTypes": _TYPES,
    "Schema": _TYPES,
    "TableSchema": _TYPES,
    "UserDefinedType": _TYPES,
    "types": _TYPES,
    **dict.fromkeys(("ScalarFunction", "AsyncScalarFunction", "TableFunction", "FunctionContext", "udf"), _FUNCTIONS),
    **dict.fromkeys(("udaf", "udtaf", "AggregateFunction", "TableAggregateFunction"), _WINDOWS),
    **dict.fromkeys(("GroupWindowedTable", "OverWindowedTable", "WindowGroupedTable", "window"), _WINDOWS),
    "Expression": _EXPRESSIONS,
    "expressions": _EXPRESSIONS,
    "TableDescriptor": "read with env.from_source(...) or env.from_data_frame(...), write with stream.sink_to(...)",
    "EnvironmentSettings": "set it on the StreamExecutionEnvironment, with set_runtime_mode(...) and configure(...)",
    "TableConfig": "set it on the StreamExecutionEnvironment, with configure(...)",
}


def answer_names_of_tables(module: str) -> None:
    """Every name that is asked of the module is an error that says what to use. A type checker sees no name in it."""
    sys.modules[module].__dict__["__getattr__"] = partial(_missing, module)


def _missing(module: str, name: str) -> NoReturn:
    if name.startswith("_"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    path = module.removeprefix("holdfast.")
    instead = _INSTEAD.get(name) or _INSTEAD.get(path.rpartition(".")[2]) or _QUERIES
    raise UnavailableImportError(f"{name} of PyFlink's {path} is not available: {instead}. {_PAGE}.", name=name)
