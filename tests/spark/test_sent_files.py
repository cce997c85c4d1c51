"""What is sent through Spark, and what Spark does not take."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ProgramError
from holdfast.spark.application import application_settings
from holdfast.spark.packed_folder import packed_folder
from holdfast.spark.sent_files import send_files
from holdfast.types.dependencies import Archive, CachedFile, DependencySettings, Requirements


def archive(path: Path, content: str) -> str:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("data.txt", content)
    return str(path)


def test_a_folder_of_the_same_content_is_the_same_archive(tmp_path: Path) -> None:
    folder = tmp_path / "my folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "tool").write_text("one")
    (folder / "inner" / "tool").chmod(0o755)
    first = packed_folder(folder, tmp_path)
    assert packed_folder(folder, tmp_path) == first and " " not in first.name
    with zipfile.ZipFile(first) as packed:
        assert packed.namelist() == ["inner/tool"]
        assert packed.getinfo("inner/tool").external_attr >> 16 & 0o111
    (folder / "inner" / "tool").write_text("two")
    assert packed_folder(folder, tmp_path) != first


def test_another_archive_for_a_folder_that_was_sent_is_refused(spark: Any, tmp_path: Path) -> None:
    first, second = archive(tmp_path / "a.zip", "1"), archive(tmp_path / "b.zip", "2")
    for _ in range(2):
        files = send_files(spark, DependencySettings(archives=(Archive(first, "sent_once"),)))
        assert files.archives == ("sent_once",)
    with pytest.raises(ProgramError, match=r"b\.zip' would be 'sent_once' .* sent something else"):
        send_files(spark, DependencySettings(archives=(Archive(second, "sent_once"),)))
    # One that was refused was not sent: under another name it is.
    send_files(spark, DependencySettings(archives=(Archive(second, "sent_too"),)))


@pytest.mark.parametrize(
    ("brought", "told"),
    [
        (DependencySettings(archives=(Archive("no_such.zip", "x"),)), "'no_such.zip' of add_python_archive.*not exist"),
        (DependencySettings(archives=(Archive(__file__, "x"),)), "is not an archive with one of .zip"),
        (DependencySettings(cached_files=(CachedFile("no_such.csv", "rates"),)), "under the name 'rates'"),
        (DependencySettings(requirements=Requirements("hdfs://host/needs.txt")), "is not on the driver's host"),
        (DependencySettings(requirements=Requirements(__file__, __file__)), "is no folder; expected one of packages"),
    ],
)
def test_what_cannot_be_sent_is_told_by_name(spark: Any, brought: DependencySettings, told: str) -> None:
    with pytest.raises(ProgramError, match=told):
        send_files(spark, brought)


def test_an_application_is_started_with_jars_class_paths_and_python(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"")
    brought = DependencySettings(jars=(f"file://{jar}",), classpaths=("file:///b.jar", "/c"), executable="/opt/python")
    told = {"spark.jars": "own.jar", "spark.driver.extraClassPath": "/own"}
    assert application_settings(brought, told, submitted=False) == {
        "spark.pyspark.python": "/opt/python",
        "spark.jars": f"own.jar,file://{jar}",
        "spark.driver.extraClassPath": "/own:/b.jar:/c",
        "spark.executor.extraClassPath": "/b.jar:/c",
    }
    assert application_settings(brought, {}, submitted=True) == {"spark.pyspark.python": "/opt/python"}
    with pytest.raises(ProgramError, match=r"'none.jar' of add_jars.*does not exist.*Connectors are part of Holdfast"):
        application_settings(DependencySettings(jars=("none.jar",)), {}, submitted=False)
    with pytest.raises(ProgramError, match=r"'http://host/a.jar' of add_classpaths"):
        application_settings(DependencySettings(classpaths=("http://host/a.jar",)), {}, submitted=False)
