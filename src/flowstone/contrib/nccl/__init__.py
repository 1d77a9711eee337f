"""`tf.contrib.nccl`: sums and broadcasts over the devices of one process, of whatever kind they are."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.ops.collectives.nccl_ops": "all_max all_min all_prod all_sum broadcast reduce_sum",
    },
)
