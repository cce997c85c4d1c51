"""What the daemon of Python workers imports before it forks them, and where it finds PySpark."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the daemon imports nothing ahead")


def run(program: str) -> list[str]:
    """What a process of its own prints: it is forked, and its search path changed."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@LINUX
def test_no_module_starts_a_thread_that_would_be_lost() -> None:
    told = run(
        "import threading\n"
        "from pathlib import Path\n"
        "import numpy, pyarrow\n"
        "names = lambda: sorted(each.read_text() for each in Path('/proc/self/task').glob('*/comm'))\n"
        "before = names()\n"
        "from holdfast.spark.internals.preloaded import preload\n"
        "preload()\n"
        "print(names() == before, threading.active_count())\n"
    )
    assert told == ["True 1"]


@LINUX
def test_what_has_threads_works_in_a_forked_process() -> None:
    """Arrow's pool, which reads files and sorts with several threads, and the one of linear algebra."""
    told = run(
        "import os, sys, tempfile\n"
        "from holdfast.spark.internals.preloaded import preload\n"
        "preload()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    import numpy, pyarrow, pyarrow.parquet\n"
        "    table = pyarrow.table({'a': numpy.arange(300_000)[::-1], 'b': numpy.ones(300_000)})\n"
        "    with tempfile.NamedTemporaryFile() as file:\n"
        "        pyarrow.parquet.write_table(table, file.name, row_group_size=10_000)\n"
        "        read = pyarrow.parquet.read_table(file.name, use_threads=True).sort_by('a')\n"
        "    assert read['a'][0].as_py() == 0 and len(read) == 300_000\n"
        "    square = numpy.ones((300, 300))\n"
        "    assert (square @ square)[0, 0] == 300\n"
        "    sys.stdout.write('works\\n')\n"
        "    sys.stdout.flush()\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    assert told == ["works"]


@LINUX
def test_forked_processes_draw_numbers_of_their_own() -> None:
    told = run(
        "import os, random\n"
        "from holdfast.spark.internals.preloaded import differ_from_siblings, preload\n"
        "preload()\n"
        "import numpy\n"
        "numpy.random.random()\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        differ_from_siblings()\n"
        "        os.write(1, f'{numpy.random.random()}\\n{random.random()}\\n'.encode())\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
    )
    assert len(set(told)) == 6


#: Where Spark's archives are, as it puts them on the search path of its Python processes.
ARCHIVES = (
    "import glob, os, sys\n"
    "from importlib.util import find_spec\n"
    "package = os.path.dirname(find_spec('pyspark').origin)\n"
    "archives = glob.glob(package + '/python/lib/*.zip') + glob.glob(package + '/jars/spark-core*.jar')\n"
    "assert len(archives) == 3, archives\n"
    "from holdfast.spark.internals.search_path import prefer_installed_pyspark\n"
)


def test_pyspark_is_found_as_it_is_installed() -> None:
    told = run(
        f"{ARCHIVES}sys.path[:0] = archives\n"
        "prefer_installed_pyspark()\n"
        "import pyspark.worker, py4j\n"
        "print(any(each in archives for each in sys.path))\n"
        "print(pyspark.__file__ == package + '/__init__.py')\n"
        "print('.zip' in py4j.__file__)\n"
    )
    assert told == ["False", "True", "False"]


def test_archives_of_another_installation_stay_first(tmp_path: Path) -> None:
    """A cluster has the PySpark of its Spark, whatever is installed beside it."""
    other = tmp_path / "python" / "lib" / "pyspark.zip"
    other.parent.mkdir(parents=True)
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("pyspark/__init__.py", "other = True\n")
    told = run(
        f"{ARCHIVES}sys.path.insert(0, {str(other)!r})\n"
        "prefer_installed_pyspark()\n"
        "import pyspark\n"
        "print(pyspark.other)\n"
    )
    assert told == ["True"]
