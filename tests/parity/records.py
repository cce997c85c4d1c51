"""What PyFlink gave, as data: a file for each module of programs, with the version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

RECORDED = Path(__file__).with_name("recorded")

#: Lines by setting, by program.
Runs = Mapping[str, Mapping[str, list[str]]]


def write(module: str, version: str, runs: Runs) -> None:
    """Settings that gave the same lines stand together."""
    programs = {name: _together(by_setting) for name, by_setting in sorted(runs.items())}
    text = json.dumps({"apache-flink": version, "programs": programs}, indent=1, ensure_ascii=False)
    (RECORDED / f"{module}.json").write_text(text + "\n")


def read(module: str) -> dict[str, dict[str, list[str]]]:
    """Nothing where nothing was recorded."""
    path = RECORDED / f"{module}.json"
    if not path.exists():
        return {}
    found = json.loads(path.read_text())
    return {
        name: {setting: group["lines"] for group in groups for setting in group["settings"]}
        for name, groups in found["programs"].items()
    }


def _together(by_setting: Mapping[str, list[str]]) -> list[dict[str, list[str]]]:
    groups: list[dict[str, list[str]]] = []
    for setting, lines in by_setting.items():
        for group in groups:
            if group["lines"] == lines:
                group["settings"].append(setting)
                break
        else:
            groups.append({"settings": [setting], "lines": lines})
    return groups
