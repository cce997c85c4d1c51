"""Every error Holdfast raises on purpose.

HoldfastError
├── ConfigurationError              a setting that is unknown, malformed or contradictory
├── ProgramError                    a program that cannot become a job (graph, types, parallelism)
│   ├── InvalidValueError           an argument that PyFlink refuses with a ValueError, too; also a ValueError
│   ├── UnavailableNameError        a method of PyFlink that Holdfast does not have; also an AttributeError
│   ├── UnavailableImportError      a class or module of PyFlink that Holdfast does not have; also an ImportError
│   ├── NotPicklableError           a function that cannot travel to the executors
│   └── UnfitExecutorError          an executor without the Python, the modules or the storage that the program needs
├── MissingExtraError               an optional dependency that is not installed
├── FunctionError                   a user's function raised; names operator, subtask, key and row
├── CallTimeoutError                a call of an AsyncFunction took too long; also a TimeoutError
├── RowTypeError                    a row that is not of its stream's declared type
├── StateError
│   ├── StateAccessError            state used where it does not exist (no key, wrong stream)
│   ├── StateDescriptorError        two descriptors of one name that do not agree
│   ├── StateTypeError              a value that is not of its declared type
│   ├── NullKeyError                a row whose key is None
│   ├── StateMigrationError         restored state that the new type cannot read
│   ├── StoreVersionError           a local store that is missing or at another epoch
│   └── StoreDamagedError           a local store that does not hold the bytes that were written
├── EpochError                      an epoch that must not be accepted
│   ├── IncompleteInputError        a message or a barrier is missing
│   └── MixedExecutionError         two executions of one subtask were mixed
├── CheckpointError                 a checkpoint that failed; carries a CheckpointFailureReason
├── StorageError                    a file that cannot be written or read
│   ├── CorruptFileError            a file whose bytes are not the ones that were written
│   └── UnfitFileError              a file whose content is not what the source expects
├── SourceError                     a source that cannot be read on from where it was
│   └── SourceUnreachableError      the system that a source reads from does not answer
├── RestoreError                    a snapshot that does not fit the program
│   └── PickledStateError           a snapshot that would have to be unpickled, where nobody allowed it
├── TransactionError                a sink transaction that is lost or cannot be committed
│   ├── TransactionRefusedError     the other system refuses what the transaction holds, and would do so again
│   └── PartialOutputError          output is published in part, and nothing durable holds the rest
├── JobLockedError                  another driver owns the job directory
├── LeadershipLostError             this driver does not lead its job any more
├── JobEndedError                   the job of this id has ended, and has nothing to go on from
└── JobExecutionError               the job ended in FAILED; its cause is chained
"""

from __future__ import annotations

from typing import Self

#: What can be known of where an error happened, in the order in which it is told.
_PLACE = ("task", "operator", "key", "state")


class HoldfastError(Exception):
    """Root of all errors that Holdfast raises on purpose.

    Whoever lets one pass on its way up adds what only he knows of where it happened: the state's name, the key, the
    row, the subtask. So nothing is done for it while all goes well.
    """

    def at(self, **known: str) -> Self:
        """This error, with parts of its place as texts for people: ``task``, ``operator``, ``key``, ``state`` and
        ``row``; and ``operator_id``, by which failures of one operator are known. What is known already stays: whoever
        is nearer knows better.
        """
        self.__dict__["place"] = {**known, **self.place}
        return self

    @property
    def place(self) -> dict[str, str]:
        """What is known of where it happened."""
        known: dict[str, str] = self.__dict__.get("place", {})
        return known

    def __str__(self) -> str:
        said, place = super().__str__(), self.place
        told = ", ".join(place[part] for part in _PLACE if part in place)
        if told:
            said = f"{told}: {said}"
        return f"{said.removesuffix('.')}; the row was {place['row']}" if "row" in place else said


class ConfigurationError(HoldfastError):
    """A setting is unknown, malformed or contradicts another one."""


class ProgramError(HoldfastError):
    """The program cannot be turned into a job."""


class InvalidValueError(ProgramError, ValueError):
    """An argument that cannot be, which PyFlink refuses with a ValueError."""


class UnavailableNameError(ProgramError, AttributeError):
    """A method or attribute of PyFlink that Holdfast does not have. The message says what to use instead."""


class UnavailableImportError(ProgramError, ImportError):
    """A class or function of PyFlink that Holdfast does not have. The message says what to use instead."""


class NotPicklableError(ProgramError):
    """A function cannot be sent to the executors."""


class UnfitExecutorError(ProgramError):
    """An executor lacks what the program needs: a Python, a module, the checkpoint directory.

    Before the first epoch no restart can mend that. Later it is one executor among others that were fit.
    """


class MissingExtraError(HoldfastError):
    """An optional dependency is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f"Install it with: pip install 'holdfast[{extra}]'"
        )


class FunctionError(HoldfastError):
    """A user's function raised. The original exception is the cause."""


class CallTimeoutError(HoldfastError, TimeoutError):
    """A call of an AsyncFunction took too long, and the function does not say what to do then."""


class RowTypeError(HoldfastError):
    """A row does not have the declared type of its stream."""


class StateError(HoldfastError):
    """Something about state is wrong."""


class StateAccessError(StateError):
    """State was used where it does not exist."""


class StateDescriptorError(StateError):
    """Two descriptors share a name and do not agree."""


class StateTypeError(StateError):
    """A value does not have the declared type of its state."""


class NullKeyError(StateError):
    """A key selector returned None."""


class StateMigrationError(StateError):
    """Restored state cannot be read with the type that the program declares."""


class StoreVersionError(StateError):
    """A local store is missing, or not at the epoch that the coordinator accepted."""


class StoreDamagedError(StateError):
    """A local store does not hold the bytes that were written to it. The checkpoint has them."""


class EpochError(HoldfastError):
    """An epoch cannot be accepted; the job goes back to its last checkpoint."""


class IncompleteInputError(EpochError):
    """A subtask did not receive everything its upstream sent."""


class MixedExecutionError(EpochError):
    """Consumers of one subtask read two different executions of it."""


class CheckpointError(HoldfastError):
    """A checkpoint failed. ``reason`` is a member of CheckpointFailureReason."""

    def __init__(self, message: str, reason: object = None) -> None:
        super().__init__(message)
        self.reason = reason


class StorageError(HoldfastError):
    """A file could not be written, read or listed."""


class CorruptFileError(StorageError):
    """A stored file does not hold the bytes that were written. ``path`` names it."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self._message = message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self._message)


class UnfitFileError(StorageError):
    """The content of a file is not what the source expects. That of no other file depends on it."""


class SourceError(HoldfastError):
    """A source cannot be read on from where it was."""


class SourceUnreachableError(SourceError):
    """The system that a source reads from does not answer, and may do so later."""


class RestoreError(HoldfastError):
    """A snapshot does not fit the program that wants to start from it."""


class PickledStateError(RestoreError):
    """State of a snapshot is pickled, and nobody allowed to unpickle it."""


class TransactionError(HoldfastError):
    """A sink transaction is lost, or its commit failed."""


class TransactionRefusedError(TransactionError):
    """The other system answers, and refuses the transaction: for its rows, or for a right that is lacking."""


class PartialOutputError(TransactionError):
    """Output was published in part, and no checkpoint holds the rest: another attempt would repeat rows."""


class JobLockedError(HoldfastError):
    """Another driver owns the job directory."""


class LeadershipLostError(HoldfastError):
    """This driver does not lead its job any more, or can no longer know that it does: another one may go on with it."""


class JobEndedError(HoldfastError):
    """A job of this id has ended before, and another run of it would publish its results again."""


class JobExecutionError(HoldfastError):
    """The job ended in FAILED. The cause is chained.

    ``trace`` is what there is to see of where the program failed: its own frames, from a task of another process too.
    """

    trace: str = ""
