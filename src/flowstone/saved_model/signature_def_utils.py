"""SignatureDefs: what a graph of a SavedModel takes and gives, and how it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import messages
from flowstone.saved_model import signature_constants as constants
from flowstone.saved_model.method_names import MethodNameUpdater
from flowstone.saved_model.utils import build_tensor_info

__all__ = [
    "MethodNameUpdater",
    "build_signature_def",
    "classification_signature_def",
    "is_valid_signature",
    "predict_signature_def",
    "regression_signature_def",
]

_STRING, _FLOAT = dtypes.string.as_datatype_enum, dtypes.float32.as_datatype_enum


def build_signature_def(
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
) -> Any:
    """The SignatureDef of these TensorInfos, by their keys, and a method's name."""
    message = messages("meta_graph_pb2").SignatureDef()
    for key, info in (inputs or {}).items():
        message.inputs[key].CopyFrom(info)
    for key, info in (outputs or {}).items():
        message.outputs[key].CopyFrom(info)
    if method_name is not None:
        message.method_name = method_name
    return message


def _infos(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {key: build_tensor_info(tensor) for key, tensor in tensors.items()}


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """The SignatureDef of a prediction: tensors by their keys. ValueError if there are none."""
    if not inputs:
        raise ValueError("Prediction inputs cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction outputs cannot be None or empty.")
    return build_signature_def(_infos(inputs), _infos(outputs), constants.PREDICT_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """The SignatureDef of a regression: serialised Examples, a string tensor, to float32 predictions.
    ValueError for None and other types."""
    if examples is None:
        raise ValueError("Regression examples cannot be None.")
    if predictions is None:
        raise ValueError("Regression predictions cannot be None.")
    _check_type(examples, dtypes.string, "Regression examples must be a string Tensor.")
    _check_type(predictions, dtypes.float32, "Regression output must be a float Tensor.")
    inputs, outputs = {constants.REGRESS_INPUTS: examples}, {constants.REGRESS_OUTPUTS: predictions}
    return build_signature_def(_infos(inputs), _infos(outputs), constants.REGRESS_METHOD_NAME)


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """The SignatureDef of a classification: serialised Examples, a string tensor, to string classes, float32
    scores, or both. ValueError for neither, and for other types."""
    if examples is None:
        raise ValueError("Classification examples cannot be None.")
    if classes is None and scores is None:
        raise ValueError("Classification classes and scores cannot both be None.")
    _check_type(examples, dtypes.string, "Classification examples must be a string Tensor.")
    outputs = {}
    if classes is not None:
        _check_type(classes, dtypes.string, "Classification classes must be a string Tensor.")
        outputs[constants.CLASSIFY_OUTPUT_CLASSES] = classes
    if scores is not None:
        _check_type(scores, dtypes.float32, "Classification scores must be a float Tensor.")
        outputs[constants.CLASSIFY_OUTPUT_SCORES] = scores
    inputs = {constants.CLASSIFY_INPUTS: examples}
    return build_signature_def(_infos(inputs), _infos(outputs), constants.CLASSIFY_METHOD_NAME)


def _check_type(tensor: Any, dtype: Any, message: str) -> None:
    if tensor.dtype.base_dtype != dtype:
        raise ValueError(message)


def is_valid_signature(signature_def: Any) -> bool:
    """Whether a server can answer the signature: its method is known, and its tensors are the method's."""
    method = signature_def.method_name
    inputs, outputs = signature_def.inputs, signature_def.outputs
    if method == constants.PREDICT_METHOD_NAME:
        return bool(inputs) and bool(outputs)
    if method == constants.REGRESS_METHOD_NAME:
        return _types(inputs) == {constants.REGRESS_INPUTS: _STRING} and _types(outputs) == {
            constants.REGRESS_OUTPUTS: _FLOAT
        }
    if method == constants.CLASSIFY_METHOD_NAME:
        allowed = {constants.CLASSIFY_OUTPUT_CLASSES: _STRING, constants.CLASSIFY_OUTPUT_SCORES: _FLOAT}
        found = _types(outputs)
        return (
            _types(inputs) == {constants.CLASSIFY_INPUTS: _STRING}
            and bool(found)
            and found.items() <= allowed.items()
        )
    return False


def _types(infos: Mapping[str, Any]) -> dict[str, int]:
    return {key: info.dtype for key, info in infos.items()}
