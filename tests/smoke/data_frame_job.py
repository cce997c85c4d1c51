"""The sum of the numbers of each key of a DataFrame, printed."""

from __future__ import annotations

from holdfast.common import Types
from holdfast.spark.session import obtain_session
from tests.integration.programs import environment

if __name__ == "__main__":
    frame = obtain_session({}).range(0, 1_000, 1, 3).where("id % 2 = 0")
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    pairs = environment().from_data_frame(frame).map(lambda row: (row.id % 7, row.id), pair)
    sums = pairs.key_by(lambda row: row[0], Types.LONG()).sum(1)
    with sums.execute_and_collect() as rows:
        last = dict(rows)
    print(*sorted(last.items()))
