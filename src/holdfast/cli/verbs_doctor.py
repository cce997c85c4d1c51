"""``holdfast doctor``: whether an application is fit to run jobs."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast.cli.arguments import AsJson
from holdfast.cli.errors import CommandError
from holdfast.cli.printing import Output
from holdfast.cli.program import run_program
from holdfast.cli.verbs_run import Arguments, PythonFile, Settings, program_of, told_settings
from holdfast.common.configuration import Configuration
from holdfast.common.run_settings import RUN_VARIABLE, encode_run_settings
from holdfast.doctor.findings import Finding, Level, worst

_COLOURS = {Level.GREEN: "green", Level.YELLOW: "yellow", Level.RED: "bold red"}
_VERDICTS = {
    Level.GREEN: "This application is fit.",
    Level.YELLOW: "Jobs run here; what is yellow costs time or safety.",
    Level.RED: "Jobs do not run here, or are not safe: what is red comes first.",
}


def doctor(
    arguments: Arguments = None, settings: Settings = None, python: PythonFile = None, as_json: AsJson = False
) -> None:
    """Say whether an application is fit: Spark, Python, settings, storage, clocks, disks and ports, everywhere.

    That of a program, which runs up to its execute(), or the one that the settings make. The exit code is 1 if anything
    is red.
    """
    os.environ[RUN_VARIABLE] = encode_run_settings(told_settings(settings or [], None).to_dict())
    if python is None and not arguments:
        # Imported here, as everything that needs Spark: other commands do without.
        from holdfast.datastream import StreamExecutionEnvironment

        environment = StreamExecutionEnvironment.get_execution_environment()
        _conclude(environment.get_configuration(), [], as_json)
    _of_program(*program_of(python, arguments or []), as_json)


def _of_program(program: str, rest: list[str], as_json: bool) -> None:
    from holdfast.datastream.engines import data_frames_of
    from holdfast.datastream.interception import intercepting

    output = sys.stdout

    def act(graph: Any, configuration: Configuration) -> None:
        with redirect_stdout(output):
            _conclude(configuration, data_frames_of(graph), as_json)

    # What the program prints is not what the doctor says.
    with intercepting(act), redirect_stdout(sys.stderr):
        run_program(program, rest)
    raise CommandError(f"The program {program} ended without a call of execute(): its settings are not known.")


def _conclude(configuration: Configuration, data_frames: Sequence[Any], as_json: bool) -> None:
    """Examine and tell. SystemExit in any case: a program does not go on behind it."""
    from holdfast.cli.examination import Examination

    output = Output(as_json)
    with output.progress("Examining the application..."):
        findings = Examination(configuration, data_frames).findings()
    output.document(document_of(findings))
    if not as_json:
        console = Console()
        console.print(table_of(findings))
        console.print(summary_of(findings))
    raise SystemExit(1 if worst(findings) is Level.RED else 0)


def document_of(findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "level": worst(findings).name,
        "findings": [
            {"level": one.level.name, "subject": one.subject, "seen": one.seen, "advice": one.advice}
            for one in findings
        ],
    }


def table_of(findings: Sequence[Finding]) -> Table:
    """One entry for each finding, in the order in which they were made; advice stands below."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for finding in findings:
        told = Text.assemble((finding.subject, "bold"), f": {finding.seen}")
        if finding.advice:
            told.append(f"\n-> {finding.advice}")
        shown.add_row(Text(finding.level.name, style=_COLOURS[finding.level]), told)
    return shown


def summary_of(findings: Sequence[Finding]) -> Text:
    counts = Counter(finding.level for finding in findings)
    numbers = ", ".join(f"{counts[level]} {level.name.lower()}" for level in sorted(Level, reverse=True))
    level = worst(findings)
    return Text(f"\n{numbers}. {_VERDICTS[level]}", style=_COLOURS[level])
