"""`tf.estimator`: models given by a function, which are trained, evaluated, used and exported.

An `Estimator` runs on `tf.train.MonitoredTrainingSession`. The canned ones (`canned/`) take feature columns
and join a network's logits with a head (`head/`, `canned/head.py`): loss, metrics, predictions, signatures.
"""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.estimator.canned.baseline": "BaselineClassifier BaselineEstimator BaselineRegressor",
        "flowstone.estimator.canned.boosted_trees": "BoostedTreesClassifier BoostedTreesEstimator"
        " BoostedTreesRegressor",
        "flowstone.estimator.canned.dnn": "DNNClassifier DNNEstimator DNNRegressor",
        "flowstone.estimator.canned.dnn_linear_combined": "DNNLinearCombinedClassifier"
        " DNNLinearCombinedEstimator DNNLinearCombinedRegressor",
        "flowstone.estimator.canned.linear": "LinearClassifier LinearEstimator LinearRegressor",
        "flowstone.estimator.canned.parsing_utils": "classifier_parse_example_spec"
        " regressor_parse_example_spec",
        "flowstone.estimator.estimator": "Estimator",
        "flowstone.estimator.exporter": "BestExporter Exporter FinalExporter LatestExporter",
        "flowstone.estimator.extenders": "add_metrics",
        "flowstone.estimator.head.base_head": "Head",
        "flowstone.estimator.head.binary_class_head": "BinaryClassHead",
        "flowstone.estimator.head.multi_class_head": "MultiClassHead",
        "flowstone.estimator.head.multi_head": "MultiHead",
        "flowstone.estimator.head.multi_label_head": "MultiLabelHead",
        "flowstone.estimator.head.regression_head": "LogisticRegressionHead PoissonRegressionHead"
        " RegressionHead",
        "flowstone.estimator.mode_keys": "ModeKeys",
        "flowstone.estimator.model_fn": "EstimatorSpec",
        "flowstone.estimator.run_config": "RunConfig",
        "flowstone.estimator.training": "EvalSpec TrainSpec train_and_evaluate",
        "flowstone.estimator.warm_start_settings": "VocabInfo WarmStartSettings",
        "flowstone.training.hooks.checkpoint_hook": "CheckpointSaverHook CheckpointSaverListener",
        "flowstone.training.hooks.session_run_hook": "SessionRunArgs SessionRunContext SessionRunHook"
        " SessionRunValues",
        "flowstone.training.hooks.step_hooks": "GlobalStepWaiterHook StepCounterHook StopAtStepHook",
        "flowstone.training.hooks.step_timer": "SecondOrStepTimer",
        "flowstone.training.hooks.summary_hooks": "ProfilerHook SummarySaverHook",
        "flowstone.training.hooks.tensor_hooks": "FeedFnHook FinalOpsHook LoggingTensorHook"
        " NanLossDuringTrainingError NanTensorHook",
    },
    "experimental export inputs tpu",
)
