"""`tf.data`: input pipelines, over the ops of `ops/datasets`.

A `Dataset` describes elements and how they become others; an `Iterator` hands them out to steps.
"""

from flowstone.data import experimental
from flowstone.data.dataset import Dataset
from flowstone.data.dataset_functions import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    get_output_classes,
    get_output_shapes,
    get_output_types,
    make_initializable_iterator,
    make_one_shot_iterator,
)
from flowstone.data.iterator import Iterator
from flowstone.data.options import Options, ThreadingOptions
from flowstone.data.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from flowstone.data.specs import DatasetSpec
from flowstone.framework.names.refused_names import NumpyIterator

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "NumpyIterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]
