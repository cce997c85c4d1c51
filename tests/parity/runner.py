"""Runs programs on one package, in one process. Started as a program it writes what they gave into a file:

    python -m tests.parity.runner pyflink RESULTS [--only PATTERN]

Nothing is imported but the standard library and the package.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.parity.case import Case, Order, Program, Setting, printed_line, text_of

PROGRAMS = Path(__file__).with_name("programs")
#: Name in PyPI, by package.
DISTRIBUTIONS = {"pyflink": "apache-flink", "holdfast": "holdfast"}
#: A failure is to be seen. PyFlink's workers run in this environment.
SETTINGS = {
    "restart-strategy.type": "none",
    "python.executable": sys.executable,
    "python.client.executable": sys.executable,
    "taskmanager.numberOfTaskSlots": "8",
}

#: The first line of a program that failed and should not.
FAILED = "it failed"
#: The line of one that should, and did.
FAILS_AS_IT_SHOULD = "it fails"
#: Modules of programs that need a service, with the variable that says where it is.
OUTSIDE = {"kafka": "PARITY_KAFKA"}

Printed = Callable[[], AbstractContextManager[Callable[[], str]]]


def load(name: str, package: str) -> ModuleType:
    """A module of programs, with ``pyflink`` replaced by the package in its text. No worker can import it, so that its
    functions travel as they are.
    """
    path = PROGRAMS / f"{name}.py"
    module = ModuleType(f"parity_programs_{name}")
    module.__file__ = str(path)
    exec(compile(path.read_text().replace("pyflink", package), str(path), "exec"), module.__dict__)
    return module


def module_names() -> list[str]:
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


def programs_of(module: ModuleType) -> dict[str, Program]:
    """By name; each has its ``case``."""
    return {name: value for name, value in vars(module).items() if hasattr(value, "case")}


class Runner:
    """Runs programs on one package; ``printed`` catches what the package prints, ``jars`` are URLs."""

    def __init__(
        self, package: str, printed: Printed, configured: Mapping[str, str] | None = None, jars: Sequence[str] = ()
    ) -> None:
        self._package = package
        self._common = importlib.import_module(f"{package}.common")
        self._datastream = importlib.import_module(f"{package}.datastream")
        self._printed = printed
        self._configured = {**SETTINGS, **(configured or {})}
        self._jars = jars

    def lines(self, program: Any, setting: Setting) -> list[str]:
        """What a program gives, as texts. One that fails, and should, gives that it does."""
        case: Case = program.case
        try:
            given = self._given(program, setting)
        except Exception as error:
            # PyFlink's errors hold pages of Java's traces, in which nearly all would be found.
            if not case.fails or (self._package == "holdfast" and not re.search(case.fails, str(error))):
                raise
            return [FAILS_AS_IT_SHOULD]
        if case.fails:
            raise AssertionError(f"{program.__name__} should fail, and gives {given}")
        return given

    def _given(self, program: Program, setting: Setting) -> list[str]:
        with tempfile.TemporaryDirectory(prefix="parity-") as directory, self._printed() as printed:
            given = program(self._environment(setting), Path(directory))
            if isinstance(given, list):
                return given
            if given is not None:
                self._share_workers(given.get_execution_environment())
                with given.execute_and_collect() as rows:
                    return [text_of(row) for row in rows]
            return [printed_line(line) for line in printed().splitlines()] + list(file_lines(Path(directory)))

    @staticmethod
    def _share_workers(env: Any) -> None:
        """PyFlink runs the functions of a small job in the process of its program, if that is executed. One that is
        collected would start processes, which takes seconds.
        """
        if hasattr(env, "_open"):
            env._open()

    def _environment(self, setting: Setting) -> Any:
        configuration = self._common.Configuration()
        for name, value in self._configured.items():
            configuration.set_string(name, value)
        env = self._datastream.StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(setting.parallelism)
        env.set_runtime_mode(self._datastream.RuntimeExecutionMode[setting.mode])
        if self._jars:
            env.add_jars(*self._jars)
        return env


def file_lines(directory: Path) -> Iterator[str]:
    """The lines of the files that a sink has published below ``out``."""
    for path in sorted((directory / "out").rglob("*")):
        hidden = any(part[0] in "._" for part in path.relative_to(directory).parts)
        if path.is_file() and not hidden:
            yield from path.read_text().splitlines()


@contextmanager
def stdout_in_file() -> Iterator[Printed]:
    """The standard output of this process, and of those that it starts, is in a file; what a block wrote is read from
    it. Native code and a JVM print as well, so it is the descriptor that is replaced.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    with tempfile.NamedTemporaryFile() as file:
        os.dup2(file.fileno(), 1)

        @contextmanager
        def printed() -> Iterator[Callable[[], str]]:
            start = os.fstat(file.fileno()).st_size

            def text() -> str:
                sys.stdout.flush()
                return Path(file.name).read_bytes()[start:].decode()

            yield text

        try:
            yield printed
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)


@dataclass
class Results:
    """What the programs of a package gave."""

    package: str
    version: str
    cases: dict[str, Case] = field(default_factory=dict)
    #: Lines by setting, by program. Of one that failed they are its error.
    runs: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Results:
        found = json.loads(path.read_text())
        cases = {name: Case(**{**case, "order": Order(case["order"])}) for name, case in found["cases"].items()}
        return cls(found["package"], found["version"], cases, found["runs"])


def chosen_modules(patterns: Sequence[str]) -> list[str]:
    """The modules that may have programs of such names."""
    heads = [pattern.partition(".")[0] for pattern in patterns]
    return [name for name in module_names() if any(fnmatchcase(name, head) for head in heads)]


def run_all(package: str, patterns: Sequence[str], path: Path, jars: Sequence[str], say: Callable[[str], None]) -> None:
    """All programs whose name, ``<module>.<program>``, fits. What there is stands in the file behind each of them."""
    results = Results(package, importlib.metadata.version(DISTRIBUTIONS[package]))
    results.write(path)
    with stdout_in_file() as printed:
        runner = Runner(package, printed, jars=jars)
        for module in chosen_modules(patterns):
            if module in OUTSIDE and OUTSIDE[module] not in os.environ:
                say(f"{module}: not run, since {OUTSIDE[module]} does not say where its service is")
                continue
            try:
                programs = programs_of(load(module, package))
            except Exception:
                say(f"{module} cannot be loaded:\n{traceback.format_exc()}")
                continue
            for name, program in programs.items():
                if any(fnmatchcase(f"{module}.{name}", pattern) for pattern in patterns):
                    _run(runner, program, f"{module}.{name}", results, say)
                    results.write(path)


def _run(runner: Runner, program: Any, name: str, results: Results, say: Callable[[str], None]) -> None:
    results.cases[name] = program.case
    results.runs[name] = {}
    for setting in program.case.settings():
        begin = time.monotonic()
        try:
            lines = runner.lines(program, setting)
        except Exception as error:
            lines = [FAILED, "".join(traceback.format_exception(error))]
        results.runs[name][setting.name] = lines
        say(f"{name} {setting.name}: {len(lines)} lines, {time.monotonic() - begin:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the programs of tests/parity on a package.")
    parser.add_argument("package", choices=sorted(DISTRIBUTIONS))
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="programs, such as 'windows.*'")
    parser.add_argument("--jars", nargs="*", default=[], metavar="URL", help="what PyFlink needs for them")
    given = parser.parse_args()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    run_all(given.package, given.only, given.results, given.jars, say)


if __name__ == "__main__":
    main()
