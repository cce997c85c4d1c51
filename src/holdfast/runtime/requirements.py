"""Packages that a program asks for, installed once on every host by pip, for all its processes and later jobs."""

from __future__ import annotations

import fcntl
import importlib.util
import logging
import os
import platform
import socket
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import UnfitExecutorError
from holdfast.runtime.local_files import SETTING, local_root
from holdfast.storage.private_files import make_private_directory

logger = logging.getLogger(__name__)

_SHOWN_LINES = 20


@dataclass(frozen=True)
class SentRequirements:
    """Places are below the folder of what was sent, or whole paths. ``digest`` tells what is in file and cache."""

    file: str
    digest: str
    cache: str | None = None


def packages_folder(local_dir: str | None) -> Path:
    """Beside the folder of local stores, which is swept."""
    root = local_root(local_dir)
    return root.with_name(root.name + "-packages")


def installed(requirements: SentRequirements, root: Path, local_dir: str | None) -> Path:
    """The folder of the packages, which one process of the host installs while the others wait.

    UnfitExecutorError when pip fails: packages are then told, not guessed.
    """
    parent = packages_folder(local_dir)
    folder = parent / f"{requirements.digest}-{sys.implementation.cache_tag}-{platform.machine()}"
    # First: what somebody else put there would be imported.
    make_private_directory(parent, SETTING)
    if folder.is_dir():
        return folder
    with (parent / f"{folder.name}.lock").open("wb") as lock:
        # The kernel frees it when the process ends, in whatever way.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _install(requirements, root, folder)
    return folder


def _install(requirements: SentRequirements, root: Path, folder: Path) -> None:
    """Under another name until all is there: a folder of the right name is whole."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        unfinished = Path(scratch, "packages")
        unfinished.mkdir()
        sources = [] if requirements.cache is None else ["--no-index", "--find-links", str(root / requirements.cache)]
        # Beside what the executor's Python has, not instead of it: so pip looks at nothing that is installed.
        command = [*_pip(), "install", "--disable-pip-version-check", "--no-input", "--ignore-installed"]
        command += ["--target", str(unfinished), "--requirement", str(root / requirements.file), *sources]
        logger.info("Installing the program's packages: %s", " ".join(command))
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
        if done.returncode != 0:
            raise UnfitExecutorError(_refusal(requirements, done.stdout + done.stderr))
        unfinished.rename(folder)


def _pip() -> list[str]:
    """The pip of this Python, else the one that comes with Python itself, which need not be unpacked to run."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    bundled = sorted(Path(sysconfig.get_paths()["stdlib"], "ensurepip", "_bundled").glob("pip-*.whl"))
    if bundled:
        return [sys.executable, f"{bundled[-1]}/pip"]
    raise UnfitExecutorError(
        f"The program's packages cannot be installed on {socket.gethostname()}: {sys.executable} has no pip. Install "
        "pip in the Python of the executors, or send the packages in an archive: env.add_python_archive(path)."
    )


def _environment() -> dict[str, str]:
    """The variables of this process, without what Spark tells its own Python processes."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def _refusal(requirements: SentRequirements, output: str) -> str:
    last = "\n".join(output.strip().splitlines()[-_SHOWN_LINES:])
    advice = (
        "Download the packages for the executors' Python and system into a folder, with pip download -d folder -r "
        "requirements.txt, and give that as requirements_cache_dir"
        if requirements.cache is None
        else "Add what pip misses to requirements_cache_dir, as wheels for the executors' Python and system"
    )
    return f"pip cannot install the program's requirements on {socket.gethostname()}. {advice}. It said:\n{last}"
