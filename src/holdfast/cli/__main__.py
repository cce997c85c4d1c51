"""``holdfast`` and ``python -m holdfast.cli``."""

from __future__ import annotations

import sys

from holdfast.cli.errors import told
from holdfast.errors import HoldfastError, MissingExtraError

#: What argument parsing ends with; Flink has one code for all errors.
_USAGE_ERROR = 2


def main() -> None:
    try:
        try:
            from holdfast.cli.app import app
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in ("typer", "rich"):
                raise
            raise MissingExtraError(package, "cli", "The command line") from error
        app(prog_name="holdfast")
    except HoldfastError as error:
        print(told(error), file=sys.stderr)
        sys.exit(1)
    except SystemExit as end:
        sys.exit(1 if end.code == _USAGE_ERROR else end.code)


if __name__ == "__main__":
    main()
