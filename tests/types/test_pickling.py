"""Values of pickled types reach processes that cannot import their class."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from holdfast.types import pickling

PROGRAM = """
import sys
from holdfast.types import pickling

class Point:
    def __init__(self, x):
        self.x = x

sys.stdout.buffer.write(pickling.dumps([Point(3), lambda: 4]))
"""


def test_values_and_functions_of_a_main_program_load_elsewhere():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    point, function = pickling.loads(ran.stdout)
    assert (point.x, function()) == (3, 4)


def test_importable_values_are_pickled_by_reference():
    value = {"a": (1, None)}
    assert pickling.dumps(value) == pickle.dumps(value, protocol=5)
    assert pickling.loads(pickling.dumps(value)) == value


def test_what_cannot_be_pickled_at_all_raises():
    with pytest.raises(TypeError, match="generator"):
        pickling.dumps(number for number in range(3))
