"""Names of `tf.data.experimental` and `tf.contrib.data` that are refused, and what to use instead of each."""

from __future__ import annotations

from flowstone.framework.names.refusals import refused_class

__all__ = ["LMDBDataset", "TFRecordWriter"]

LMDBDataset = refused_class("tf.contrib.data.LMDBDataset", "tf.data.TFRecordDataset")
TFRecordWriter = refused_class(
    "tf.data.experimental.TFRecordWriter", "tf.python_io.TFRecordWriter with what steps give"
)
