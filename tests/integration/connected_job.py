"""Two connected keyed streams with a side output, whose workers are killed."""

from __future__ import annotations

from pathlib import Path

from holdfast.common import Configuration, Types, WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from tests.integration.programs import PAIR, Scripted
from tests.job.connected_functions import ORDERS, RATES, UNPRICED, Price

#: How much of the script it reads.
EPOCHS = 5


def run(directory: Path) -> int:
    """How often the job was restarted."""
    settings = {
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.interval": "10 ms",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "5",
        "restart-strategy.fixed-delay.delay": "10 ms",
        "parallelism.default": "2",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    never = WatermarkStrategy.no_watermarks()
    orders = env.from_source(Scripted(ORDERS[:EPOCHS]), never, "orders", PAIR)
    rates = env.from_source(Scripted(RATES[:EPOCHS]), never, "rates", PAIR)
    keyed = orders.connect(rates).key_by(lambda row: row[0], lambda row: row[0], Types.LONG())
    priced = keyed.process(Price(), PAIR)
    priced.sink_to(FileSink.json(str(directory / "priced")))
    priced.get_side_output(UNPRICED).rebalance().sink_to(FileSink.json(str(directory / "unpriced")))
    return env.execute("connected").get_history().restarts
