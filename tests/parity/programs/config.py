"""``ExecutionConfig``, and parameters of a job that its functions see."""

from pyflink.common import Configuration, ExecutionConfig, Types
from pyflink.datastream import CheckpointingMode, ExternalizedCheckpointRetention, MapFunction, RuntimeContext

from tests.parity.case import facts, program, told


@facts(3)
def execution_config(env, __):
    config = env.get_config()
    return told(
        lambda: type(config).__name__,
        config.get_parallelism,
        config.get_max_parallelism,
        config.get_auto_watermark_interval,
        config.get_latency_tracking_interval,
        config.is_object_reuse_enabled,
        config.is_closure_cleaner_enabled,
        config.is_use_snapshot_compression,
        config.has_auto_generated_uids_enabled,
        config.get_task_cancellation_interval,
        config.get_task_cancellation_timeout,
        config.get_global_job_parameters,
    )


@facts(3)
def changed_execution_config(env, __):
    config = env.get_config()
    return told(
        lambda: isinstance(config.set_parallelism(3), ExecutionConfig) and env.get_parallelism(),
        lambda: config.set_max_parallelism(64).get_max_parallelism(),
        lambda: env.get_max_parallelism(),
        lambda: config.set_auto_watermark_interval(50).get_auto_watermark_interval(),
        lambda: config.set_latency_tracking_interval(7).get_latency_tracking_interval(),
        lambda: config.enable_object_reuse().is_object_reuse_enabled(),
        lambda: config.disable_object_reuse().is_object_reuse_enabled(),
        lambda: config.disable_closure_cleaner().is_closure_cleaner_enabled(),
        lambda: config.enable_closure_cleaner().is_closure_cleaner_enabled(),
        lambda: config.set_use_snapshot_compression(True).is_use_snapshot_compression(),
        lambda: config.disable_auto_generated_uids().has_auto_generated_uids_enabled(),
        lambda: config.enable_auto_generated_uids().has_auto_generated_uids_enabled(),
        lambda: config.set_task_cancellation_interval(11).get_task_cancellation_interval(),
        lambda: config.set_task_cancellation_timeout(12).get_task_cancellation_timeout(),
        lambda: config.set_global_job_parameters({"who": "me", "count": "3"}).get_global_job_parameters(),
        lambda: env.get_config() == config,
        lambda: env.get_config().get_auto_watermark_interval(),
    )


@facts(3)
def execution_config_of_a_stream(env, __):
    env.get_config().set_auto_watermark_interval(123)
    config = env.from_collection([1], Types.INT()).get_execution_config()
    return [str(config.get_auto_watermark_interval()), str(config.get_parallelism())]


class Parameters(MapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.who = runtime_context.get_job_parameter("who", "nobody")
        self.other = runtime_context.get_job_parameter("other", "nothing")

    def map(self, value):
        return f"{value} {self.who} {self.other}"


@program(3)
def job_parameters(env, out):
    env.get_config().set_global_job_parameters({"who": "me"})
    return env.from_collection([1, 2], Types.INT()).map(Parameters(), Types.STRING())


@program(3)
def parallelism_of_the_config(env, out):
    env.get_config().set_parallelism(env.get_parallelism())
    env.get_config().set_auto_watermark_interval(20).enable_object_reuse()
    return env.from_collection([1, 2], Types.INT()).map(lambda n: n + 1, Types.INT())


@facts(8)
def checkpoint_config(env, __):
    config = env.get_checkpoint_config()
    reads = [
        config.is_checkpointing_enabled,
        config.get_checkpoint_interval,
        config.get_checkpoint_timeout,
        config.get_min_pause_between_checkpoints,
        config.get_max_concurrent_checkpoints,
        config.get_tolerable_checkpoint_failure_number,
        config.is_unaligned_checkpoints_enabled,
        config.is_force_unaligned_checkpoints,
        lambda: str(config.get_externalized_checkpoint_retention()),
        config.is_externalized_checkpoints_enabled,
        lambda: config.get_alignment_timeout() == config.get_aligned_checkpoint_timeout(),
        env.get_checkpoint_interval,
    ]
    before = told(*reads)
    env.enable_checkpointing(300_000, CheckpointingMode.AT_LEAST_ONCE)
    config.set_checkpoint_timeout(60_000).set_min_pause_between_checkpoints(500)
    config.set_max_concurrent_checkpoints(2)
    config.set_tolerable_checkpoint_failure_number(4)
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    return before + told(*reads, lambda: str(env.get_checkpointing_mode()))


@facts(8)
def typed_configuration(_, __):
    config = Configuration()
    config.set_string("text", "a").set_integer("count", 3).set_boolean("yes", True).set_float("half", 0.5)
    config.set_bytearray("bytes", bytearray(b"ab"))
    other = Configuration()
    other.set_string("more", "b")
    target: dict = {"before": "c"}
    return told(
        lambda: config.get_string("text", "?"),
        lambda: config.get_integer("count", 0),
        lambda: config.get_boolean("yes", False),
        lambda: config.get_float("half", 0.0),
        lambda: config.get_bytearray("bytes", bytearray()),
        lambda: config.get_string("none", "default"),
        lambda: config.get_integer("none", 7),
        lambda: config.get_string("count", "?"),
        lambda: sorted(config.key_set()),
        lambda: config.contains_key("text"),
        lambda: config.contains_key("none"),
        lambda: config.add_all_to_dict(target) or sorted(target),
        lambda: config.remove_config("text"),
        lambda: config.remove_config("none"),
        lambda: sorted(config.add_all(other).key_set()),
        lambda: sorted(config.add_all(other, "a.").key_set()),
        lambda: other.to_dict(),
        lambda: other == Configuration.from_dict({"more": "b"}),
        lambda: Configuration.parse_list_value("[a, b]"),
        lambda: Configuration.parse_list_value("a;b"),
        lambda: Configuration.parse_list_value(""),
    )
