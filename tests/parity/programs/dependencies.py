"""Files, archives and requirements that a program brings along."""

import zipfile
from pathlib import Path

from pyflink.common import Types
from pyflink.datastream import MapFunction, RuntimeContext

from tests.kit.wheel import make_wheel
from tests.parity.case import program


def numbers(env):
    return env.from_collection([1, 2], Types.INT())


class Imports(MapFunction):
    """Uses a module that only workers have."""

    def open(self, runtime_context: RuntimeContext):
        import parity_brought

        self.twice = parity_brought.twice

    def map(self, value):
        return self.twice(value)


@program(6)
def python_file(env, out):
    module = out / "parity_brought.py"
    module.write_text("def twice(n):\n    return 2 * n\n")
    env.add_python_file(str(module))
    return collected(numbers(env).map(Imports(), Types.INT()))


class ImportsPackage(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        from parity_package.inner import thrice

        self.thrice = thrice

    def map(self, value):
        return self.thrice(value)


@program(6)
def python_package(env, out):
    """A directory that holds a package."""
    package = out / "brought" / "parity_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text("def thrice(n):\n    return 3 * n\n")
    env.add_python_file(str(package.parent))
    return collected(numbers(env).map(ImportsPackage(), Types.INT()))


class Reads(MapFunction):
    """Reads a file of an archive, by the path below the working directory."""

    def __init__(self, path):
        self.path = path

    def open(self, runtime_context: RuntimeContext):
        self.text = Path(self.path).read_text()

    def map(self, value):
        return f"{value} {self.text}"


def archive(out):
    """An archive of equal bytes for every job, since a Spark application sends one under a name."""
    path = out / "data.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(zipfile.ZipInfo("inner/text.txt"), "from an archive")
    return str(path)


@program(6)
def python_archive(env, out):
    env.add_python_archive(archive(out))
    return collected(numbers(env).map(Reads("data.zip/inner/text.txt"), Types.STRING()))


@program(6)
def python_archive_with_a_name(env, out):
    env.add_python_archive(archive(out), "named")
    return collected(numbers(env).map(Reads("named/inner/text.txt"), Types.STRING()))


class ImportsInstalled(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        import parity_installed

        self.negative = parity_installed.negative

    def map(self, value):
        return self.negative(value)


@program(6)
def python_requirements(env, out):
    """From a folder of packages, without network."""
    requirements = out / "requirements.txt"
    requirements.write_text("parity-installed==1.0\n")
    make_wheel(out / "packages", "parity_installed", "def negative(n):\n    return -n\n")
    env.set_python_requirements(str(requirements), str(out / "packages"))
    return collected(numbers(env).map(ImportsInstalled(), Types.INT()))


@program(6)
def cached_files(env, out):
    """PyFlink's functions cannot ask for them: a job with a file and a folder runs as it does without."""
    (out / "folder").mkdir()
    for name in ("rates.csv", "folder/inner.csv"):
        (out / name).write_text("EUR,2\n")
    env.register_cached_file(str(out / "rates.csv"), "rates")
    env.register_cached_file(str(out / "folder"), "folder", True)
    return numbers(env).map(lambda n: n + 1, Types.INT())


def collected(stream):
    """Before the directory of the program is gone."""
    from tests.parity.case import text_of

    with stream.execute_and_collect() as rows:
        return [text_of(row) for row in rows]
