"""Numbers of PyFlink."""

from typing import Final

#: The highest and the lowest LONG.
MAX_LONG_VALUE: Final = 2**63 - 1
MIN_LONG_VALUE: Final = -(2**63)
#: The name of what a function gives without a tag.
DEFAULT_OUTPUT_TAG: Final = ""
