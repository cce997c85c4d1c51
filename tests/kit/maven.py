"""Jars of Maven Central, downloaded once, through ``mvn``, into the virtual environment."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.kit.unavailable import Unavailable

_DOWNLOAD_SECONDS = 300


def jars_of(*artifacts: str) -> Path:
    """The folder with the jars of ``group:artifact:version`` and of everything they need at run time. The version of
    one that is named here counts for the others too.
    """
    digest = hashlib.sha256(" ".join(artifacts).encode()).hexdigest()[:8]
    home = Path(sys.prefix) / f"holdfast-jars-{digest}"
    try:
        with (Path(sys.prefix) / ".holdfast-jars.lock").open("w") as lock:
            # Several test processes ask at once, and one downloads.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.exists():
                _download(home, artifacts)
    except (OSError, subprocess.SubprocessError) as cause:
        raise Unavailable(f"{artifacts[0]} cannot be had from Maven Central ({cause})") from cause
    return home


def _download(home: Path, artifacts: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent) as directory:
        Path(directory, "pom.xml").write_text(_project(artifacts))
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"]
        command = ["mvn", "-q", "-B", *goal]
        done = subprocess.run(
            command, cwd=directory, check=False, timeout=_DOWNLOAD_SECONDS, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise OSError(done.stdout.partition("\n")[0] or f"mvn ended with {done.returncode}")
        Path(directory, "jars").rename(home)


def _project(artifacts: tuple[str, ...]) -> str:
    named = [artifact.split(":") for artifact in artifacts]
    # Maven would read the description of a version that nobody takes, and fail where there is none.
    others = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>" for group, name, _ in named
    )
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{release}</version>"
        f"<exclusions>{others}</exclusions></dependency>"
        for group, name, release in named
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>holdfast</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{wanted}</dependencies></project>"
    )
