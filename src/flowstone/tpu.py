"""`flowstone.tpu`: the public names that TensorFlow 1.13 to 1.15 had for TPUs, on this machine's own devices."""

from flowstone.framework.late_names import late_names as _late_names

_NAMES = "CrossShardOptimizer batch_parallel bfloat16_scope core cross_replica_sum initialize_system outside_compilation"

__getattr__, __dir__ = _late_names(
    globals(),
    {"flowstone.contrib.tpu": f"{_NAMES} replicate rewrite shard shutdown_system"},
)
