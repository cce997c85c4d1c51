"""Rows on the driver's terminal."""

from __future__ import annotations

import sys
import uuid
from typing import Any

import msgspec

from holdfast.connectors.committed import CommittedNames
from holdfast.connectors.memory_sink import DriverSink, RowsHandle, RowsTransaction
from holdfast.connectors.row_text import printed_line_of
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import PublishOn
from holdfast.types.resolve import resolve
from holdfast.types.settings import TextForm

#: What this process has printed, by sink: a restarted attempt must not print again what is in a restored checkpoint.
_printed: dict[str, CommittedNames] = {}


class PrintSink(DriverSink):
    """A row per line, at the end of every epoch. Rows of epochs that are repeated after a failure are printed again, as
    in Flink.

    With more than one subtask every line begins with ``<subtask + 1>> ``; with an identifier with
    ``<identifier>:<subtask + 1>> ``, or ``<identifier>> `` where there is one subtask.
    """

    publish_on = PublishOn.EPOCH

    def __init__(self, identifier: str | None = None, to_stderr: bool = False) -> None:
        self._identifier = identifier or ""
        self._to_stderr = to_stderr
        self._parallelism = 1
        self._type = resolve(None)
        self._form = TextForm.FLINK
        self._id = uuid.uuid4().hex

    def bind_type(self, type_info: Any) -> None:
        self._type = resolve(type_info)

    def bind_text_form(self, form: TextForm) -> None:
        self._form = form

    def bind_parallelism(self, parallelism: int) -> None:
        self._parallelism = parallelism

    def write(self, transaction: RowsTransaction, batch: Batch) -> None:
        transaction.rows.extend(map(printed_line_of(self._type, self._form), batch.values))

    def encode_rows(self, rows: list[Any]) -> bytes:
        return msgspec.msgpack.encode(rows)

    def deliver(self, handle: RowsHandle) -> None:
        if not _printed.setdefault(self._id, CommittedNames()).add(handle.name):
            return
        prefix = self._prefix(handle.name.subtask)
        stream = sys.stderr if self._to_stderr else sys.stdout
        stream.write("".join(f"{prefix}{line}\n" for line in msgspec.msgpack.decode(handle.rows, type=list[str])))
        stream.flush()

    def _prefix(self, subtask: int) -> str:
        parts = [self._identifier, str(subtask + 1) if self._parallelism > 1 else ""]
        prefix = ":".join(part for part in parts if part)
        return f"{prefix}> " if prefix else ""
