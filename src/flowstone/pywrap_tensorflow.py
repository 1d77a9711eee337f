"""`flowstone.pywrap_tensorflow`: the names of TensorFlow's C++ wrapper that programs use."""

from flowstone.framework.names.late_names import late_names as _late_names

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.compat.internals.pywrap_tensorflow": "EventsWriter IsGoogleCudaEnabled PyRecordReader_New"
        " PyRecordWriter_New self_check",
        "flowstone.training.checkpoints.checkpoint_reading": "NewCheckpointReader",
    },
)
