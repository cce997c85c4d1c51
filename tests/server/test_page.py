"""The page, in a browser without a screen, against a job that runs."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.server.serving import JOB, Served, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser: install chromium (Debian: apt-get install chromium) to run this test"
)


def _show(served: Served, directory, fragment: str, seconds: float = 5) -> str:
    """What the page has become after a while."""
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", f"--user-data-dir={directory}", f"--timeout={round(1000 * seconds)}",
            f"--virtual-time-budget={round(1000 * seconds)}", "--dump-dom", f"{served.server.url}/{fragment}",
        ],
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_chromium
@pytest.mark.slow
def test_a_checkpoint_is_seen_to_complete(in_process, tmp_path):
    with serving(tmp_path, **{"web.refresh-interval": "200 ms"}) as served:
        served.await_checkpoints(2)
        before = served.get(f"/jobs/{JOB}/checkpoints")["counts"]["completed"]
        page = _show(served, tmp_path / "browser", f"#token={served.server.token}")
        seen = int(re.search(r"\((\d+) completed", page)[1])
        assert seen > before
        assert f'data-job="{JOB}"' in page
        assert re.search(r'data-checkpoint="\d+" data-status="COMPLETED"', page)
        for text in ("counting", "RUNNING", "← script, HASH", "chk-"):
            assert text in page
        subtasks = page[page.index("Subtasks of checkpoint") : page.index("Savepoints")]
        assert subtasks.count('class="completed"') == 3


@needs_chromium
@pytest.mark.slow
def test_without_the_token_the_page_asks_for_it(served, tmp_path):
    page = _show(served, tmp_path / "browser", "", seconds=2)
    assert re.search(r'<section id="login">', page)
    assert JOB not in page


def test_the_page_loads_nothing(served):
    page = served.call("GET", "/").body
    assert not re.search(r"""(src|href)\s*=|url\(|@import|https?://|innerHTML""", page)
