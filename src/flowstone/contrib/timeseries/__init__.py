"""`tf.contrib.timeseries`: models of time series, trained and asked as Estimators.

`readers` and `input_pipeline` give windows of a series. `model` and `sequential_model` say what a model is;
`ar_model` has the autoregressive ones. `state_management` says where a window's first state comes from.
`head` makes a model's training, evaluation and prediction, and `estimators` are what a program uses.
"""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

_ROOM = "flowstone.contrib.timeseries"

__getattr__, __dir__ = package_names(
    globals(),
    {
        f"{_ROOM}.ar_model": "ARModel",
        f"{_ROOM}.ar_anomalies": "AnomalyMixtureARModel",
        f"{_ROOM}.prediction_models": "FlatPredictionModel LSTMPredictionModel",
        f"{_ROOM}.estimators": "ARRegressor LSTMAutoRegressor TimeSeriesRegressor",
        f"{_ROOM}.feature_keys": "FilteringFeatures FilteringResults PredictionFeatures PredictionResults"
        " SavedModelLabels State Times TrainEvalFeatures Values",
        f"{_ROOM}.head": "OneShotPredictionHead TimeSeriesRegressionHead state_to_dictionary",
        f"{_ROOM}.input_pipeline": "RandomWindowInputFn TimeSeriesInputFn WholeDatasetInputFn"
        " predict_continuation_input_fn",
        f"{_ROOM}.input_statistics": "InputStatistics InputStatisticsFromMiniBatch Moments",
        f"{_ROOM}.model": "ModelOutputs TimeSeriesModel",
        f"{_ROOM}.readers": "CSVReader NumpyReader ReaderBaseTimeSeriesParser TFExampleReader"
        " TimeSeriesReader",
        f"{_ROOM}.refused_names": "StateSpaceRegressor StructuralEnsembleRegressor",
        f"{_ROOM}.sequential_model": "SequentialTimeSeriesModel",
        f"{_ROOM}.state_tables": "TensorValuedMutableDenseHashTable TupleOfTensorsLookup",
    },
    "saved_model_utils",
)
