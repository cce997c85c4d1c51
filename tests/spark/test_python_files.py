"""Modules that executors are sent: what becomes of files, folders and archives."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Configuration
from holdfast.common.settings_parser import parse_settings
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.errors import ProgramError
from holdfast.spark.python_files import _as_spark_takes_it as sent
from holdfast.spark.python_files import send_python_files


def names(archive: str) -> list[str]:
    with zipfile.ZipFile(archive) as opened:
        return opened.namelist()


def test_files_and_archives_are_sent_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("helper.py", "modules.zip", "older.egg"):
        (tmp_path / name).write_bytes(b"")
        assert sent(name) == sent(f"file://{tmp_path / name}") == str(tmp_path / name)
    assert sent("hdfs://host/modules.zip") == "hdfs://host/modules.zip"


def test_a_package_keeps_its_name_and_another_folder_gives_what_is_in_it(tmp_path: Path) -> None:
    package = tmp_path / "app" / "shop"
    (package / "__pycache__").mkdir(parents=True)
    (package / ".git").mkdir()
    (package / "env").mkdir()
    for name in ("__init__.py", "sales.py", "__pycache__/sales.pyc", ".git/HEAD", "env/pyvenv.cfg", "rates.csv"):
        (package / name).write_text(name)
    assert names(sent(str(package))) == ["shop/__init__.py", "shop/rates.csv", "shop/sales.py"]
    assert names(sent(str(tmp_path / "app"))) == ["shop/__init__.py", "shop/rates.csv", "shop/sales.py"]
    (tmp_path / "app" / "helper.py").write_text("")
    assert names(sent(str(tmp_path / "app")))[0] == "helper.py"


def test_the_name_of_an_archive_tells_its_content(tmp_path: Path) -> None:
    """Spark does not replace what it has sent under a name."""
    (tmp_path / "helper.py").write_text("one")
    first = sent(str(tmp_path))
    assert sent(str(tmp_path)) == first
    (tmp_path / "helper.py").write_text("two")
    assert sent(str(tmp_path)) != first


def test_a_wheel_becomes_an_archive_that_spark_knows(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "shop-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("shop/__init__.py", "")
    archive = sent(str(tmp_path / "shop-1.0-py3-none-any.whl"))
    assert archive.endswith(".zip") and names(archive) == ["shop/__init__.py"]


def test_what_is_no_module_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"'no_such\.py' .*does not exist"):
        sent("no_such.py")
    (tmp_path / "rates.csv").write_text("")
    with pytest.raises(ProgramError, match=r"rates\.csv' .*is no module; expected .*addFile"):
        sent(str(tmp_path / "rates.csv"))


def test_files_of_the_program_come_behind_those_of_the_configuration() -> None:
    configuration = Configuration.from_dict({"python.files": "a.py, folder"})
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.add_python_file("b.zip")
    assert parse_settings(env.get_configuration()).dependencies.python_files == ("a.py", "folder", "b.zip")


def test_another_content_under_a_name_that_was_sent_is_refused(spark: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "sent_once.py", tmp_path / "b" / "sent_once.py"
    for file, content in ((first, "RATE = 1"), (second, "RATE = 2")):
        file.parent.mkdir()
        file.write_text(content)
    send_python_files(spark, [str(first)])
    send_python_files(spark, [str(first)])
    with pytest.raises(ProgramError, match="has another content than the one of its name"):
        send_python_files(spark, [str(second)])
