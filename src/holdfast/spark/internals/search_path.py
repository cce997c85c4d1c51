"""Where a Python process of Spark's finds PySpark: as the package that is installed, not as Spark's archives of it."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder


def prefer_installed_pyspark() -> None:
    """Before PySpark is imported. Spark puts archives of PySpark and py4j, and one of its jars, ahead of everything
    else. Modules in an archive are compiled by every process that imports them, and its list of files is read again by
    each. Where the archives are part of an installed PySpark they are the same modules, and are left out.
    """
    directories = [entry for entry in sys.path if os.path.isdir(entry)]
    pyspark = PathFinder.find_spec("pyspark", directories)
    if pyspark is None or pyspark.origin is None or PathFinder.find_spec("py4j", directories) is None:
        return
    installed = os.path.dirname(pyspark.origin) + os.sep
    sys.path[:] = [entry for entry in sys.path if not (os.path.isfile(entry) and entry.startswith(installed))]
