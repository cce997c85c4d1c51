"""The examples that PyFlink's users know are programs for PyFlink but for the imports, and give the same rows here: as
streams and as batches, at several parallelisms, with checkpoints and a failure in the middle.
"""

from __future__ import annotations

import ast
import importlib
import runpy
import sys
from pathlib import Path

import pytest
import yaml

from holdfast.datastream.coverage import COVERAGE
from holdfast.runtime.epoch import EpochSpec
from tests.spark.in_process import InProcessSpark, settings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "pyflink"

#: What each program gives as a stream, line by line in any order, and as a batch where that differs.
STREAMED = {
}
