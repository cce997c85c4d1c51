"""The commands, under Flink's names."""

from __future__ import annotations

import typer

from holdfast.cli import verbs_checkpoints, verbs_doctor, verbs_list, verbs_rescale, verbs_run, verbs_savepoint
from holdfast.cli.arguments import Checkpoints
from holdfast.cli.errors import UsageError

_HELP = {"help_option_names": ["-h", "--help"]}
#: What follows the program belongs to it.
_PASS_ON = {**_HELP, "allow_interspersed_args": False, "ignore_unknown_options": True}

app = typer.Typer(
    help="Run and control Holdfast jobs.",
    no_args_is_help=True,
    context_settings=_HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
#: They start programs instead of looking for jobs.
_STARTING = ("run", "info", "doctor")


@app.callback()
def of_all_verbs(context: typer.Context, checkpoints: Checkpoints = None) -> None:
    """Run and control Holdfast jobs."""
    verb = context.invoked_subcommand
    if checkpoints is not None and verb in _STARTING:
        raise UsageError(
            f"-c is '{checkpoints}' and '{verb}' looks for no job; expected it with a verb that does. The checkpoint "
            "directory of a program is a setting of it: -D execution.checkpointing.dir=URI."
        )


app.command("run", context_settings=_PASS_ON)(verbs_run.run)
app.command("info", context_settings=_PASS_ON)(verbs_run.info)
app.command("doctor", context_settings=_PASS_ON)(verbs_doctor.doctor)
app.command("list", context_settings=_HELP)(verbs_list.list_jobs)
app.command("savepoint", context_settings=_HELP)(verbs_savepoint.savepoint)
app.command("stop", context_settings=_HELP)(verbs_savepoint.stop)
app.command("cancel", context_settings=_HELP)(verbs_savepoint.cancel)
app.command("rescale", context_settings=_HELP)(verbs_rescale.rescale)
app.command("checkpoint", context_settings=_HELP)(verbs_savepoint.checkpoint)
app.command("checkpoints", context_settings=_HELP)(verbs_checkpoints.checkpoints)
