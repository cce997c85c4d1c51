"""What a program would do with a checkpoint, said before it runs."""

from __future__ import annotations

from os import PathLike, fspath

from holdfast.datastream.engines import engine_for
from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment
from holdfast.job.rehearsal import rehearse
from holdfast.job.restore_plan import RestorePlan

__all__ = ["RestorePlan", "plan_restore"]


def plan_restore(
    env: StreamExecutionEnvironment, path: str | PathLike[str], open_functions: bool = True
) -> RestorePlan:
    """What a job that starts from the checkpoint at ``path`` would do with each state of each operator.

    Call it when the program is complete, where ``env.execute()`` would stand; the program can be executed after it.
    Nothing is written and no Spark job is run. The rules, types and files are looked at with the code that restores
    them, under the settings of ``env``.

    States are declared by functions when they are opened. So every function is copied, and ``initialize_state()`` of
    the copy is called, and behind a ``key_by`` ``open()`` and ``close()``, once, in this process, as for the first
    subtask of a job that restores. What such a call raises makes the states that it had not declared yet ``not
    known``. ``open_functions=False`` calls none of them.
    """
    graph, settings = env.get_stream_graph(), env.job_settings()
    return rehearse(graph, settings, fspath(path), open_functions, engine_for(graph, settings))
