"""``ExecutionConfig``, and parameters of a job that its functions see."""

from pyflink.common import Configuration, ExecutionConfig, Types
from pyflink.datastream import CheckpointingMode, ExternalizedCheckpointRetention, MapFunction, RuntimeContext

from tests.parity.case import facts, program


@facts(3)
def execution_config(env, __):
    config = env.get_config()
    found = [
        type(config).__name__,
        config.get_parallelism(),
        config.get_max_parallelism(),
        config.get_auto_watermark_interval(),
        config.get_latency_tracking_interval(),
        config.is_object_reuse_enabled(),
        config.is_closure_cleaner_enabled(),
        config.is_use_snapshot_compression(),
        config.has_auto_generated_uids_enabled(),
        config.has_generic_types_disabled(),
        config.is_force_kryo_enabled(),
        config.is_force_avro_enabled(),
        config.get_task_cancellation_interval(),
        config.get_task_cancellation_timeout(),
        config.get_global_job_parameters(),
        config.get_default_kryo_serializer_classes(),
        config.get_registered_kryo_types(),
        config.get_registered_pojo_types(),
    ]
    return [str(value) for value in found]


@facts(3)
def changed_execution_config(env, __):
    config = env.get_config()
    same = (
        config.set_parallelism(3)
        .set_max_parallelism(64)
        .set_auto_watermark_interval(50)
        .set_latency_tracking_interval(7)
        .enable_object_reuse()
        .disable_closure_cleaner()
        .set_use_snapshot_compression(True)
        .disable_auto_generated_uids()
        .disable_generic_types()
        .set_task_cancellation_interval(11)
        .set_task_cancellation_timeout(12)
        .set_global_job_parameters({"who": "me", "count": "3"})
    )
    return [
        str(isinstance(same, ExecutionConfig)),
        f"{env.get_parallelism()} {env.get_max_parallelism()} {config.get_parallelism()}",
        f"{config.get_max_parallelism()} {config.get_auto_watermark_interval()}",
        f"{config.get_latency_tracking_interval()} {config.is_object_reuse_enabled()}",
        f"{config.is_closure_cleaner_enabled()} {config.is_use_snapshot_compression()}",
        f"{config.has_auto_generated_uids_enabled()} {config.has_generic_types_disabled()}",
        f"{config.get_task_cancellation_interval()} {config.get_task_cancellation_timeout()}",
        str(sorted(config.get_global_job_parameters().items())),
        str(config.disable_object_reuse().is_object_reuse_enabled()),
        str(config.enable_auto_generated_uids().has_auto_generated_uids_enabled()),
        str(config.enable_generic_types().has_generic_types_disabled()),
        str(env.get_config() == config),
    ]


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
    before = [
        config.is_checkpointing_enabled(),
        config.get_checkpoint_interval(),
        config.get_checkpointing_consistency_mode(),
        config.get_checkpoint_timeout(),
        config.get_min_pause_between_checkpoints(),
        config.get_max_concurrent_checkpoints(),
        config.get_tolerable_checkpoint_failure_number(),
        config.is_unaligned_checkpoints_enabled(),
        config.get_externalized_checkpoint_retention(),
    ]
    env.enable_checkpointing(300_000, CheckpointingMode.AT_LEAST_ONCE)
    config.set_checkpoint_timeout(60_000).set_min_pause_between_checkpoints(500)
    config.set_max_concurrent_checkpoints(2)
    config.set_tolerable_checkpoint_failure_number(4)
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION)
    after = [
        config.is_checkpointing_enabled(),
        config.get_checkpoint_interval(),
        config.get_checkpointing_consistency_mode(),
        config.get_checkpoint_timeout(),
        config.get_min_pause_between_checkpoints(),
        config.get_max_concurrent_checkpoints(),
        config.get_tolerable_checkpoint_failure_number(),
        config.get_externalized_checkpoint_retention(),
        env.get_checkpoint_interval(),
        env.get_checkpointing_mode(),
    ]
    return [str(value) for value in before + after]


@facts(8)
def typed_configuration(_, __):
    config = Configuration()
    config.set_string("text", "a").set_integer("count", 3).set_boolean("yes", True).set_float("half", 0.5)
    config.set_bytearray("bytes", bytearray(b"ab"))
    other = Configuration()
    other.set_string("more", "b")
    target: dict = {"before": "c"}
    config.add_all_to_dict(target)
    values = [
        config.get_string("text", "?"),
        config.get_integer("count", 0),
        config.get_boolean("yes", False),
        config.get_float("half", 0.0),
        config.get_bytearray("bytes", bytearray()),
        config.get_string("none", "default"),
        config.get_integer("none", 7),
        config.get_string("count", "?"),
        sorted(config.key_set()),
        config.contains_key("text"),
        config.contains_key("none"),
        sorted(key for key in target),
        config.remove_config("text"),
        config.remove_config("none"),
        sorted(config.add_all(other).key_set()),
        sorted(config.add_all(other, "a.").key_set()),
        other.to_dict(),
        other == Configuration.from_dict({"more": "b"}),
        Configuration.parse_list_value("[a, b]"),
        Configuration.parse_list_value("a;b"),
        Configuration.parse_list_value(""),
    ]
    return [repr(value) for value in values]
