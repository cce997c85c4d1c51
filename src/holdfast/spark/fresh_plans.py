"""Epochs by Spark's public API alone: each is a new DataFrame, which is planned and collected once."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from holdfast.spark.level_frames import PLAN_SETTINGS, LevelFrames
from holdfast.spark.plan_text import explained
from holdfast.spark.session_settings import changed_settings
from holdfast.spark.slices import DataFrameSlice, FrameRows


class FreshPlans:
    """A DataFrame that is collected again skips its map stages and gives the rows of before: none is used twice."""

    def __init__(self, session: SparkSession, frames: LevelFrames) -> None:
        self._session = session
        self._frames = frames
        #: The numbers of slices for which Spark's plan was looked at.
        self._checked: set[int] = set()

    def run(self, slices: Sequence[DataFrameSlice]) -> list[bytes]:
        """All messages of the epoch's tasks."""
        with changed_settings(self._session, PLAN_SETTINGS):
            messages = self._frames.messages([self._frames.reading(each, _frame_of(each)) for each in slices])
            if len(slices) not in self._checked:
                self._frames.check(explained(messages), len(slices))
                self._checked.add(len(slices))
            return [bytes(row[0]) for row in messages.collect()]


def _frame_of(part: DataFrameSlice) -> DataFrame:
    assert isinstance(part.rows, FrameRows)
    return part.rows.frame
