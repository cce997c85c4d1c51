"""Settings of the operator that makes a stream, or ends one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from holdfast.coverage.answers import SaysWhatToUse, note_accepted
from holdfast.errors import ProgramError
from holdfast.graph.job_graph import stored_operator_id
from holdfast.graph.stream_graph import Node


class OperatorSettings(SaysWhatToUse, ABC):
    """What streams and sinks share."""

    @abstractmethod
    def _operator(self) -> Node:
        """The operator to set something on; ProgramError where there is none."""

    def name(self, name: str) -> Self:
        self._operator().name = name
        return self

    def uid(self, uid: str) -> Self:
        """The name under which this operator's state is found again when the program has changed."""
        self._operator().uid = uid
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """The id of the stored operator whose state this one takes over, if the snapshot has it: of one that had no
        uid, as messages and rehearsals name it. New checkpoints are written under the uid.
        """
        self._operator().uid_hash = stored_operator_id(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        self._operator().parallelism = positive(parallelism, "parallelism")
        return self

    def set_description(self, description: str) -> Self:
        note_accepted("DataStream.set_description")
        return self

    def disable_chaining(self) -> Self:
        self._operator().chainable = False
        return self

    def slot_sharing_group(self, slot_sharing_group: Any) -> Self:
        note_accepted("DataStream.slot_sharing_group")
        return self


class StreamSettings(OperatorSettings):
    """What only operators inside a program have."""

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        self._operator().max_parallelism = positive(max_parallelism, "maximum parallelism")
        return self

    def force_non_parallel(self) -> Self:
        node = self._operator()
        node.parallelism = node.parallelism_limit = 1
        return self

    def start_new_chain(self) -> Self:
        self._operator().chain_head = True
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        note_accepted("DataStream.set_buffer_timeout")
        return self


def positive(value: int, what: str) -> int:
    if not isinstance(value, int) or not 1 <= value <= 32768:
        raise ProgramError(f"The {what} must be a whole number from 1 to 32768; got {value!r}.")
    return value
