"""`tf.estimator.inputs`: input functions over arrays and data frames in memory."""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.estimator.inputs.numpy_io": "numpy_input_fn",
        "flowstone.estimator.inputs.pandas_io": "pandas_input_fn",
    },
    "feeding_queue numpy_io pandas_io",
)
