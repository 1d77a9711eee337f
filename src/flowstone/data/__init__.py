"""`tf.data`: input pipelines, over the ops of `ops/datasets`.

A `Dataset` describes elements and how they become others; an `Iterator` hands them out to steps.
"""

from flowstone.data import experimental
from flowstone.data.dataset import Dataset
from flowstone.data.iterator import Iterator
from flowstone.data.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset

__all__ = [
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
]
