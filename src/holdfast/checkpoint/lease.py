"""The lease of a driver on its job: a number that no other driver has, renewed for as long as the driver lives.

The number is that of the attempt, and the lease is the content of its file. A driver takes a job by creating the file
of the next number, which of two only one can, and renews its lease by writing that file again with a greater count.
Whoever wants the job watches the count by his own clock: clocks of two hosts are never compared.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from holdfast.checkpoint.attempt_files import AttemptFiles
from holdfast.checkpoint.driver_record import DriverRecord
from holdfast.errors import JobLockedError, LeadershipLostError, StorageError
from holdfast.storage.filesystem import Storage, is_missing
from holdfast.types.settings import LeaseSettings

_log = logging.getLogger(__name__)
#: How often a driver that waits looks at the lease of another one, at least so often in a timeout.
_LOOK_SECONDS = 1.0
_LOOKS = 10
#: However long they take, from so many looks at least a lease is taken to have run out.
_FEWEST_LOOKS = 5
#: Longer than a driver takes from finding a name free to having written it, where creation is not exclusive.
_SETTLE_SECONDS = 1.0
#: A renewal that hangs is not waited for when the lease is let go of.
_END_SECONDS = 5.0

#: Elsewhere than on Linux the monotonic clock is the one that counts it.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

#: Called with the seconds to wait. It may raise, to wait no longer.
Pause = Callable[[float], None]


class LeaseRecord(msgspec.Struct, frozen=True):
    """What a driver says of itself under the number of its attempt."""

    driver: DriverRecord
    timeout_ms: int
    beat: int = 0
    #: The driver has ended in order, and nobody has to wait for it.
    released: bool = False
    #: The checkpoint that the attempt began from, 0 for none of the job's own; None when that is not decided yet.
    restored: int | None = None
    version: int = 1

    @staticmethod
    def decode(data: bytes) -> LeaseRecord | None:
        """None for anything else, such as what a driver left that has no lease."""
        try:
            return msgspec.json.decode(data, type=LeaseRecord)
        except (msgspec.MsgspecError, ValueError):
            return None

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


class DriverLease:
    """The lease of this driver: held from ``acquire`` to ``release``, renewed by a thread in between. Any thread may
    call.
    """

    def __init__(self, storage: Storage, job_id: str, settings: LeaseSettings) -> None:
        self._files = AttemptFiles(storage)
        self._where = f"job {job_id} in {storage.uri}"
        self._exclusive = storage.exclusive_create
        self._settings = settings
        self._changing = threading.Lock()
        self._number = 0
        #: No attempt has begun under the number yet.
        self._unused = False
        self._record: LeaseRecord | None = None
        self._renewed_at = 0.0
        self._loss: str | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def held(self) -> bool:
        return self._record is not None

    def acquire(self, own: DriverRecord, pause: Pause | None, gone: Callable[[DriverRecord], bool]) -> None:
        """Take the job once nobody holds it. ``gone`` says whether a driver is known to be gone. One of which that is
        not known is watched for its timeout, through ``pause``.

        JobLockedError when another driver renews its lease, or takes the job first, or would have to be waited for
        without a ``pause``.
        """
        number = self._files.last()
        self._await_end(number, pause, gone)
        record = LeaseRecord(own, self._settings.timeout_ms)
        if not self._create(number + 1, record):
            raise self._locked(self._read(number + 1))
        self._number, self._record, self._unused, self._loss = number + 1, record, True, None
        if not self._exclusive:
            time.sleep(_SETTLE_SECONDS)
            self._check_own()
        self._renewed_at = _now()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, args=(self._ended,), name="holdfast-lease", daemon=True)
        self._thread.start()

    def next_attempt(self) -> int:
        """The number of this driver's next attempt; LeadershipLostError when another driver has it."""
        self.check()
        with self._changing:
            record = self._held()
            if not self._unused:
                record = msgspec.structs.replace(record, restored=None)
                if not self._create(self._number + 1, record):
                    raise self._lost(f"attempt {self._number + 1} is that of another driver")
                self._number, self._record = self._number + 1, record
                if not self._exclusive:
                    time.sleep(_SETTLE_SECONDS)
                    self._refuse_rival()
            self._unused = False
            return self._number

    def begin_from(self, checkpoint_id: int) -> None:
        """Record, durably, what the attempt begins from: what an earlier one completes behind that does not count."""
        self._renew_once(restored=checkpoint_id)

    @property
    def in_doubt(self) -> bool:
        """Whether others may take this driver for gone; LeadershipLostError when one did."""
        self._held()
        return _now() - self._renewed_at > self._settings.timeout_ms / 1000

    def check(self) -> None:
        """LeadershipLostError when another driver has the job. After a pause the lease is renewed first."""
        # Not during a renewal: where files are replaced in two steps, that of this driver is missing for a moment.
        with self._changing:
            self._held()
            late = _now() - self._renewed_at > 2 * self._settings.interval_ms / 1000
            if late or not self._sees_own():
                self._renew_held()

    def release(self) -> None:
        """End it in order. Nothing happens when it is not held; what another driver took is left alone."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        record, lost = self._record, self._loss is not None
        self._record = self._thread = None
        if record is None or lost:
            return
        try:
            newest = self._files.last()
            found = self._read(newest) if newest >= self._number else None
            if found is None or found.driver.token != record.driver.token:
                return
            if self._unused:
                self._files.delete(newest)
            else:
                self._files.write(newest, msgspec.structs.replace(found, released=True).encode())
        except StorageError as error:
            _log.warning("The lease of this driver on %s is not ended, and others wait for it: %s", self._where, error)

    # -- the lease of another driver

    def _await_end(self, number: int, pause: Pause | None, gone: Callable[[DriverRecord], bool]) -> None:
        """Return when the driver of that attempt has ended or does not renew its lease any more."""
        found = self._read(number)
        if found is None or found.released:
            return
        if gone(found.driver):
            _log.warning("The driver of %s is gone (%s): this one goes on", self._where, found.driver.describe())
            return
        if pause is None:
            raise self._locked(found)
        self._watch(number, found, pause)

    def _watch(self, number: int, found: LeaseRecord, pause: Pause) -> None:
        """Return when its time is over, or it is released; JobLockedError when it is renewed.

        Of the time between two looks no more than a share counts. A storage that answers slowly does not make the
        watch much longer; but a process that was frozen has seen nothing meanwhile, and the other driver, on the same
        host perhaps, may have been frozen too: it has to have time for a beat behind that.
        """
        timeout = max(found.timeout_ms, self._settings.timeout_ms) / 1000
        look = min(_LOOK_SECONDS, timeout / _LOOKS)
        _log.warning(
            "%s is held by a driver of which nothing is known here (%s): this one goes on if that does not renew its "
            "lease for %g s",
            self._where,
            found.driver.describe(),
            timeout,
        )
        watched, before = 0.0, _now()
        while watched < timeout:
            pause(look)
            # Ahead of the look: what it shows may be as old.
            begun = _now()
            watched, before = watched + min(begun - before, timeout / _FEWEST_LOOKS), begun
            if self._files.last() != number:
                raise self._locked(self._read(self._files.last()))
            now = self._read(number)
            if now is not None and now.released:
                return
            if now != found:
                raise self._locked(now)
        _log.warning("The lease of %s has run out for %s: this one goes on", found.driver.describe(), self._where)

    def _read(self, number: int) -> LeaseRecord | None:
        """None for an attempt that has no lease, or is no longer there."""
        if not number:
            return None
        try:
            return LeaseRecord.decode(self._files.read(number))
        except StorageError as error:
            if not is_missing(error):
                raise
            return None

    def _locked(self, by: LeaseRecord | None) -> JobLockedError:
        told = by.driver.describe() if by is not None else "its process is unknown"
        return JobLockedError(
            f"another driver runs {self._where} ({told}). Stop it, wait for its end, or start this job under another "
            "job id."
        )

    # -- the lease of this driver

    def _renew(self, ended: threading.Event) -> None:
        """In a thread of its own, until the end or a loss."""
        while not ended.wait(self._settings.interval_ms / 1000):
            try:
                self._renew_once()
            except LeadershipLostError as lost:
                if not ended.is_set():
                    _log.warning("%s", lost)
                return
            except Exception as error:
                # Whatever it is: without this thread the job would go on and take no checkpoint ever again.
                _log.warning(
                    "The lease of this driver on %s could not be renewed: %s",
                    self._where,
                    error,
                    exc_info=not isinstance(error, StorageError),
                )

    def _renew_once(self, **changes: int) -> None:
        with self._changing:
            self._renew_held(**changes)

    def _renew_held(self, **changes: int) -> None:
        begun, held, number = _now(), self._held(), self._number
        if not self._exclusive:
            self._refuse_rival()
        record = msgspec.structs.replace(held, beat=held.beat + 1, **changes)
        self._files.write(number, record.encode())
        # Behind the write: of a shared mount this host may know an old listing, until it changes the folder itself.
        if not self._sees_own():
            raise StorageError(
                f"attempt {number} of {self._where} was written and is not among the files there; expected a listing "
                "that shows what was written before. Check that nobody removes files from that directory."
            )
        if self._number != number:
            # What changed is of the attempt before; of the one that counts now others have seen no beat yet.
            self._renew_held()
        elif self._record is not None:
            self._record, self._renewed_at = record, begun

    def _create(self, number: int, record: LeaseRecord) -> bool:
        """Whether the attempt is that of this driver. The answer may be lost of a creation that was carried out."""
        try:
            if self._files.create(number, record.encode()):
                return True
        except StorageError:
            with suppress(StorageError):
                if self._is_of(number, record.driver):
                    return True
            raise
        return self._is_of(number, record.driver)

    def _sees_own(self) -> bool:
        """False when the attempt of this driver is not listed, which is no sign of another driver; LeadershipLostError
        when an attempt of another one is there.
        """
        newest = self._files.last()
        if newest > self._number:
            self._adopt(newest)
        elif newest == self._number and not self._exclusive:
            self._refuse_rival()
        return newest >= self._number

    def _adopt(self, newest: int) -> None:
        """A greater number may be that of this driver, when it was not told that it had created it."""
        found = self._read(newest)
        if found is None or found.driver.token != self._held().driver.token:
            raise self._lost(f"it is in attempt {newest}, and this driver began attempt {self._number}")
        # Not unused: what is unused is deleted at the end, and the attempt before would count again, not released.
        self._number, self._record, self._unused = newest, found, False

    def _refuse_rival(self) -> None:
        """Where creation is not exclusive, another driver may have the same number: who finds the other one's record
        goes. One that is missing says nothing.
        """
        found = self._read(self._number)
        if found is not None and found.driver.token != self._held().driver.token:
            raise self._lost(f"attempt {self._number} is that of another driver ({found.driver.describe()})")

    def _is_of(self, number: int, driver: DriverRecord) -> bool:
        found = self._read(number)
        return found is not None and found.driver.token == driver.token

    def _check_own(self) -> None:
        """Where creation is not exclusive, another driver may have written the same name behind this one."""
        found = self._read(self._number)
        if found is None or found.driver != self._held().driver:
            self._record = None
            raise self._locked(found)

    def _held(self) -> LeaseRecord:
        if self._loss is not None:
            raise LeadershipLostError(self._loss)
        if self._record is None:
            raise LeadershipLostError(f"this driver does not hold {self._where}")
        return self._record

    def _lost(self, how: str) -> LeadershipLostError:
        self._loss = f"{self._where} was taken from this driver: {how}"
        return LeadershipLostError(self._loss)


class OvertakenCheckpoints:
    """Tells checkpoints that count from those that a driver completed when another one had its job.

    Between its last look at its lease and the write of a checkpoint a driver can hang for any time. Meanwhile another
    attempt may have begun from an older checkpoint, and undone the transactions that the late one holds.
    """

    def __init__(self, storage: Storage) -> None:
        self._files = AttemptFiles(storage)
        self._attempts = sorted(self._files.numbers())
        self._restored: dict[int, int | None] = {}

    def overtaken_by(self, attempt: int, checkpoint_id: int) -> int | None:
        """The attempt that began behind ``attempt``, and from an older checkpoint than this one of it; None when there
        is none.
        """
        for number in self._attempts:
            restored = self._restored_by(number) if number > attempt else None
            if restored is not None and restored < checkpoint_id:
                return number
        return None

    def begun_behind(self, attempt: int) -> frozenset[int]:
        """The checkpoints of the job that attempts behind this one began from."""
        found = (self._restored_by(number) for number in self._attempts if number > attempt)
        return frozenset(number for number in found if number)

    def _restored_by(self, number: int) -> int | None:
        if number not in self._restored:
            record = LeaseRecord.decode(self._files.read(number))
            self._restored[number] = record.restored if record is not None else None
        return self._restored[number]


def _now() -> float:
    """A clock that counts the time in which the host was suspended, too."""
    return time.clock_gettime(_CLOCK)
