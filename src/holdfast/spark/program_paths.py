"""Where the driver's program finds its modules, beyond what every Python of the installation finds by itself."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Mapping
from functools import cache

#: The search path of Python processes, for all that a session starts.
EXECUTOR_PATH = "spark.executorEnv.PYTHONPATH"


def program_paths() -> list[str]:
    """The folder of the program, entries of PYTHONPATH, and what else was made importable, as absolute paths."""
    told = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    found = (os.path.abspath(path) for path in (*sys.path, *told))
    return list(dict.fromkeys(path for path in found if not of_installation(path)))


def local_python_path(settings: Mapping[str, str]) -> dict[str, str]:
    """The setting by which the Python processes of a session on this host find what the program finds; none for a
    cluster, whose hosts have files of their own.
    """
    if not settings["spark.master"].startswith("local"):
        return {}
    given = settings.get(EXECUTOR_PATH)
    return {EXECUTOR_PATH: os.pathsep.join([*([given] if given else []), *program_paths()])}


def of_installation(path: str) -> bool:
    """Whether a file or folder belongs to this Python or to the packages that are installed in it."""
    real = os.path.realpath(path)
    return any(real == folder or real.startswith(folder + os.sep) for folder in _folders_of_installation())


@cache
def _folders_of_installation() -> tuple[str, ...]:
    known = sysconfig.get_paths()
    libraries = [known[name] for name in ("stdlib", "platstdlib")]
    # Python looks for an archive of its library beside it, whether there is one or not.
    archive = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    archives = [os.path.join(os.path.dirname(library), archive) for library in libraries]
    packages = [known["purelib"], known["platlib"], *site.getsitepackages(), site.getusersitepackages()]
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in (*libraries, *archives, *packages)))
