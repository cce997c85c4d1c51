"""Tags of side outputs, under PyFlink's module path."""

from holdfast.runtime.output_tag import OutputTag

__all__ = ["OutputTag"]
