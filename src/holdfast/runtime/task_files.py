"""What a program brings with it beside its functions, where its tasks run: it is made ready before anything of the
program is unpickled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.runtime.ready_files import ReadyFiles
from holdfast.runtime.requirements import SentRequirements, installed

_EXECUTABLE = 0o111


@dataclass(frozen=True)
class SentFile:
    """A file or folder of the distributed cache. ``place`` is below the folder of what was sent, or a whole path."""

    name: str
    place: str
    executable: bool = False


@dataclass(frozen=True)
class TaskFiles:
    """What the driver has sent to every host that runs tasks. Places are below a folder that the engine knows."""

    #: Folders that archives were unpacked into.
    archives: tuple[str, ...] = ()
    cached: tuple[SentFile, ...] = ()
    requirements: SentRequirements | None = None
    #: Where modules are, of an engine that does not send them.
    modules: tuple[str, ...] = ()

    def make_ready(self, root: str, local_dir: str | None) -> ReadyFiles:
        """Install what is not installed yet, and let this process import it. Packages go before those of the
        executor's own Python, archives behind.
        """
        folder = os.path.abspath(root)
        packages = [] if self.requirements is None else [str(installed(self.requirements, Path(folder), local_dir))]
        archives = [os.path.join(folder, name) for name in self.archives]
        _search([*self.modules, *packages], [folder, *archives] if archives else [])
        for file in self.cached:
            if file.executable:
                place = Path(folder, file.place)
                place.chmod(place.stat().st_mode | _EXECUTABLE)
        cached = {file.name: os.path.join(folder, file.place) for file in self.cached}
        return ReadyFiles(folder if archives else None, cached)


#: What jobs have added to the search path of this process.
_added: set[str] = set()


def _search(first: list[str], last: list[str]) -> None:
    """Look for modules here as well; no more where jobs before have looked. What others search, as Spark its folder of
    files, stays where it is.
    """
    others = [path for path in sys.path if path not in _added]
    ahead, behind = ([path for path in paths if path not in others] for paths in (first, last))
    # The folder of the process's own program stays in front of all.
    sys.path[:] = [*others[:1], *ahead, *others[1:], *behind]
    _added.clear()
    _added.update(ahead, behind)


@contextmanager
def undone_search_path() -> Iterator[None]:
    """What a job adds to the search path of this process goes with the block."""
    try:
        yield
    finally:
        _search([], [])
