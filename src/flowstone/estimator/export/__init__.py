"""`tf.estimator.export`: what a served model receives and gives."""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.estimator.export.export": "ServingInputReceiver SupervisedInputReceiver"
        " TensorServingInputReceiver UnsupervisedInputReceiver build_parsing_serving_input_receiver_fn"
        " build_raw_serving_input_receiver_fn build_raw_supervised_input_receiver_fn"
        " build_supervised_input_receiver_fn_from_input_fn",
        "flowstone.estimator.export.export_output": "ClassificationOutput EvalOutput ExportOutput"
        " PredictOutput RegressionOutput SupervisedOutput TrainOutput",
    },
    "export export_output",
)
