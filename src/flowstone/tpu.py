"""`flowstone.tpu`: TensorFlow 1.13 to 1.15's public names for TPUs, on this machine's own devices."""

from flowstone.framework.names.late_names import late_names as _late_names

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.contrib.tpu": "CrossShardOptimizer batch_parallel bfloat16_scope core cross_replica_sum"
        " initialize_system outside_compilation replicate rewrite shard shutdown_system",
    },
)
