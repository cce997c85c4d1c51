"""The commands, under Flink's names."""

from __future__ import annotations

import typer

from holdfast.cli import verbs_checkpoints, verbs_list, verbs_run, verbs_savepoint

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
app.command("run", context_settings=_PASS_ON)(verbs_run.run)
app.command("info", context_settings=_PASS_ON)(verbs_run.info)
app.command("list", context_settings=_HELP)(verbs_list.list_jobs)
app.command("savepoint", context_settings=_HELP)(verbs_savepoint.savepoint)
app.command("stop", context_settings=_HELP)(verbs_savepoint.stop)
app.command("cancel", context_settings=_HELP)(verbs_savepoint.cancel)
app.command("checkpoint", context_settings=_HELP)(verbs_savepoint.checkpoint)
app.command("checkpoints", context_settings=_HELP)(verbs_checkpoints.checkpoints)
