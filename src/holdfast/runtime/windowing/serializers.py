"""How windows stand in stored state and timers: as namespaces of a declared type."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ProgramError
from holdfast.runtime.windowing.windows import CountWindow, GlobalWindow, TimeWindow
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import TypeInformation, Types


class WindowSerializer(SaysWhatToUse):
    """Windows of a class of your own: a frozen dataclass, or whatever else has a declared type that may be a key."""

    def __init__(self, window_type: Any) -> None:
        self.type_info: TypeInformation = resolve(window_type)

    def namespace(self, window: Any) -> Any:
        """The window as a value of the type."""
        return window

    def restore(self, namespace: Any) -> Any:
        """The window of a value of the type."""
        return namespace


class TimeWindowSerializer(WindowSerializer):
    def __init__(self) -> None:
        super().__init__(Types.TUPLE([Types.LONG(), Types.LONG()]))

    def restore(self, namespace: Any) -> TimeWindow:
        return namespace if isinstance(namespace, TimeWindow) else TimeWindow(*namespace)


class CountWindowSerializer(WindowSerializer):
    def __init__(self) -> None:
        super().__init__(Types.TUPLE([Types.LONG()]))

    def restore(self, namespace: Any) -> CountWindow:
        return CountWindow(namespace[0])


class GlobalWindowSerializer(WindowSerializer):
    def __init__(self) -> None:
        super().__init__(Types.TUPLE([Types.LONG()]))

    def restore(self, namespace: Any) -> GlobalWindow:
        return GlobalWindow.get()


class StreamWindowSerializer(WindowSerializer):
    """PyFlink's contract of serializers: ``serialize(window, stream)`` and ``deserialize(stream)``."""

    def __init__(self, serializer: Any) -> None:
        super().__init__(Types.BYTES())
        self._serializer = serializer

    def namespace(self, window: Any) -> bytes:
        stream = BytesIO()
        self._serializer.serialize(window, stream)
        return stream.getvalue()

    def restore(self, namespace: Any) -> Any:
        return self._serializer.deserialize(BytesIO(namespace))


def window_serializer(given: Any) -> WindowSerializer:
    """A serializer of what an assigner's ``get_window_serializer`` gave."""
    if isinstance(given, WindowSerializer):
        return given
    if callable(getattr(given, "serialize", None)) and callable(getattr(given, "deserialize", None)):
        return StreamWindowSerializer(given)
    raise ProgramError(
        f"get_window_serializer() gave {given!r}. Give TimeWindowSerializer(), CountWindowSerializer(), or "
        "WindowSerializer(YourWindow) for a window class of your own, a frozen dataclass."
    )
