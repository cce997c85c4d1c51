"""How the server names itself."""

from __future__ import annotations

from holdfast import __version__

VERSION = __version__
#: The version of Flink whose REST interface this is, and who speaks it.
FLINK_VERSION = f"2.0-holdfast-{__version__}"
REVISION = "holdfast"
#: The header of every answer that names the driver.
DRIVER_HEADER = "holdfast-driver"
