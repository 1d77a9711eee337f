"""`tensorflow.python.saved_model.signature_def_utils_impl`: types and shapes of signatures."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "get_signature_def_input_shapes",
    "get_signature_def_input_types",
    "get_signature_def_output_shapes",
    "get_signature_def_output_types",
]


def _types(tensors: Any) -> dict[str, Any]:
    return {name: tf.as_dtype(info.dtype) for name, info in tensors.items()}


def _shapes(tensors: Any) -> dict[str, Any]:
    return {name: tf.TensorShape(info.tensor_shape) for name, info in tensors.items()}


def get_signature_def_input_types(signature: Any) -> dict[str, Any]:
    """The dtype of each input of a SignatureDef, by name."""
    return _types(signature.inputs)


def get_signature_def_output_types(signature: Any) -> dict[str, Any]:
    """The dtype of each output of a SignatureDef, by name."""
    return _types(signature.outputs)


def get_signature_def_input_shapes(signature: Any) -> dict[str, Any]:
    """The shape of each input of a SignatureDef, by name."""
    return _shapes(signature.inputs)


def get_signature_def_output_shapes(signature: Any) -> dict[str, Any]:
    """The shape of each output of a SignatureDef, by name."""
    return _shapes(signature.outputs)
