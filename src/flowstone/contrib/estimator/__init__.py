"""`tf.contrib.estimator`: heads, extended Estimators and hooks, before they were in `tf.estimator`."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.estimator.export": "export_all_saved_models export_saved_model_for_mode",
        "flowstone.contrib.estimator.refused_names": "RNNClassifier RNNEstimator SavedModelEstimator",
        "flowstone.contrib.estimator.one_device": "TowerOptimizer replicate_model_fn",
        "flowstone.contrib.estimator.heads": "binary_classification_head logistic_regression_head"
        " multi_class_head multi_head multi_label_head poisson_regression_head regression_head",
        "flowstone.estimator.canned.baseline": "BaselineEstimator",
        "flowstone.estimator.canned.boosted_trees": "boosted_trees_classifier_train_in_memory"
        " boosted_trees_regressor_train_in_memory",
        "flowstone.estimator.canned.dnn": "DNNEstimator dnn_logit_fn_builder",
        "flowstone.estimator.canned.dnn_linear_combined": "DNNLinearCombinedEstimator",
        "flowstone.estimator.canned.linear": "LinearEstimator linear_logit_fn_builder",
        "flowstone.estimator.early_stopping": "make_early_stopping_hook read_eval_metrics stop_if_higher_hook"
        " stop_if_lower_hook stop_if_no_decrease_hook stop_if_no_increase_hook",
        "flowstone.estimator.export.export": "build_raw_supervised_input_receiver_fn"
        " build_supervised_input_receiver_fn_from_input_fn",
        "flowstone.estimator.extenders": "add_metrics clip_gradients_by_norm forward_features",
        "flowstone.estimator.hooks": "InMemoryEvaluatorHook make_stop_at_checkpoint_step_hook",
        "flowstone.estimator.model_fn": "call_logit_fn",
    },
)
