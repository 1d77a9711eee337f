"""Names of `tf.contrib.tpu`'s modules that only a TPU has a meaning for."""

from __future__ import annotations

from flowstone.framework.names.refusals import refused_class, refused_function

__all__ = [
    "DeviceAssignment",
    "TPUPartitionedCall",
    "Topology",
    "all_to_all",
    "collective_permute",
    "device_assignment",
]

_HERE = "the program as it is, on CPUs and GPUs"
DeviceAssignment = refused_class("tf.contrib.tpu.DeviceAssignment", _HERE)
TPUPartitionedCall = refused_function("tf.contrib.tpu.functional.TPUPartitionedCall", "tf.function")
Topology = refused_class("tf.contrib.tpu.Topology", _HERE)
all_to_all = refused_function("tf.contrib.tpu.all_to_all", _HERE)
collective_permute = refused_function("tf.contrib.tpu.collective_permute", _HERE)
device_assignment = refused_function("tf.contrib.tpu.device_assignment", _HERE)
