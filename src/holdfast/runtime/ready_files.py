"""Files of the program on the host of a task, as its functions find them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast.errors import ProgramError


@dataclass(frozen=True)
class ReadyFiles:
    """Where tasks find what was sent."""

    #: Relative paths are below it; None leaves it where it is.
    working_folder: str | None = None
    #: By the names that the program has given them.
    cached: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """While the block runs, relative paths are those of the working folder."""
        if self.working_folder is None:
            yield
            return
        # A process may live longer than the folder it was started in, which has no name any more then.
        before = os.open(".", os.O_RDONLY)
        try:
            os.chdir(self.working_folder)
            yield
        finally:
            os.fchdir(before)
            os.close(before)


class DistributedCache:
    """The files that the program has registered, on the host of the task."""

    def __init__(self, cached: Mapping[str, str]) -> None:
        self._cached = cached

    def get_file(self, name: str) -> str:
        """The path of the file, or folder, that was registered under this name."""
        if name not in self._cached:
            known = ", ".join(f"'{each}'" for each in self._cached) or "none"
            raise ProgramError(
                f"No file is registered under the name '{name}'; there are: {known}. Register it with "
                "env.register_cached_file(path, name)."
            )
        return self._cached[name]
