"""Which transactions the driver has delivered, for sinks that leave nothing outside of its process."""

from __future__ import annotations

from collections import OrderedDict

from holdfast.runtime.sink import TransactionName

#: A handle can come again only while a checkpoint that holds it may be restored: far fewer than this.
_REMEMBERED = 65_536


class CommittedNames:
    """The newest committed transactions. Lives in the driver for as long as what it guards."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._names: OrderedDict[TransactionName, None] = OrderedDict()

    def add(self, name: TransactionName) -> bool:
        """False when it was committed before."""
        if name in self._names:
            return False
        self._names[name] = None
        if len(self._names) > self._remembered:
            self._names.popitem(last=False)
        return True
