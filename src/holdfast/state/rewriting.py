"""Stored entries of a state rewritten in the store's transaction, with errors that name the key, and with progress."""

from __future__ import annotations

import logging
import reprlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from holdfast.errors import StateMigrationError
from holdfast.state.handles import StateMigrated
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import HEAD_LENGTH, group_bytes, id_bytes, prefix_end, read_sized
from holdfast.state.migration import StateRewrite
from holdfast.state.store import LocalStore
from holdfast.state.versions import why_failed

_PAGE = 1024
#: How often a migration that goes on tells how far it has come.
_REPORT_SECONDS = 10.0

logger = logging.getLogger(__name__)
Entry = tuple[bytes, bytes]


class Progress:
    """Progress of one migration: logged while it runs, and told when it is done. The state ``*`` is the keys."""

    def __init__(self, operator: str, subtask: int, state: str, versions: tuple[int, int]) -> None:
        self._of = operator, subtask, state, versions
        self._what = f"Operator '{operator}', subtask {subtask}: migration of " + (
            "its keys" if state == "*" else f"state '{state}'"
        )
        self._entries = 0
        self._started = self._reported = time.monotonic()
        logger.info("%s begins, version %d to %d.", self._what, *versions)

    def add(self, entries: int) -> None:
        self._entries += entries
        now = time.monotonic()
        if now - self._reported >= _REPORT_SECONDS:
            self._reported = now
            seconds = now - self._started
            logger.info("%s: %d entries so far, in %.0f s.", self._what, self._entries, seconds)

    def done(self) -> StateMigrated:
        millis = round((time.monotonic() - self._started) * 1000)
        logger.info("%s is done: %d entries in %d ms.", self._what, self._entries, millis)
        return StateMigrated(*self._of, self._entries, millis)


@dataclass(frozen=True)
class Form:
    """One form in which the state is stored: under which id and name, in which version."""

    state_id: int
    name: str
    version: int
    rewrite: StateRewrite | None


class Rewriter:
    """Rewrites entries of one subtask. ``decode_key`` is for errors, which name the user's key."""

    def __init__(
        self, store: LocalStore, key_groups: KeyGroupRange, operator: str, decode_key: Callable[[bytes], Any]
    ) -> None:
        self._store = store
        self._key_groups = key_groups
        self._operator = operator
        self._decode_key = decode_key

    def rewrite(self, form: Form, target: int, progress: Progress, beside: bool = False) -> None:
        """Make all entries of a form those of the state id ``target``, which may be the form's own where no map keys
        change. ``beside``: another form is there already. StateMigrationError where a function fails, or two entries,
        or the state of a key in two forms, become one.
        """
        moves = form.state_id != target
        for group in self._key_groups:
            prefix = group_bytes(group) + id_bytes(form.state_id)
            head = b""
            for page in self._pages(prefix):
                written = self._rewritten(page, form, target)
                if moves:
                    self._check_distinct(written, form)
                if beside:
                    head = self._check_alone(written, head, form)
                self._store.write(written)
                progress.add(len(page))
            if moves:
                self._store.delete_range(prefix, prefix_end(prefix))

    def _pages(self, prefix: bytes) -> Iterator[list[Entry]]:
        """No scan is open while a page is written."""
        position, end = prefix, prefix_end(prefix)
        while page := list(islice(self._store.scan(position, end), _PAGE)):
            yield page
            position = page[-1][0] + b"\0"

    def _rewritten(self, page: list[Entry], form: Form, target: int) -> list[tuple[bytes, bytes | None]]:
        """In place, a dropped entry is a deletion; otherwise it is left out."""
        new_id, in_place = id_bytes(target), form.state_id == target
        rewrite = form.rewrite or StateRewrite()
        found: list[tuple[bytes, bytes | None]] = []
        stored = b""
        try:
            for stored, data in page:
                place, value = _applied(rewrite, stored, data)
                if value is not None or in_place:
                    found.append((place[:2] + new_id + place[HEAD_LENGTH:], value))
        except Exception as error:
            raise StateMigrationError(f"{self._place(stored, form)}: {why_failed(error)}") from error
        return found

    def _check_distinct(self, written: list[tuple[bytes, bytes | None]], form: Form) -> None:
        """Map keys that change stay different."""
        keys = [stored for stored, _ in written]
        taken = {stored for stored, known in zip(keys, self._store.get_many(keys), strict=True) if known is not None}
        for stored in keys:
            if stored in taken:
                raise StateMigrationError(
                    f"{self._place(stored, form)}: two stored entries become one. A migration of map keys must keep "
                    "them apart: give them different map keys, or drop one of them (return None)."
                )
            taken.add(stored)

    def _check_alone(self, written: list[tuple[bytes, bytes | None]], head: bytes, form: Form) -> bytes:
        """No key has the state in another form as well. ``head`` is the last one that was looked at; gives the next."""
        for stored, _ in written:
            if head and stored.startswith(head):
                continue
            head = stored[: _suffix_at(stored)]
            if next(self._store.scan(head, prefix_end(head)), None) is not None:
                raise StateMigrationError(
                    f"{self._place(stored, form)}: the state is stored under two names for this key, and cannot be "
                    "both. Leave renamed_from out, and bring them together in the function."
                )
        return head

    def _place(self, stored: bytes, form: Form) -> str:
        key = reprlib.repr(self._decode_key(read_sized(stored, HEAD_LENGTH)[0]))
        return f"State '{form.name}' (version {form.version}) of operator '{self._operator}', key {key}"


def _applied(rewrite: StateRewrite, stored: bytes, data: bytes) -> tuple[bytes, bytes | None]:
    if rewrite.entry is not None:
        suffix_at = _suffix_at(stored)
        pair = rewrite.entry(stored[suffix_at:], data)
        return (stored, None) if pair is None else (stored[:suffix_at] + pair[0], pair[1])
    return stored, data if rewrite.value is None else rewrite.value(data)


def _suffix_at(stored: bytes) -> int:
    return read_sized(stored, read_sized(stored, HEAD_LENGTH)[1])[1]
