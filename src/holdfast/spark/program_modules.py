"""Modules of the program that its functions are looked up in: a function of a module travels as its name, and whoever
unpickles it imports the module.
"""

from __future__ import annotations

import importlib.util
import pickletools
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.errors import UnfitExecutorError
from holdfast.runtime.plan import JobPlan
from holdfast.spark.program_paths import of_installation

_STRINGS = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"})
_KEEPING = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETTING = frozenset({"GET", "BINGET", "LONG_BINGET"})
#: They push nothing.
_SILENT = frozenset({"PROTO", "FRAME"})

#: Stands for cloudpickle's function that imports a module by its name.
_IMPORT = object()
_IMPORTING = ("cloudpickle.cloudpickle", "subimport")

WHAT_TO_DO = (
    "Give them to env.add_python_file(path), to the option python.files or to spark-submit --py-files, or install them "
    "in the Python of the executors (spark.pyspark.python, --archives)."
)


def modules_of_program(packed_plan: bytes, plan: JobPlan) -> list[str]:
    """Modules that a task imports with the plan, without Holdfast's own and those of installed packages."""
    pickles = [packed_plan, *(operator.body for operator in plan.operators())]
    candidates = {name for name in list(sys.modules) if _of_program(name)}
    found: set[str] = set()
    for pickled in pickles:
        # Opcodes are read in Python: not where none of the names can be among them.
        if any(name.encode() in pickled for name in candidates):
            found |= candidates & set(modules_in(pickled))
    return sorted(found)


def _of_program(name: str) -> bool:
    """Holdfast's own are where its tasks run."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return name.partition(".")[0] not in ("holdfast", "__main__") and file is not None and not of_installation(file)


def modules_in(pickled: bytes) -> Iterator[str]:
    """The modules that unpickling imports."""
    recent: deque[object] = deque([None, None], maxlen=2)
    memo: dict[int, object] = {}
    argument: Any
    for opcode, argument, _ in pickletools.genops(pickled):
        name = opcode.name
        if name == "MEMOIZE":
            memo[len(memo)] = recent[-1]
        elif name in _KEEPING:
            memo[int(argument)] = recent[-1]
        elif name in _GETTING:
            recent.append(memo.get(int(argument)))
        elif name in _STRINGS:
            recent.append(argument)
        elif name == "GLOBAL":
            yield argument.split(" ")[0]
            recent.append(None)
        elif name == "STACK_GLOBAL":
            module = recent[0]
            if isinstance(module, str):
                yield module
            recent.append(_IMPORT if tuple(recent) == _IMPORTING else None)
        elif name not in _SILENT:
            if name == "TUPLE1" and recent[0] is _IMPORT and isinstance(recent[1], str):
                yield recent[1]
            recent.append(None)


def lacking(modules: Iterable[str]) -> list[str]:
    """On an executor: the modules that cannot be found there."""
    return [module for module in modules if not _is_there(module)]


def _is_there(module: str) -> bool:
    if module in sys.modules:
        return True
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # of the package that it is in
        return False
    except Exception:
        # The package is there, and fails when it is imported: whoever unpickles the program tells of it.
        return True


def refuse_lacking(by_executor: Mapping[str, Iterable[str]]) -> None:
    """UnfitExecutorError when executors lack modules: what, where, and what to do."""
    names = sorted({module for modules in by_executor.values() for module in modules})
    if names:
        places = ", ".join(sorted(executor for executor, modules in by_executor.items() if modules))
        raise UnfitExecutorError(
            f"Executors cannot import modules that the program's functions are in: {', '.join(names)} (missing on "
            f"{places}, as host/process). {WHAT_TO_DO}"
        )
