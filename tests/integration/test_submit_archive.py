"""The commands of the page about clusters, on a cluster whose hosts have neither Holdfast nor its Python."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.blocks import PROJECT, blocks_of
from tests.docs.reader import Read, read_page
from tests.kit.cluster import StandaloneCluster
from tests.kit.environment_archive import pack_environment

pytestmark = pytest.mark.slow

PAGE = PROJECT / "docs" / "how-to" / "run-on-a-cluster.md"
ARCHIVE = "environment.tar.gz#environment"
RESULTS = ["(north,500)", "(north,708)", "(south,276)"]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack_environment(tmp_path_factory.mktemp("archive") / "environment.tar.gz")


@pytest.fixture(scope="module")
def cluster() -> Iterator[StandaloneCluster]:
    with StandaloneCluster(workers=1, cores_per_worker=2, bare=True) as running:
        yield running


def typed(command: str, cluster: StandaloneCluster, directory: Path, changes: dict[str, str]) -> Read:
    """What comes of the block with ``command``, and the files of its page, typed on this host for that cluster."""
    blocks = [block for block in blocks_of(PAGE) if block.file is not None or command in block.code]
    changes |= {"spark://host:7077": cluster.master_url, "hdfs://host/checkpoints": str(directory / "checkpoints")}
    for place, block in enumerate(blocks):
        code = block.code
        for old, new in changes.items():
            code = code.replace(old, new)
        blocks[place] = replace(block, code=code)
    path = f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH\n"
    return read_page(blocks, directory, path, seconds=180)


def results(read: Read) -> list[str]:
    """Rows that the program printed, without the numbers of subtasks."""
    lines = [line.partition("> ")[2] for part in read.printed for line in part if "> (" in line]
    return sorted(line.replace("'", "").replace(" ", "") for line in lines)


def test_the_hosts_have_no_holdfast() -> None:
    environment = StandaloneCluster.bare_environment()
    try:
        done = subprocess.run(["python3", "-c", "import holdfast"], env=environment, capture_output=True, check=False)
    except FileNotFoundError:
        return
    assert done.returncode != 0


def test_spark_submit_with_an_archive(cluster: StandaloneCluster, archive: Path, tmp_path: Path) -> None:
    read = typed("spark-submit --master", cluster, tmp_path, {ARCHIVE: f"{archive}#environment"})
    assert read.code == 0, read.report
    assert results(read) == RESULTS, read.report


def test_holdfast_run_with_an_archive(cluster: StandaloneCluster, archive: Path, tmp_path: Path) -> None:
    read = typed("holdfast run -D spark.master", cluster, tmp_path, {ARCHIVE: f"{archive}#environment"})
    assert read.code == 0, read.report
    assert results(read) == RESULTS, read.report


def test_without_the_archive_the_job_fails_at_once(cluster: StandaloneCluster, tmp_path: Path) -> None:
    """The hosts have some Python, and no Holdfast in it. Checkpoints are on, and with them restarts."""
    plain = {f"--archives {ARCHIVE}": "", "./environment/bin/python": "python3"}
    read = typed("spark-submit --master", cluster, tmp_path, plain)
    assert read.code != 0
    assert "failed in attempt 1 and is not restarted" in read.report
    assert "Python tasks cannot begin on the executors" in read.report and "--archives" in read.report
