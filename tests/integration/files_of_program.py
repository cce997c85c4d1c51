"""A program that brings modules, an archive, packages and data files with it, and its files."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kit.wheel import make_wheel

#: What the functions find: in a module beside the program's own, in a module and a data file of an archive, in a
#: package that pip installs, and in two registered files.
EXPECTED = [
    "module=11 archive=12 data=13 package=14 cached=15 folder=16 tool=true parameter=17",
] * 2

MAIN = '''
import json, os, sys
from holdfast.common import Configuration, Types
from holdfast.datastream import MapFunction, StreamExecutionEnvironment

given = json.loads(sys.argv[1])
if given.get("own session"):
    from pyspark.sql import SparkSession
    SparkSession.builder.master(given["own session"]).config("spark.ui.enabled", "false").getOrCreate()


class Finds(MapFunction):
    def open(self, runtime_context):
        import brought_module, brought_package, unpacked_module
        cache = runtime_context.get_distributed_cache()
        with open("unpacked/data.txt") as data, open(cache.get_file("rates")) as rates:
            found = {
                "module": brought_module.NUMBER,
                "archive": unpacked_module.NUMBER,
                "data": data.read(),
                "package": brought_package.NUMBER,
                "cached": rates.read(),
            }
        with open(os.path.join(cache.get_file("folder"), "inner", "number.txt")) as inner:
            found["folder"] = inner.read()
        found["tool"] = str(os.access(cache.get_file("tool"), os.X_OK)).lower()
        found["parameter"] = runtime_context.get_job_parameter("number", "none")
        self.told = " ".join(f"{name}={value}" for name, value in found.items())
        self.python = sys.executable

    def map(self, value):
        return self.told


env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given["settings"]))
env.set_parallelism(2)
env.get_config().set_global_job_parameters({"number": 17})
if not given.get("by command line"):
    env.add_python_file("brought_module.py")
    env.add_python_archive("brought.zip", "unpacked")
    env.set_python_requirements("requirements.txt", "wheels")
env.register_cached_file("rates.txt", "rates")
env.register_cached_file("folder", "folder")
env.register_cached_file("tool.sh", "tool", True)
rows = env.from_collection([1, 2], Types.LONG()).rebalance().map(Finds(), Types.STRING())
rows.print()
env.execute("files")
'''


def write_files(directory: Path) -> Path:
    """The folder of the program, with everything that it brings."""
    directory.mkdir(parents=True)
    (directory / "main.py").write_text(MAIN)
    (directory / "brought_module.py").write_text("NUMBER = 11\n")
    with zipfile.ZipFile(directory / "brought.zip", "w") as archive:
        archive.writestr("unpacked_module.py", "NUMBER = 12\n")
        archive.writestr("data.txt", "13")
    make_wheel(directory / "wheels", "brought_package", "NUMBER = 14\n")
    (directory / "requirements.txt").write_text("brought_package==1.0\n")
    (directory / "rates.txt").write_text("15")
    (directory / "folder" / "inner").mkdir(parents=True)
    (directory / "folder" / "inner" / "number.txt").write_text("16")
    (directory / "tool.sh").write_text("#!/bin/sh\n")
    return directory


def command(settings: dict[str, str], own_session: str = "", by_command_line: bool = False) -> list[str]:
    """The program, to be started in its folder."""
    given: dict[str, Any] = {"settings": settings, "own session": own_session, "by command line": by_command_line}
    return [sys.executable, "main.py", json.dumps(given)]


def printed(output: str) -> Iterator[str]:
    """What rows say, without the numbers of subtasks."""
    mark = "module="
    return (mark + line.partition(mark)[2] for line in output.splitlines() if mark in line)
