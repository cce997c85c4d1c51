"""Key groups: the unit in which keyed state is assigned to subtasks, and moved when parallelism changes.

A key belongs to one key group for the whole life of a job; a subtask owns a contiguous range of key groups. Only the
ranges change with the parallelism, so a rescaled job reads ranges of what it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.errors import ConfigurationError, ProgramError

#: The least maximum parallelism that is chosen for a job that does not set one.
LOWER_DEFAULT_MAX_PARALLELISM = 128
#: No operator has more key groups, and so no more subtasks, than this: key groups are stored in 15 bits.
UPPER_BOUND_MAX_PARALLELISM = 32768


def check_parallelism(parallelism: int) -> None:
    """Raise ConfigurationError unless ``parallelism`` is within Flink's bounds."""
    _check_bounds("parallelism", parallelism)


def check_max_parallelism(max_parallelism: int) -> None:
    """Raise ConfigurationError unless ``max_parallelism`` is within Flink's bounds."""
    _check_bounds("maximum parallelism", max_parallelism)


def check_layout(max_parallelism: int, parallelism: int) -> None:
    """Raise unless ``parallelism`` subtasks can share ``max_parallelism`` key groups, each with one at least."""
    check_parallelism(parallelism)
    check_max_parallelism(max_parallelism)
    if parallelism > max_parallelism:
        raise ProgramError(
            f"Parallelism {parallelism} is above the maximum parallelism {max_parallelism}: "
            f"{parallelism - max_parallelism} subtasks would own no key group. Lower the parallelism, or start without "
            f"state with a higher maximum parallelism (set_max_parallelism, pipeline.max-parallelism)."
        )


def default_max_parallelism(parallelism: int) -> int:
    """The maximum parallelism of an operator that sets none: 1.5 times its parallelism, up to a power of two."""
    check_parallelism(parallelism)
    wanted = parallelism + parallelism // 2
    power_of_two = 1 << (wanted - 1).bit_length()
    return min(max(power_of_two, LOWER_DEFAULT_MAX_PARALLELISM), UPPER_BOUND_MAX_PARALLELISM)


def key_group(hash64: int, max_parallelism: int) -> int:
    """The key group of a key with the signed 64-bit hash ``hash64``: Spark's ``pmod(hash, max_parallelism)``.

    Called per key: ``max_parallelism`` is checked where it is set, not here.
    """
    return hash64 % max_parallelism


def subtask_of(key_group: int, max_parallelism: int, parallelism: int) -> int:
    """The subtask that owns ``key_group``."""
    check_layout(max_parallelism, parallelism)
    if not 0 <= key_group < max_parallelism:
        raise ProgramError(
            f"Key group {key_group} does not exist: "
            f"those of maximum parallelism {max_parallelism} are 0 to {max_parallelism - 1}."
        )
    return key_group * parallelism // max_parallelism


@dataclass(frozen=True, slots=True)
class KeyGroupRange:
    """Key groups ``start`` to ``end``, both inclusive. Every range holds one key group at least."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end < UPPER_BOUND_MAX_PARALLELISM:
            raise ProgramError(
                f"[{self.start}, {self.end}] is no range of key groups: "
                f"expected 0 <= start <= end < {UPPER_BOUND_MAX_PARALLELISM}."
            )

    @classmethod
    def of(cls, subtask: int, max_parallelism: int, parallelism: int) -> KeyGroupRange:
        """The range that ``subtask`` owns. All ranges together partition the key groups, and agree with subtask_of."""
        check_layout(max_parallelism, parallelism)
        if not 0 <= subtask < parallelism:
            raise ProgramError(
                f"Subtask {subtask} does not exist: parallelism {parallelism} has 0 to {parallelism - 1}."
            )
        start = (subtask * max_parallelism + parallelism - 1) // parallelism
        end = ((subtask + 1) * max_parallelism - 1) // parallelism
        return cls(start, end)

    def __contains__(self, key_group: object) -> bool:
        return isinstance(key_group, int) and self.start <= key_group <= self.end

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, self.end + 1))

    def __len__(self) -> int:
        return self.end - self.start + 1

    def intersects(self, other: KeyGroupRange) -> bool:
        return self.start <= other.end and other.start <= self.end

    def intersection(self, other: KeyGroupRange) -> KeyGroupRange | None:
        """The key groups of both; None when there is none."""
        if not self.intersects(other):
            return None
        return KeyGroupRange(max(self.start, other.start), min(self.end, other.end))


def _check_bounds(what: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(f"The {what} must be an int, not {value!r}.")
    if not 1 <= value <= UPPER_BOUND_MAX_PARALLELISM:
        raise ConfigurationError(f"The {what} is {value}; it must be within 1 and {UPPER_BOUND_MAX_PARALLELISM}.")
