"""Keys that are dates and times. Time zones are normalised: equal instants are one key."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from typing import Any

from holdfast.errors import StateTypeError
from holdfast.types import xxhash64
from holdfast.types.date_times import date_of, day_micros_of, days_of, micros_of, time_of
from holdfast.types.instant import Instant
from holdfast.types.key_forms import KeyForm

_int = struct.Struct(">i")
_long = struct.Struct(">q")
_instant = struct.Struct(">qi")


class DateForm(KeyForm):
    """A datetime is not taken for its date: both are different keys in a dict."""

    trivial_identity = True

    def normalise(self, key: Any) -> dt.date:
        if isinstance(key, dt.date) and not isinstance(key, dt.datetime):
            return key
        self.reject(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return xxhash64.hash_int(days_of(self.normalise(key)), seed)

    def encode(self, key: Any) -> bytes:
        return _int.pack(days_of(self.normalise(key)))

    def decode(self, data: bytes) -> dt.date:
        return date_of(_int.unpack(data)[0])


class TimestampForm(KeyForm):
    """Timestamps of microseconds; ``from_micros`` decides whether keys carry UTC or no time zone."""

    def __init__(self, declared: str, from_micros: Callable[[int], dt.datetime]) -> None:
        super().__init__(declared)
        self._from_micros = from_micros

    def normalise(self, key: Any) -> dt.datetime:
        return self._from_micros(self._micros(key))

    def _micros(self, key: Any) -> int:
        if not isinstance(key, dt.datetime):
            self.reject(key)
        return micros_of(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return xxhash64.hash_long(self._micros(key), seed)

    def encode(self, key: Any) -> bytes:
        return _long.pack(self._micros(key))

    def decode(self, data: bytes) -> dt.datetime:
        return self._from_micros(_long.unpack(data)[0])


class TimeForm(KeyForm):
    """Times of day without a time zone. Spark counts and hashes them in nanoseconds."""

    trivial_identity = True

    def normalise(self, key: Any) -> dt.time:
        if isinstance(key, dt.time) and key.tzinfo is None:
            return key
        self.reject(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        return xxhash64.hash_long(day_micros_of(self.normalise(key)) * 1000, seed)

    def encode(self, key: Any) -> bytes:
        return _long.pack(day_micros_of(self.normalise(key)))

    def decode(self, data: bytes) -> dt.time:
        return time_of(_long.unpack(data)[0])


#: Of a Spark timestamp.
_MOST_MICROS = 1 << 63


class InstantForm(KeyForm):
    """Instants of nanoseconds, hashed by their microseconds as a Spark timestamp would be."""

    trivial_identity = True

    def normalise(self, key: Any) -> Instant:
        if isinstance(key, Instant):
            return key
        self.reject(key)

    def hash(self, key: Any, seed: int = xxhash64.SEED) -> int:
        micros = self.normalise(key).to_epoch_nano() // 1000
        if not -_MOST_MICROS <= micros < _MOST_MICROS:
            raise StateTypeError(
                f"The key {key!r} is beyond the times of a Spark timestamp, some 292,000 years around 1970: keys are "
                "hashed by its microseconds. Give the row another key."
            )
        return xxhash64.hash_long(micros, seed)

    def encode(self, key: Any) -> bytes:
        instant = self.normalise(key)
        return _instant.pack(instant.seconds, instant.nanos)

    def decode(self, data: bytes) -> Instant:
        return Instant(*_instant.unpack(data))
