"""Where local stores live on a host: one folder per user, job and attempt, shared by all executors of the host."""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
import time
from pathlib import Path

from holdfast.runtime.plan import JobPlan
from holdfast.storage.private_files import make_private_directory

#: Folders of jobs that nobody has touched for so long belong to drivers that died.
_STALE_SECONDS = 24 * 3600
SETTING = "holdfast.state.local-dir"


def local_root(configured: str | None) -> Path:
    return Path(configured) if configured else Path(tempfile.gettempdir()) / f"holdfast-{getpass.getuser()}"


def attempt_directory(plan: JobPlan, attempt: int) -> Path:
    return local_root(plan.options.local_dir) / (plan.options.store_name or plan.job_id) / str(attempt)


def older_attempts(plan: JobPlan, attempt: int) -> list[Path]:
    """Folders that earlier attempts of the job left on this host, newest first."""
    job = attempt_directory(plan, attempt).parent
    if not job.is_dir():
        return []
    numbers = [int(one.name) for one in job.iterdir() if one.name.isdigit() and int(one.name) < attempt]
    return [job / str(number) for number in sorted(numbers, reverse=True)]


def sweep_older_attempts(plan: JobPlan, attempt: int) -> None:
    """All slots of the attempt have their state: what earlier ones left is of no more use."""
    for older in older_attempts(plan, attempt):
        shutil.rmtree(older, ignore_errors=True)


def prepare_attempt(plan: JobPlan, attempt: int) -> Path:
    """The attempt's folder, made now for this user alone; jobs long dead are swept away. UnfitExecutorError when
    somebody else can write to any folder that leads to it from the configured one.
    """
    directory = attempt_directory(plan, attempt)
    for folder in (local_root(plan.options.local_dir), directory.parent, directory):
        make_private_directory(folder, SETTING)
    os.utime(directory.parent)
    limit = time.time() - _STALE_SECONDS
    for job in directory.parent.parent.iterdir():
        try:
            if job != directory.parent and job.stat().st_mtime < limit:
                shutil.rmtree(job, ignore_errors=True)
        except FileNotFoundError:
            continue
    return directory
