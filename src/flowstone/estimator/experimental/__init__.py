"""`tf.estimator.experimental`: early stopping, functions of logits, further estimators."""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.estimator.canned.dnn": "dnn_logit_fn_builder",
        "flowstone.estimator.canned.kmeans": "KMeans=KMeansClustering",
        "flowstone.estimator.canned.linear": "linear_logit_fn_builder",
        "flowstone.estimator.canned.linear_sdca": "LinearSDCA",
        "flowstone.estimator.early_stopping": "make_early_stopping_hook stop_if_higher_hook"
        " stop_if_lower_hook stop_if_no_decrease_hook stop_if_no_increase_hook",
        "flowstone.estimator.export.export": "build_raw_supervised_input_receiver_fn",
        "flowstone.estimator.hooks": "InMemoryEvaluatorHook make_stop_at_checkpoint_step_hook",
        "flowstone.estimator.model_fn": "call_logit_fn",
    },
)
