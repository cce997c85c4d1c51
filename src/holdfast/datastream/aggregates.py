"""Known aggregates, for ``aggregate`` of keyed and windowed streams. Holdfast's own: PyFlink has them in its Table API.
"""

from holdfast.runtime.aggregates import Average, Count, Max, Min, Sum

__all__ = ["Average", "Count", "Max", "Min", "Sum"]
