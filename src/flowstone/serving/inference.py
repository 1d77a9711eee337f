"""What predict, classify and regress mean for a signature: arrays and Examples in, arrays out.

What does not fit the signature is refused before the step: InvalidArgumentError names the tensor. A missing
signature is FailedPreconditionError, as in TensorFlow Serving.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework import errors
from flowstone.framework.types.shape import format_dims, is_compatible
from flowstone.saved_model import signature_constants as constants
from flowstone.serving.servable import Servable, Signature, TensorSpec

__all__ = ["Classified", "classify", "predict", "regress"]

Array = np.ndarray[Any, Any]

_PREDICTING = (
    constants.PREDICT_METHOD_NAME,
    constants.CLASSIFY_METHOD_NAME,
    constants.REGRESS_METHOD_NAME,
)


class Classified(NamedTuple):
    """Labels (bytes) and scores, [examples, classes] each; None for what the model does not give."""

    labels: Array | None
    scores: Array | None


def invalid(message: str) -> errors.InvalidArgumentError:
    """The error of a request that says something wrong."""
    return errors.InvalidArgumentError(None, None, message)


def predict(
    servable: Servable,
    signature: Signature,
    inputs: Mapping[str, Array],
    outputs: Sequence[str] = (),
) -> dict[str, Array]:
    """The outputs (all by default, sorted by name) of a signature for these inputs."""
    if signature.method not in _PREDICTING:
        raise invalid(
            f"Expected prediction signature method_name to be one of {', '.join(_PREDICTING)}. "
            f"Was: {signature.method}"
        )
    _check_names(signature, inputs)
    for name, array in inputs.items():
        _check_array(name, array, signature.inputs[name])
    return _run(servable, signature, inputs, outputs or sorted(signature.outputs))


def _run(
    servable: Servable, signature: Signature, inputs: Mapping[str, Array], outputs: Sequence[str]
) -> dict[str, Array]:
    unknown = [name for name in outputs if name not in signature.outputs]
    if unknown:
        raise invalid(
            f"output tensor alias not found in signature: {unknown[0]}. "
            f"Outputs expected to be in the set {_braces(signature.outputs)}."
        )
    if len(set(outputs)) != len(outputs):
        raise invalid(f"duplicate output tensor alias in {', '.join(outputs)}.")
    try:
        return servable.run(signature, inputs, outputs)
    except (TypeError, ValueError) as error:  # what feeding says
        raise invalid(str(error)) from None


def _check_names(signature: Signature, inputs: Collection[str]) -> None:
    expected = set(signature.inputs)
    extra, missing = set(inputs) - expected, expected - set(inputs)
    if extra or missing:
        raise invalid(
            f"inputs do not match the signature '{signature.key}'. "
            f"Sent extra: {_braces(extra)}. Missing but required: {_braces(missing)}."
        )


def _braces(names: Collection[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}"


def _check_array(name: str, array: Array, spec: TensorSpec) -> None:
    stored = np.dtype(spec.dtype.as_numpy_dtype)
    if array.dtype != stored:
        raise invalid(f"input tensor '{name}' is expected to be {spec.dtype.name}, not {array.dtype.name}.")
    if not is_compatible(spec.dims, array.shape):
        raise invalid(
            f"input tensor '{name}' has the shape {format_dims(array.shape)}, "
            f"which does not fit {format_dims(spec.dims)}."
        )


# ---- Examples


def classify(servable: Servable, signature: Signature, examples: Sequence[bytes]) -> Classified:
    """What a signature for classification makes of serialised Examples."""
    _check_method(signature, constants.CLASSIFY_METHOD_NAME, constants.CLASSIFY_INPUTS, examples)
    names = [
        name
        for name in (constants.CLASSIFY_OUTPUT_CLASSES, constants.CLASSIFY_OUTPUT_SCORES)
        if name in signature.outputs
    ]
    if not names:
        raise invalid(f"The signature '{signature.key}' has neither classes nor scores.")
    found = _run(servable, signature, {constants.CLASSIFY_INPUTS: _strings(examples)}, names)
    for name, array in found.items():
        if array.ndim != 2 or len(array) != len(examples):
            raise invalid(
                f"Expected {name} of the shape [{len(examples)}, classes], got {format_dims(array.shape)}."
            )
    labels = found.get(constants.CLASSIFY_OUTPUT_CLASSES)
    scores = found.get(constants.CLASSIFY_OUTPUT_SCORES)
    if labels is not None and scores is not None and labels.shape != scores.shape:
        raise invalid(
            f"Expected as many classes as scores, got {format_dims(labels.shape)} and "
            f"{format_dims(scores.shape)}."
        )
    return Classified(labels, scores)


def regress(servable: Servable, signature: Signature, examples: Sequence[bytes]) -> Array:
    """The number, [examples], that a signature for regression makes of each serialised Example."""
    _check_method(signature, constants.REGRESS_METHOD_NAME, constants.REGRESS_INPUTS, examples)
    name = constants.REGRESS_OUTPUTS
    found = _run(servable, signature, {constants.REGRESS_INPUTS: _strings(examples)}, [name])[name]
    if found.shape not in ((len(examples),), (len(examples), 1)):
        raise invalid(
            f"Expected a value for each of {len(examples)} examples, got the shape "
            f"{format_dims(found.shape)}."
        )
    return found.reshape(-1)


def _check_method(signature: Signature, method: str, key: str, examples: Sequence[bytes]) -> None:
    if signature.method != method:
        kind = method.rpartition("/")[2]
        raise invalid(
            f"Expected {kind} signature method_name to be {method}. Was: {signature.method or 'none'}"
        )
    _check_names(signature, [key])
    if not examples:
        raise invalid("Input is empty.")
    _check_array(key, _strings(examples), signature.inputs[key])


def _strings(values: Sequence[bytes]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
