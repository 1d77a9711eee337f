"""Packages of `tf.contrib` that are not here, and what to use in their place."""

from __future__ import annotations

from flowstone.contrib.module_paths import module_names

__all__ = ["NEAREST", "nearest"]

NEAREST: dict[str, str] = {
    "batching": "the batches of flowstone serve",
    "bigtable": "tf.data.TFRecordDataset",
    "cloud": "tf.gfile, which opens gs:// and s3:// paths",
    "ffmpeg": "tf.audio.decode_wav",
    "fused_conv": "tf.nn.conv2d and tf.nn.bias_add, which are joined in the plan",
    "hadoop": "tf.data.TFRecordDataset",
    "ignite": "tf.data.Dataset.from_generator",
    "kafka": "tf.data.Dataset.from_generator",
    "kfac": "tf.train.AdamOptimizer",
    "kinesis": "tf.data.Dataset.from_generator",
    "libsvm": "tf.data.TextLineDataset and tf.string_split",
    "memory_stats": "RunMetadata and tf.profiler",
    "meta_graph_transform": "flowstone freeze",
    "nearest_neighbor": "tf.nn.top_k of the distances",
    "optimizer_v2": "tf.train",
    "periodic_resample": "tf.depth_to_space",
    "proto": "tf.parse_example",
    "receptive_field": "arithmetic on kernel sizes and strides",
    "recurrent": "tf.nn.dynamic_rnn",
    "reduce_slice_ops": "tf.segment_sum",
    "remote_fused_graph": "the graph itself",
    "rpc": "tf.py_func",
    "tensorrt": "the graph itself: its plan is compiled for the processor that it runs on",
}


def nearest(package: str) -> str:
    """The message that `tf.contrib.PACKAGE` is not here, with the nearest thing that is."""
    if package not in module_names():
        return f"flowstone does not have the name tf.contrib.{package}, nor do TensorFlow 1.4 and 1.15"
    message = f"flowstone does not have the name tf.contrib.{package}"
    return f"{message}; use {NEAREST[package]}" if package in NEAREST else message
