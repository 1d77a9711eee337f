"""`tf.contrib.quantize`: graphs rewritten in place for training that knows of 8-bit inference."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.quantize.quantize_graph": "create_eval_graph create_training_graph"
        " experimental_create_eval_graph experimental_create_training_graph",
    },
)
