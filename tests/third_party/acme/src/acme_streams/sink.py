"""A sink whose transactions are files: renamed when they are durable, and again when they are published."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote

import msgspec

from holdfast.datastream import TwoPhaseCommitSink
from holdfast.errors import TransactionError
from holdfast.runtime.batch import Batch
from holdfast.runtime.sink import TransactionName

_SUFFIX = ".rows"


@dataclass
class _Transaction:
    name: TransactionName
    file: IO[str]
    rows: int = 0


class ShelfSink(TwoPhaseCommitSink):
    """A file of JSON lines in ``published`` for each transaction that was committed; others are in ``open``."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory).absolute()
        for folder in ("open", "published"):
            (self.directory / folder).mkdir(parents=True, exist_ok=True)

    # In tasks.

    def begin(self, name: TransactionName) -> _Transaction:
        return _Transaction(name, self._file("open", name).open("w"))

    def write(self, transaction: _Transaction, batch: Batch) -> None:
        for value in batch.values:
            transaction.file.write(json.dumps(value) + "\n")
            transaction.rows += 1

    def pre_commit(self, transaction: _Transaction) -> bytes | None:
        if not transaction.rows:
            self.discard(transaction)
            return None
        transaction.file.flush()
        os.fsync(transaction.file.fileno())
        transaction.file.close()
        return msgspec.json.encode(transaction.name)

    def discard(self, transaction: _Transaction) -> None:
        transaction.file.close()
        self.abort(transaction.name)

    # On the driver.

    def commit(self, handles: Sequence[bytes]) -> None:
        for handle in handles:
            name = self.name_of(handle)
            target = self._file("published", name)
            if target.exists():
                continue
            try:
                self._file("open", name).rename(target)
            except FileNotFoundError as error:
                raise TransactionError(f"The rows of {name} are lost: {target} and its open file are gone.") from error

    def open_transactions(self, job_id: str) -> Iterator[TransactionName]:
        for file in sorted((self.directory / "open").glob("*" + _SUFFIX)):
            job, operator, subtask, attempt, epoch, nonce = map(unquote, file.name.removesuffix(_SUFFIX).split("~"))
            if job == job_id:
                yield TransactionName(job, operator, int(subtask), int(attempt), int(epoch), nonce)

    def abort(self, name: TransactionName) -> None:
        self._file("open", name).unlink(missing_ok=True)

    def name_of(self, handle: bytes) -> TransactionName:
        try:
            return msgspec.json.decode(handle, type=TransactionName)
        except msgspec.DecodeError as error:
            raise TransactionError(
                f"{handle!r:.60} is not a transaction of this sink ({error}). Restore with the sink that wrote the "
                "checkpoint."
            ) from error

    def _file(self, folder: str, name: TransactionName) -> Path:
        parts = (name.job_id, name.operator_id, name.subtask, name.attempt, name.epoch, name.nonce)
        return self.directory / folder / ("~".join(quote(str(part), safe="") for part in parts) + _SUFFIX)

    def published(self) -> list[object]:
        """What a reader finds."""
        files = sorted((self.directory / "published").glob("*" + _SUFFIX))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]
