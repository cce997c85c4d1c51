"""The host of programs itself, with programs that need no Spark."""

from __future__ import annotations

from pathlib import Path

from tests.docs.programs import ProgramHost


def run(host: ProgramHost, directory: Path, name: str, code: str, **more: float) -> tuple[int | None, str, str]:
    (directory / name).mkdir()
    done = host.run(code, directory / name, ["one", "two"], **more)
    return done.code, done.stdout, done.stderr


def test_programs_know_nothing_of_each_other(tmp_path: Path) -> None:
    with ProgramHost(tmp_path) as host:
        first = "import os, sys\nos.environ['LEFT'] = 'x'\nleft = 1\nopen('file', 'w').close()\nprint(sys.argv[1:])"
        assert run(host, tmp_path, "first", first) == (0, "['one', 'two']\n", "")
        second = "import os\nprint(__name__, os.listdir(), 'LEFT' in os.environ, 'left' in globals())"
        assert run(host, tmp_path, "second", second) == (0, "__main__ [] False False\n", "")


def test_a_program_that_fails_is_reported_and_the_next_one_runs(tmp_path: Path) -> None:
    with ProgramHost(tmp_path) as host:
        code, _, stderr = run(host, tmp_path, "first", "print('before')\nraise ValueError('no')")
        assert code == 1 and stderr.splitlines()[-1] == "ValueError: no"
        assert run(host, tmp_path, "second", "raise SystemExit(3)")[0] == 3
        assert run(host, tmp_path, "third", "print('here')") == (0, "here\n", "")


def test_a_program_that_hangs_is_ended_and_says_where_it_was(tmp_path: Path) -> None:
    with ProgramHost(tmp_path) as host:
        code, _, stderr = run(host, tmp_path, "first", "import time\ntime.sleep(600)", seconds=1.0)
        assert code is None
        assert "program.py" in stderr and "line 2" in stderr
        assert run(host, tmp_path, "second", "print('here')")[0] == 0


def test_a_job_that_is_left_behind_ends_with_its_process(tmp_path: Path) -> None:
    job = "Thread(target=time.sleep, args=[600], name='holdfast-1', daemon=True)"
    left = f"import time\nfrom threading import Thread\n{job}.start()"
    with ProgramHost(tmp_path) as host:
        assert run(host, tmp_path, "first", left)[0] == 0
        look = "import threading\nprint([t.name for t in threading.enumerate()])"
        assert run(host, tmp_path, "second", look)[1] == "['MainThread']\n"
