"""Dates and times as the integers that Spark keeps: days, and microseconds since 1970 (in UTC) or since midnight."""

from __future__ import annotations

import datetime as dt

_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)


def days_of(date: dt.date) -> int:
    return date.toordinal() - _EPOCH_DAY


def date_of(days: int) -> dt.date:
    return dt.date.fromordinal(days + _EPOCH_DAY)


def micros_of(timestamp: dt.datetime) -> int:
    """A timestamp without a time zone is taken as UTC."""
    return (timestamp - (_EPOCH if timestamp.tzinfo is None else _EPOCH_UTC)) // _MICROSECOND


def timestamp_of(micros: int) -> dt.datetime:
    """A moment without a time zone."""
    return _EPOCH + dt.timedelta(microseconds=micros)


def utc_timestamp_of(micros: int) -> dt.datetime:
    return _EPOCH_UTC + dt.timedelta(microseconds=micros)


def day_micros_of(time: dt.time) -> int:
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond


def time_of(day_micros: int) -> dt.time:
    seconds, micros = divmod(day_micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    return dt.time(minutes // 60, minutes % 60, second, micros)
