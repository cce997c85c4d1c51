"""A whole job on a server of S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.remote_job import run_stages


@pytest.mark.slow
def test_kills_a_replaced_driver_a_savepoint_and_another_parallelism(s3: str, tmp_path: Path) -> None:
    run_stages(f"{s3}/job", tmp_path)
