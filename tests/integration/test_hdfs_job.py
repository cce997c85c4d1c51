"""A whole job on an HDFS, under the URI that Hadoop's own programs use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.remote_job import run_stages


@pytest.mark.slow
def test_kills_a_replaced_driver_a_savepoint_and_another_parallelism(
    hdfs_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs_cluster.configuration_dir))
    run_stages(hdfs_cluster.rpc_uri("jobs"), tmp_path)
