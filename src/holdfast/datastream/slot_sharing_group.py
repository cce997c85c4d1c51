"""Slot sharing groups and sizes of memory. Spark places tasks by itself, so a group is kept and asks for nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.common.option_types import format_memory
from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ProgramError

__all__ = ["MemorySize", "SlotSharingGroup"]

_MEBI = 1 << 20


@dataclass(frozen=True, order=True)
class MemorySize(SaysWhatToUse):
    """A number of bytes. The getters round down to whole units."""

    bytes_size: int

    def __post_init__(self) -> None:
        if self.bytes_size < 0:
            raise ProgramError(f"A size of memory is a number of bytes from 0 on; got {self.bytes_size}.")

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        return MemorySize(mebi_bytes * _MEBI)

    def get_bytes(self) -> int:
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        return self.bytes_size >> 10

    def get_mebi_bytes(self) -> int:
        return self.bytes_size >> 20

    def get_gibi_bytes(self) -> int:
        return self.bytes_size >> 30

    def get_tebi_bytes(self) -> int:
        return self.bytes_size >> 40

    def __str__(self) -> str:
        return format_memory(self.bytes_size)


@dataclass(frozen=True)
class SlotSharingGroup(SaysWhatToUse):
    """The name of a group, and what its slots were meant to have."""

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: dict[str, float] = field(default_factory=dict, hash=False)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        return SlotSharingGroup.Builder(SlotSharingGroup(name))

    def get_name(self) -> str:
        return self.name

    def get_managed_memory(self) -> MemorySize | None:
        return self.managed_memory

    def get_task_heap_memory(self) -> MemorySize | None:
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        return self.task_off_heap_memory

    def get_cpu_cores(self) -> float | None:
        return self.cpu_cores

    def get_external_resources(self) -> dict[str, float]:
        return dict(self.external_resources)

    class Builder:
        """Collects what a group has."""

        def __init__(self, group: SlotSharingGroup) -> None:
            self._group = group

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            return self._with(cpu_cores=float(cpu_cores))

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            return self._with(task_heap_memory=task_heap_memory)

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            return self._with(task_off_heap_memory=task_off_heap_memory)

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            return self._with(managed_memory=managed_memory)

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            return self._with(external_resources={**self._group.external_resources, name: float(value)})

        def build(self) -> SlotSharingGroup:
            """As in Flink, ProgramError where resources are asked for without processors and memory of the heap."""
            group = self._group
            if group == SlotSharingGroup(group.name):
                return group
            if not group.cpu_cores or group.task_heap_memory is None:
                raise ProgramError(
                    f"The slot sharing group {group.name!r} asks for resources: then it needs both "
                    "set_cpu_cores(...) and set_task_heap_memory(...)."
                )
            off_heap, managed = group.task_off_heap_memory, group.managed_memory
            return replace(
                group, task_off_heap_memory=off_heap or MemorySize(0), managed_memory=managed or MemorySize(0)
            )

        def _with(self, **parts: Any) -> SlotSharingGroup.Builder:
            self._group = replace(self._group, **parts)
            return self
