"""Reads PyFlink's names from an installed apache-flink, and writes them down: ``make pyflink-names``.

apache-flink comes from PyPI into an environment of its own, the one of the benchmarks. No Java is needed.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.environments import python_of
from tests.pyflink.answers import NAMES_FILE

_READER = Path(__file__).with_name("surface.py")


def main() -> None:
    done = subprocess.run([python_of("flink"), str(_READER)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"PyFlink's modules could not be read:\n{done.stderr}")
    NAMES_FILE.write_text(done.stdout)
    read = json.loads(done.stdout)
    counted = sum(map(len, read["classes"].values())) + sum(map(len, read["exports"].values()))
    print(f"{NAMES_FILE}: {counted} names of apache-flink {read['version']}. Now: make docs")


if __name__ == "__main__":
    main()
