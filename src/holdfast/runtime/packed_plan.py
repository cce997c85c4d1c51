"""The plan on its way to the tasks, behind what must be there before it is unpickled."""

from __future__ import annotations

import os
from dataclasses import replace

import cloudpickle

from holdfast.runtime.plan import JobPlan
from holdfast.runtime.program import load_program
from holdfast.runtime.task_files import TaskFiles


def pack_plan(plan: JobPlan, packed_plan: bytes, files: TaskFiles) -> bytes:
    """A pickled plan with what must be ready before it is unpickled: its functions may import packages of the program.
    """
    packed: bytes = cloudpickle.dumps((files, plan.options.local_dir, packed_plan))
    return packed


def load_plan(packed: bytes, root: str) -> JobPlan:
    """The plan, in a process that finds below ``root`` what the driver has sent."""
    files, local_dir, packed_plan = load_program(packed, "The program")
    ready = files.make_ready(root, local_dir)
    plan = load_program(packed_plan, "The program")
    assert isinstance(plan, JobPlan)
    # Tasks work in another folder, and find their stores from anywhere.
    options = replace(plan.options, local_dir=None if local_dir is None else os.path.abspath(local_dir))
    return replace(plan, files=ready, options=options)
