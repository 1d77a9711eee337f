"""The names of `tf.contrib.learn` that belong to Estimators, by the modules that have them."""

from __future__ import annotations

__all__ = ["NAMES", "NAMESPACES"]

_ESTIMATORS = "flowstone.contrib.learn.estimators"

NAMES: dict[str, str] = {
    _ESTIMATORS: "head",
    f"{_ESTIMATORS}.base_estimator": "BaseEstimator",
    f"{_ESTIMATORS}.dnn": "DNNClassifier DNNEstimator DNNRegressor",
    f"{_ESTIMATORS}.dnn_linear_combined": "DNNLinearCombinedClassifier DNNLinearCombinedEstimator"
    " DNNLinearCombinedRegressor",
    f"{_ESTIMATORS}.dynamic_rnn_estimator": "DynamicRnnEstimator",
    f"{_ESTIMATORS}.estimator": "Estimator infer_real_valued_columns_from_input"
    " infer_real_valued_columns_from_input_fn",
    f"{_ESTIMATORS}.head": "Head binary_svm_head multi_class_head multi_head multi_label_head"
    " no_op_train_fn poisson_regression_head regression_head",
    f"{_ESTIMATORS}.linear": "LinearClassifier LinearEstimator LinearRegressor",
    f"{_ESTIMATORS}.logistic_regressor": "LogisticRegressor",
    f"{_ESTIMATORS}.model_fn": "ModelFnOps",
    f"{_ESTIMATORS}.kmeans": "KMeansClustering",
    f"{_ESTIMATORS}.svm": "SVM",
    f"{_ESTIMATORS}.run_config": "RunConfig",
    f"{_ESTIMATORS}.sk_compat": "SKCompat",
    "flowstone.contrib.learn.experiment": "Experiment",
    "flowstone.contrib.learn": "io=learn_io",
    "flowstone.contrib.learn.learn_io": "extract_dask_data extract_dask_labels extract_pandas_data"
    " extract_pandas_labels extract_pandas_matrix read_batch_examples read_batch_features"
    " read_batch_record_features read_keyed_batch_examples read_keyed_batch_examples_shared_queue"
    " read_keyed_batch_features read_keyed_batch_features_shared_queue",
    "flowstone.contrib.learn.export_strategy": "ExportStrategy",
    "flowstone.contrib.learn.utils.input_fn_utils": "InputFnOps build_parsing_serving_input_fn",
    "flowstone.contrib.learn.utils.saved_model_export_utils": "make_export_strategy",
}

NAMESPACES = "datasets estimators learn_io learn_runner models ops utils"
