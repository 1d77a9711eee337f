"""`tf.contrib.autograph`, where AutoGraph was in TensorFlow 1.8 to 1.13."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.conversion.converted_functions": "do_not_convert",
        "flowstone.conversion.entities": "Feature set_loop_options",
        "flowstone.contrib.autograph.older_names": "AutoGraphError RunMode convert converted_call"
        " set_element_type stack tensor_list to_code to_graph",
    },
)
