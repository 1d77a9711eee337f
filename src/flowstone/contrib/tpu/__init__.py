"""`tf.contrib.tpu`: programs for TPUs, as far as they mean one machine: models run on its own devices."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names
from flowstone.framework.names.refusals import refused_function

_HERE = "the program as it is, on CPUs and GPUs"
rewrite = refused_function("tf.contrib.tpu.rewrite", _HERE)
batch_parallel = refused_function("tf.contrib.tpu.batch_parallel", _HERE)
shard = refused_function("tf.contrib.tpu.shard", _HERE)
replicate = refused_function("tf.contrib.tpu.replicate", _HERE)
keras_to_tpu_model = refused_function("tf.contrib.tpu.keras_to_tpu_model", _HERE)

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone": "initialize_system=no_op shutdown_system=no_op",
        "flowstone.contrib.tpu.bfloat16": "bfloat16_scope",
        "flowstone.contrib.tpu.cross_shard": "CrossShardOptimizer core cross_replica_sum outside_compilation",
        "flowstone.contrib.tpu.refused_names": "Topology",
        "flowstone.estimator.tpu": "InputPipelineConfig RunConfig TPUConfig TPUEstimator TPUEstimatorSpec",
    },
)
