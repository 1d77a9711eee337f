"""`tf.contrib.learn.utils`: what an Estimator is exported with."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.learn.utils.export": "export_estimator",
        "flowstone.contrib.learn.utils.input_fn_utils": "InputFnOps build_default_serving_input_fn"
        " build_parsing_serving_input_fn",
        "flowstone.contrib.learn.utils.saved_model_export_utils": "make_export_strategy",
    },
    "export gc input_fn_utils saved_model_export_utils",
)
