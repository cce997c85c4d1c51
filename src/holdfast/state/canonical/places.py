"""Where the tables of a savepoint are: in folders and files whose names tell what they hold, whatever that is called.

``<operator>/keyed/<state>/``, ``<operator>/timers/<domain>.<service>/``, ``<operator>/list/<state>/``,
``<operator>/broadcast/<state>/``, ``<operator>/raw-keyed/`` and ``<operator>/raw-operator/``: lists, broadcast maps and
keyed states of one operator may have the same name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from holdfast.state.handles import DistributionMode, StateMeta
from holdfast.state.registry import TIMERS
from holdfast.storage.checksum import checksum

#: What file systems allow, less what temporary names and endings add.
_LONGEST = 120


def file_name(name: str) -> str:
    """A name for a folder that tells ``name``, and that no other name has.

    Letters, digits and ``_ - .`` stay as they are, all others are percent-encoded.
    """
    # surrogatepass: a name is any str, also one that has no UTF-8 form.
    data = name.encode("utf-8", "surrogatepass")
    quoted = quote(data, safe="").replace("~", "%7E")
    if quoted.startswith("."):
        quoted = f"%2E{quoted[1:]}"
    return quoted if 0 < len(quoted) <= _LONGEST else f"{quoted[:_LONGEST]}%{checksum(data)}"


def folder_name(name: str) -> str:
    """A name for a folder at the top of a savepoint, where names that begin with ``_`` are Holdfast's own."""
    found = file_name(name)
    return f"%5F{found[1:]}" if found.startswith("_") else found


@dataclass(frozen=True)
class TablePlace:
    """Where the tables of one (operator, subtask) go."""

    folder: str
    #: The subtask and its execution.
    part: str
    #: What every table says about whose it is.
    owner: dict[str, Any]

    @classmethod
    def of(cls, operator_id: str, uid: str | None, name: str, subtask: int, nonce: str) -> TablePlace:
        owner = {"operator_id": operator_id, "uid": uid, "operator": name, "subtask": subtask}
        return cls(folder_name(uid or operator_id), f"{subtask}-{nonce}", owner)

    def path_of_keyed(self, meta: StateMeta, number: int) -> str:
        if meta.kind != TIMERS:
            return self._path("keyed", file_name(meta.name), number)
        _, domain, service = meta.name.split("/", 2)
        return self._path("timers", f"{domain}.{file_name(service)}", number)

    def path_of_list(self, name: str, mode: DistributionMode, number: int) -> str:
        category = "broadcast" if mode is DistributionMode.BROADCAST else "list"
        return self._path(category, file_name(name), number)

    def path_of_raw(self, keyed: bool) -> str:
        return self._path("raw-keyed" if keyed else "raw-operator", "", 0)

    def _path(self, category: str, state: str, number: int) -> str:
        return "/".join(part for part in (self.folder, category, state, f"part-{self.part}-{number}.parquet") if part)
