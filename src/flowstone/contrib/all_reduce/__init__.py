"""`tf.contrib.all_reduce`: graphs that reduce tensors of several devices and give each device the result."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.all_reduce.all_reduce": "build_nccl_all_reduce build_nccl_then_recursive_hd"
        " build_nccl_then_ring build_nccl_then_shuffle build_recursive_hd_all_reduce build_ring_all_reduce"
        " build_shuffle_all_reduce build_shuffle_then_ring build_shuffle_then_shuffle",
    },
)
