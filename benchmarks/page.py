"""The measured part of docs/performance.md, tables and plots, from the results of one run, or of several that each
measured a part.

Run: python benchmarks/page.py results.json ... What stands outside the two marks of the page is left as it is.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import count
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT)]

from benchmarks.tables import Table  # noqa: E402 - behind the path that finds it

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
#: Suites whose tables have curves: what lies across, what upwards, and on which scale.
_CURVES = {
    "growth": ("keys", "us per row", "linear"),
    "checkpoints": ("changed keys", "MB", "log"),
}


def write(docs: Path, *runs: dict[str, Any]) -> Path:
    """Put the results of runs into the page of a docs folder, and the plots into a folder beside it."""
    page, plots = docs / "performance.md", docs / "performance"
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise ValueError(f"{page} has no place for the measured part: it needs the lines {BEGIN} and {END}.")
    plots.mkdir(exist_ok=True)
    for old in plots.glob("*.png"):
        old.unlink()
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    parts = "\n\n".join(measured(results, plots) for results in runs)
    page.write_text(f"{before}{BEGIN}\n\n{parts}\n\n{END}{after}")
    return page


def _free(path: Path) -> Path:
    """A name that is free, with a number behind it if need be: several runs may have measured one job."""
    names = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return path if not path.exists() else next(name for name in names if not name.exists())


def measured(results: dict[str, Any], plots: Path) -> str:
    """Markdown of all tables of a run, each with its plot if it has one."""
    # Only those who draw need it.
    from benchmarks import plots as drawing

    jobs = {figure["job"] for figure in results["figures"]}
    parts = [_machine(results["machine"])]
    for table in (Table.of(content) for content in results["tables"]):
        parts.append(f"### {table.title[:1].upper()}{table.title[1:]}")
        path = plots / f"{table.name}.png"
        if table.name in jobs:
            path = _free(path)
            if drawing.throughput(results["figures"], table.name, path):
                parts.append(_image(table, path))
        elif table.name in _CURVES and not path.exists() and _CURVES[table.name][0] in table.columns:
            drawing.curves(table, *_CURVES[table.name], path)
            parts.append(_image(table, path))
        parts.append(table.markdown())
    return "\n\n".join(parts)


def _image(table: Table, path: Path) -> str:
    return f"![{table.title}]({path.parent.name}/{path.name})"


def _machine(facts: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    peers = [
        ", ".join(f"{name} {version}" for name, version in found.items()) if isinstance(found, dict) else found
        for found in facts.get("environments", {}).values()
    ]
    return (
        f"Measured {facts['started']} ({facts['size']} size, commit {facts['commit']}) on {facts['cores']} cores of "
        f"{facts['cpu']}, {facts['memory']}, {facts['system']}, Python {facts['python']}, {facts['java']}; load "
        f"{facts['load']} at the start and {facts['load at the end']} at the end. With {packages}"
        + (f"; peers: {'; '.join(peers)}." if peers else ".")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--docs", type=Path, default=PROJECT / "docs")
    options = parser.parse_args()
    print(write(options.docs, *(json.loads(path.read_text()) for path in options.results)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
