"""What the program has sent to its tasks, unpickled there."""

from __future__ import annotations

import socket
from typing import Any

import cloudpickle

from holdfast.errors import HoldfastError, UnfitExecutorError


def load_program(packed: bytes, what: str) -> Any:
    """``what`` names it in the error: no restart brings a module, or makes two versions of one agree.
    """
    try:
        return cloudpickle.loads(packed)
    except HoldfastError:
        raise
    except ModuleNotFoundError as error:
        raise UnfitExecutorError(
            f"{what} cannot be deserialised on {socket.gethostname()}: it needs the module '{error.name}', which is "
            "not there. Give it to env.add_python_file(path), to the option python.files or to spark-submit "
            "--py-files, or install it in the Python of the executors."
        ) from error
    except Exception as error:
        raise UnfitExecutorError(
            f"{what} cannot be deserialised on {socket.gethostname()}: {type(error).__name__}: {error}. The Python and "
            "the packages of driver and executors must be of the same versions, and an object that travels must be one "
            "that can be made again there (look at its __setstate__ and __reduce__)."
        ) from error
