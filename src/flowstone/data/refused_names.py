"""Names of `tf.data.experimental` and `tf.contrib.data` that are refused, and what to use instead of each."""

from __future__ import annotations

from flowstone.framework.refusals import refused_class, refused_function

__all__ = [
    "CheckpointInputPipelineHook", "LMDBDataset", "Optional", "TFRecordWriter", "get_next_as_optional",
    "make_saveable_from_iterator",
]  # fmt: skip

_END = "Iterator.get_next, whose step raises tf.errors.OutOfRangeError at the end"
_PLACE = "Dataset.skip with a step number that the checkpoint has"
_NAME = "tf.data.experimental."

CheckpointInputPipelineHook = refused_class(_NAME + "CheckpointInputPipelineHook", _PLACE)
LMDBDataset = refused_class("tf.contrib.data.LMDBDataset", "tf.data.TFRecordDataset")
Optional = refused_class(_NAME + "Optional", _END)
TFRecordWriter = refused_class(_NAME + "TFRecordWriter", "tf.python_io.TFRecordWriter with what steps give")
get_next_as_optional = refused_function(_NAME + "get_next_as_optional", _END)
make_saveable_from_iterator = refused_function(_NAME + "make_saveable_from_iterator", _PLACE)
