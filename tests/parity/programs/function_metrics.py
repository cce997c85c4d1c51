"""Metrics of functions, as the functions see them."""

from pyflink.common import Types
from pyflink.datastream import MapFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from tests.parity.case import program


class Counting(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        group = runtime_context.get_metrics_group()
        self.rows = group.counter("rows")
        self.nested = group.add_group("mine").counter("nested")
        self.scoped = group.add_group("scope", "value").counter("scoped")
        self.meter = group.meter("speed")
        self.sizes = group.add_group("mine").distribution("sizes")
        self.last = 0
        group.gauge("last", lambda: self.last)

    def map(self, value):
        self.rows.inc()
        self.nested.inc(value)
        self.scoped.inc(5)
        self.scoped.dec()
        self.scoped.dec(2)
        self.meter.mark_event()
        self.meter.mark_event(value)
        self.sizes.update(value)
        self.last = value
        return f"{value} {self.rows.get_count()} {self.nested.get_count()} {self.scoped.get_count()}"


@program(5, parallelisms=(1,))
def counters(env, out):
    env.configure(metrics_on())
    return env.from_collection([3, 4, 5], Types.INT()).map(Counting(), Types.STRING())


def metrics_on():
    from pyflink.common import Configuration

    return Configuration.from_dict({"python.metric.enabled": "true"})


class CountingOfKeys(MapFunction):
    """A metric is of the subtask, state of the key."""

    def open(self, runtime_context: RuntimeContext):
        self.rows = runtime_context.get_metrics_group().counter("rows")
        self.of_key = runtime_context.get_state(ValueStateDescriptor("rows", Types.INT()))

    def map(self, value):
        self.rows.inc()
        self.of_key.update((self.of_key.value() or 0) + 1)
        return value[0], self.of_key.value(), self.rows.get_count() >= self.of_key.value()


@program(5)
def counters_of_keyed_functions(env, out):
    pairs = env.from_collection([("a", 1), ("b", 2), ("a", 3)], Types.TUPLE([Types.STRING(), Types.INT()]))
    return pairs.key_by(lambda pair: pair[0], key_type=Types.STRING()).map(CountingOfKeys())
