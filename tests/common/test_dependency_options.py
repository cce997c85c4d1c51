"""What a program brings with it: methods of the environment and configuration keys say the same."""

from __future__ import annotations

import pytest

from holdfast.common import Configuration
from holdfast.common.settings_parser import parse_settings
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.errors import ConfigurationError
from holdfast.types.dependencies import Archive, CachedFile, DependencySettings, Requirements


def parsed(settings: dict[str, str]) -> DependencySettings:
    return parse_settings(Configuration.from_dict(settings)).dependencies


def test_methods_and_keys_say_the_same() -> None:
    env = StreamExecutionEnvironment(Configuration())
    env.add_python_file("a.py")
    env.add_python_file("shop")
    env.add_python_archive("data.zip")
    env.add_python_archive("/archives/venv.tar.gz", "venv")
    env.set_python_requirements("requirements.txt")
    env.set_python_requirements("requirements.txt", "cache")
    env.set_python_executable("venv/bin/python")
    env.register_cached_file("hdfs://host:9000/rates.csv", "rates")
    env.register_cached_file("/opt/it's;a tool", "tool", True)
    env.add_jars("file:///jars/a.jar", "b.jar")
    env.add_jars("http://host/c,d.jar")
    env.add_classpaths("file:///jars/e.jar")
    expected = DependencySettings(
        python_files=("a.py", "shop"),
        archives=(Archive("data.zip", "data.zip"), Archive("/archives/venv.tar.gz", "venv")),
        requirements=Requirements("requirements.txt", "cache"),
        cached_files=(
            CachedFile("hdfs://host:9000/rates.csv", "rates"),
            CachedFile("/opt/it's;a tool", "tool", True),
        ),
        executable="venv/bin/python",
        jars=("file:///jars/a.jar", "b.jar", "http://host/c,d.jar"),
        classpaths=("file:///jars/e.jar",),
    )
    assert parse_settings(env.get_configuration()).dependencies == expected
    keys = {
        "python.files": "a.py,shop",
        "python.archives": "data.zip,/archives/venv.tar.gz#venv",
        "python.requirements": "requirements.txt#cache",
        "python.executable": "venv/bin/python",
        "pipeline.cached-files": "name:rates,path:hdfs://host:9000/rates.csv;"
        "name:tool,path:'/opt/it''s;a tool',executable:true",
        "pipeline.jars": "file:///jars/a.jar;b.jar;http://host/c,d.jar",
        "pipeline.classpaths": "file:///jars/e.jar",
    }
    assert parsed(keys) == expected
    assert parsed({}) == DependencySettings()


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("python.archives", "a.zip#..", "'a.zip#..'; expected 'archive' or 'archive#folder'"),
        ("python.archives", "a.zip#x/y", "has letters, digits"),
        ("python.archives", "my data.zip", "has letters, digits"),
        ("python.archives", "a.zip#x,b.zip#x", "another folder than that of 'a.zip'"),
        ("pipeline.cached-files", "name:a", "expected 'name' and 'path'"),
        ("pipeline.cached-files", "name:a,path:b,size:c", "expected 'name' and 'path'"),
        ("pipeline.cached-files", "name:a,path:b;name:a,path:c", "one file for each name"),
        ("pipeline.cached-files", "some text", "pairs such as"),
    ],
)
def test_what_cannot_be_is_refused(key: str, text: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parsed({key: text})
    assert key in str(refused.value) and told in str(refused.value)
