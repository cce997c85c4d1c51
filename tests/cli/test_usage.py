"""Arguments, exit codes, and how the settings of a run reach the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast.common import Configuration
from holdfast.common.run_settings import RUN_VARIABLE, encode_run_settings, run_settings
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.errors import ConfigurationError

PLAN = """
from holdfast.common import Types
from holdfast.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
pairs = env.from_collection([(1, 2)], type_info=Types.TUPLE([Types.LONG(), Types.LONG()]))
pairs.key_by(lambda row: row[0], Types.LONG()).map(lambda row: row).name("same").print()
env.execute("planned")
"""
TELL = """
import json, os, sys
from holdfast.datastream import StreamExecutionEnvironment
settings = StreamExecutionEnvironment.get_execution_environment().get_configuration().to_dict()
print(json.dumps({"arguments": sys.argv[1:], "settings": settings}))
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """What a run sets for its program is gone after the test."""
    for name in (RUN_VARIABLE, "HOLDFAST_PLAN_ONLY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cancel",), "Missing JobID. Specify a JobID to cancel a job."),
        (("stop",), "Missing JobID. Specify a JobID to stop a job."),
        (("savepoint",), "Missing JobID. Specify a Job ID to trigger a savepoint."),
        (("checkpoint",), "Missing JobID. Specify a Job ID to manipulate checkpoint."),
        (("checkpoints",), "Missing JobID."),
        (("rescale", "-p", "2"), "Missing JobID. Specify a JobID to rescale a job."),
        (("rescale", "job"), "Missing parallelism. Specify it with -p."),
        (("rescale", "job", "-p", "0"), "-p"),
        (("rescale", "0" * 32, "-p", "2"), "No driver in"),
        (("run",), "The program is missing."),
        (("run", "nowhere.py"), "The program nowhere.py does not exist"),
        (("run", "--nonsense", "x.py"), "Unrecognized option: --nonsense"),
        (("run", "-D", "novalue", __file__), "expected KEY=VALUE"),
        (("run", "-p", "0", __file__), "-p"),
        (("cancel", "a", "b"), "Too many arguments"),
        (("list", "--nonsense"), "--nonsense"),
        (("stop", "-type", "other", "x"), "other"),
        (("nonsense",), "nonsense"),
        (("stop", "0" * 32), "No driver in"),
        (("list", "-m", "127.0.0.1:1"), "does not answer"),
    ],
)
def test_errors_have_code_1_and_say_why(cli, arguments, message):
    assert message in cli(*arguments, code=1).err


def test_missing_arguments_point_to_the_help(cli):
    told = cli("cancel", code=1).err
    assert told.endswith("Use the help option (-h or --help) to get help on the command.\n")


@pytest.mark.parametrize(
    "verb", ["run", "info", "doctor", "list", "savepoint", "stop", "cancel", "rescale", "checkpoint", "checkpoints"]
)
def test_every_verb_has_help(cli, verb):
    assert cli(verb, "-h").out == cli(verb, "--help").out
    assert f"holdfast {verb}" in cli(verb, "-h").out


def test_an_empty_list(cli):
    assert cli("list").lines == ["Waiting for response...", "No running jobs.", "No scheduled jobs."]
    assert cli("list", "-r").lines == ["Waiting for response...", "No running jobs."]
    assert cli("list", "-s").lines == ["Waiting for response...", "No scheduled jobs."]
    assert cli("list", "-a", "--json").json == {"jobs": []}


def test_settings_and_arguments_reach_the_program(cli, tmp_path):
    program = tmp_path / "tell.py"
    program.write_text(TELL)
    told = cli(
        "run", "-s", "sp/savepoint-1", "-n", "--allow-pickle", "-cm", "claim", "-p", "7", "-Da.b=c=d", "-D", "e=f g",
        str(program), "-x", "--parallelism", "9", "-D", "not=ours",
    ).json
    assert told["arguments"] == ["-x", "--parallelism", "9", "-D", "not=ours"]
    assert told["settings"] == {
        "a.b": "c=d",
        "e": "f g",
        "parallelism.default": "7",
        "execution.state-recovery.path": str(tmp_path / "sp" / "savepoint-1"),
        "execution.state-recovery.ignore-unclaimed-state": "true",
        "execution.state-recovery.claim-mode": "CLAIM",
        "holdfast.state.allow-pickle": "true",
    }


def test_the_program_by_option(cli, tmp_path):
    program = tmp_path / "tell.py"
    program.write_text(TELL)
    assert cli("run", "-py", str(program), "--input", "x").json["arguments"] == ["--input", "x"]
    assert cli("run", "--python", str(program), "x").json["arguments"] == ["x"]


def test_the_command_line_is_above_the_file_and_below_the_program(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("parallelism.default: 1\nstate.checkpoints.dir: /file\nx: file\n")
    monkeypatch.chdir(tmp_path)
    told = {"parallelism.default": "2", "execution.checkpointing.dir": "/line", "y": "line"}
    monkeypatch.setenv(RUN_VARIABLE, encode_run_settings(told))
    given = Configuration.from_dict({"parallelism.default": "3", "z": "program"})
    settings = StreamExecutionEnvironment.get_execution_environment(given).get_configuration().to_dict()
    assert settings == {
        "parallelism.default": "3", "execution.checkpointing.dir": "/line", "x": "file", "y": "line", "z": "program",
    }


def test_settings_of_a_run_that_are_damaged():
    assert run_settings({}) is None
    with pytest.raises(ConfigurationError, match=RUN_VARIABLE):
        run_settings({RUN_VARIABLE: "{"})


def test_the_plan_of_a_program(cli, tmp_path):
    program = tmp_path / "plan.py"
    program.write_text(PLAN)
    lines = cli("info", "-p", "3", str(program)).lines
    assert lines[0] == "----------------------- Execution Plan -----------------------"
    assert lines[-1] == "-" * 62
    nodes = json.loads("\n".join(lines[1:-1]))["nodes"]
    assert [node["pact"] for node in nodes] == ["Data Source", "Operator", "Data Sink"]
    assert nodes[1]["predecessors"] == [{"id": 1, "ship_strategy": "HASH", "side": "second"}]
    assert nodes[1]["parallelism"] == 3


def test_a_program_without_execute_has_no_plan(cli, tmp_path):
    (tmp_path / "empty.py").write_text("")
    assert "no plan" in cli("info", str(tmp_path / "empty.py"), code=1).err


def test_the_exit_code_of_an_attached_program(cli, tmp_path):
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(4)\n")
    cli("run", str(tmp_path / "leaves.py"), code=4)


def test_shells_complete_verbs(jobs_dir):
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.cli"],
        env={**os.environ, "_HOLDFAST_COMPLETE": "complete_bash", "COMP_WORDS": "holdfast che", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["checkpoint", "checkpoints"]


def test_a_missing_package_is_told_with_its_extra(cli, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "typer"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("holdfast.cli.") and name != "holdfast.cli.__main__"]:
        monkeypatch.delitem(sys.modules, name)
    assert "pip install 'holdfast[cli]'" in cli("list", code=1).err


def test_modules_are_for_the_program_too_and_absolute(tmp_path, jobs_dir):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("NAME = 'shop'\n")
    (tmp_path / "prices.py").write_text("NAME = 'prices'\n")
    program = tmp_path / "elsewhere" / "main.py"
    program.parent.mkdir()
    program.write_text(
        "import prices, shop\n"
        "from holdfast.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "print(prices.NAME, shop.NAME, env.get_configuration().get_string('python.files', ''))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.cli", "run", "-pyfs", "prices.py,shop", str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["prices", "shop", f"{tmp_path / 'prices.py'},{tmp_path / 'shop'}"], done.stderr


def test_what_executors_need_is_told_with_absolute_paths(tmp_path, jobs_dir):
    program = tmp_path / "main.py"
    program.write_text(
        "from holdfast.common.settings_parser import parse_settings\n"
        "from holdfast.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "told = parse_settings(env.get_configuration()).dependencies\n"
        "print(*[f'{one.path}#{one.target}' for one in told.archives], told.requirements.path,\n"
        "      told.requirements.cache, told.executable, sep='\\n')\n"
    )
    flags = ["-pyarch", "a.zip#data,hdfs://host/b.zip", "-pyreq", "needs.txt#wheels", "-pyexec", "data/bin/python"]
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.cli", "run", *flags, str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    expected = [f"{tmp_path}/a.zip#data", "hdfs://host/b.zip#b.zip", f"{tmp_path}/needs.txt", f"{tmp_path}/wheels"]
    assert done.stdout.split() == [*expected, "data/bin/python"], done.stderr
