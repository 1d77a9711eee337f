"""`tf.estimator.experimental`: early stopping, functions of logits, further estimators."""

from __future__ import annotations

from flowstone.framework.late_names import late_names

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.estimator.export.export": "build_raw_supervised_input_receiver_fn",
        "flowstone.estimator.model_fn": "call_logit_fn",
    },
)
