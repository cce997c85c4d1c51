"""Whether what the job published is what its input says: computed directly, with pandas, from the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from holdfast.demo.events import READINGS_PER_RESULT
from holdfast.testing.chaos.oracle import Verdict, compare

Result = tuple[int, int, float]


def judge(input_directory: Path, output_directory: Path) -> Verdict:
    """Compare all published results with all events. Both directories must be complete."""
    events = _read(input_directory)
    by_sensor = events.groupby("sensor")["reading"]
    events["count"] = by_sensor.cumcount() + 1
    events["average"] = by_sensor.cumsum() / events["count"]
    results = events[events["count"] % READINGS_PER_RESULT == 0]
    seen = _read(output_directory)
    return compare(_results(results), _results(seen) if len(seen) else [], len(events))


def _read(directory: Path) -> Any:
    """The files that readers are meant to see, in the order of their names."""
    import pandas as pd

    files = sorted(path for path in directory.glob("*.parquet") if not path.name.startswith((".", "_")))
    frames = [pq.read_table(path).to_pandas() for path in files]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _results(frame: Any) -> list[Result]:
    columns = (frame[name].tolist() for name in ("sensor", "count", "average"))
    return list(zip(*columns, strict=True))
