"""Tensors in JSON, as TensorFlow Serving's REST API writes them.

A tensor is a number, true or false, a string, or nested lists of them. A string that is not text is
``{"b64": "…"}``. In row format (``instances``) a request lists examples, each a value or an object of
values; in column format (``inputs``) it is one value or an object of batches. NaN, Infinity and -Infinity
are numbers.

>>> array_of("x", [[1, 2.5]], dtypes.float32)
array([[1. , 2.5]], dtype=float32)
>>> value_of("y", np.float32([0.1]), dtypes.float32)
[0.1]

Types are not converted: 1.0 is no integer, true no number, and ragged lists are refused
(InvalidArgumentError).
"""

from __future__ import annotations

import base64
import binascii
from itertools import chain
from typing import Any

import numpy as np

from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.serving.inference import invalid
from flowstone.serving.servable import Signature

__all__ = ["array_of", "binary", "column_outputs", "inputs_of_columns", "inputs_of_rows", "is_binary"]

Array = np.ndarray[Any, Any]
_MOST_DIMENSIONS = 32


# ---- requests


def inputs_of_rows(instances: Any, signature: Signature) -> dict[str, Array]:
    """The inputs of a request in row format."""
    if not isinstance(instances, list) or not instances:
        raise invalid("'instances' must be a list that is not empty.")
    named = [isinstance(each, dict) and not is_binary(each) for each in instances]
    if not any(named):
        name = _only_input(signature, "instances")
        return {name: array_of(name, instances, signature.inputs[name].dtype)}
    if not all(named):
        raise invalid("'instances' must be either all objects or all values.")
    names = set(instances[0])
    for index, each in enumerate(instances):
        if set(each) != names:
            raise invalid(
                f"Instance {index} has the inputs {sorted(each)}, the first one has {sorted(names)}."
            )
    return _columns({name: [each[name] for each in instances] for name in instances[0]}, signature)


def inputs_of_columns(inputs: Any, signature: Signature) -> dict[str, Array]:
    """The inputs of a request in column format."""
    if isinstance(inputs, dict) and not is_binary(inputs):
        return _columns(inputs, signature)
    name = _only_input(signature, "inputs")
    return {name: array_of(name, inputs, signature.inputs[name].dtype)}


def _only_input(signature: Signature, key: str) -> str:
    if len(signature.inputs) != 1:
        names = ", ".join(sorted(signature.inputs))
        raise invalid(f"'{key}' must name the inputs of the signature '{signature.key}': {names}.")
    (name,) = signature.inputs
    return name


def _columns(values: dict[str, Any], signature: Signature) -> dict[str, Array]:
    # An unknown name is found later, where the names are compared; its type does not matter.
    return {
        name: array_of(name, value, signature.inputs[name].dtype if name in signature.inputs else None)
        for name, value in values.items()
    }


def array_of(name: str, value: Any, dtype: DType | None) -> Array:
    """The array of a JSON value. `name` is for messages; without a type, only the names matter."""
    if dtype is None:
        return np.empty(0)
    dims, leaves = _measured(name, value)
    check_leaves(name, leaves, dtype)
    array = _strings(name, leaves) if dtype is dtypes.string else _numbers(name, leaves, dtype)
    return array.reshape(dims)


def _measured(name: str, value: Any) -> tuple[list[int], list[Any]]:
    """The sizes of nested lists and what is in them, in order."""
    dims: list[int] = []
    level = [value]
    while level and isinstance(level[0], list):
        size = len(level[0])
        if any(not isinstance(each, list) or len(each) != size for each in level):
            raise invalid(f"'{name}' is no tensor: its lists differ in length at depth {len(dims)}.")
        dims.append(size)
        if len(dims) > _MOST_DIMENSIONS:
            raise invalid(f"'{name}' has more than {_MOST_DIMENSIONS} dimensions.")
        level = list(chain.from_iterable(level))
    return dims, level


def check_leaves(name: str, leaves: list[Any], dtype: DType) -> None:
    """InvalidArgumentError for a leaf that is not of the type."""
    allowed: tuple[type, ...]
    if dtype is dtypes.string:
        allowed = (str, dict)
    elif dtype is dtypes.bool:
        allowed = (bool,)
    elif dtype.is_floating:
        allowed = (float, int)
    elif dtype.is_integer and not dtype.is_quantized:
        allowed = (int,)
    else:
        raise invalid(f"'{name}' is of type {dtype.name}, which JSON cannot express.")
    for kind in set(map(type, leaves)).difference(allowed):
        word = _WORDS.get(kind, kind.__name__)
        raise invalid(f"'{name}' is expected to hold {dtype.name} values, but has {word}.")


_WORDS = {
    list: "a list beside a value",
    dict: "an object",
    str: "a string",
    bool: "a truth value",
    type(None): "null",
    float: "a decimal number",
    int: "an integer",
}


def _numbers(name: str, leaves: list[Any], dtype: DType) -> Array:
    stored = np.dtype(dtype.as_numpy_dtype)
    if dtype.is_integer and leaves:
        bounds = np.iinfo(stored)
        least, most = min(leaves), max(leaves)
        if least < bounds.min or most > bounds.max:
            wrong = least if least < bounds.min else most
            raise invalid(f"'{name}' has a value out of the range of {dtype.name}: {str(wrong)[:40]}.")
    try:
        array = np.array(leaves, dtype=np.float64 if dtype.is_floating else stored)
    except OverflowError:
        raise invalid(f"'{name}' has a value out of the range of {dtype.name}.") from None
    with np.errstate(over="ignore"):
        return array.astype(stored, copy=False)


def _strings(name: str, leaves: list[Any]) -> Array:
    array = np.empty(len(leaves), dtype=object)
    for index, leaf in enumerate(leaves):
        array[index] = binary(name, leaf)
    return array


def is_binary(value: Any) -> bool:
    """Whether an object stands for a string's bytes."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), str)


def binary(name: str, leaf: Any) -> bytes:
    """The bytes of a string, or of ``{"b64": …}``."""
    if isinstance(leaf, str):
        return leaf.encode("utf-8", "surrogatepass")
    if not is_binary(leaf):
        raise invalid(f'\'{name}\' has an object that is not of the form {{"b64": "..."}}.')
    text = leaf["b64"]
    try:
        # Without padding, too, and in either alphabet.
        return base64.b64decode(
            text.rstrip("=").replace("-", "+").replace("_", "/") + "=" * (-len(text.rstrip("=")) % 4),
            validate=True,
        )
    except (binascii.Error, ValueError):
        raise invalid(f"'{name}' has text that is not base64.") from None


# ---- responses


def row_outputs(outputs: dict[str, Array], signature: Signature) -> list[Any]:
    """The predictions, one an example. InvalidArgumentError if an output has no axis of examples."""
    sizes = {name: len(array) if array.ndim else None for name, array in outputs.items()}
    if None in sizes.values() or len(set(sizes.values())) != 1:
        raise invalid(
            f"The outputs have no common first axis: {sizes}. Ask with 'inputs' in place of 'instances'."
        )
    columns = {name: value_of(name, outputs[name], signature.outputs[name].dtype) for name in outputs}
    if len(columns) == 1:
        (column,) = columns.values()
        return list(column)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def column_outputs(outputs: dict[str, Array], signature: Signature) -> Any:
    """The value of the only output, or an object of all."""
    columns = {name: value_of(name, outputs[name], signature.outputs[name].dtype) for name in outputs}
    return next(iter(columns.values())) if len(columns) == 1 else columns


def value_of(name: str, array: Array, dtype: DType) -> Any:
    """The JSON value of an output. Strings are text; those of a name that ends in ``_bytes``, and those
    that are no UTF-8, are written in base64."""
    if dtype is dtypes.string:
        return _nested(array, name.endswith("_bytes"))
    if dtype.is_complex or dtype.is_quantized:
        raise invalid(f"The output '{name}' is of type {dtype.name}, which JSON cannot express.")
    if dtype.is_floating and dtype is not dtypes.float64:
        # The shortest decimals that give the same float32.
        return array.astype(np.float32).astype("U").astype(np.float64).tolist()
    return array.tolist()


def _nested(array: Array, as_base64: bool) -> Any:
    if array.ndim:
        return (
            [_nested(each, as_base64) for each in array]
            if array.ndim > 1
            else [_text(each, as_base64) for each in array.tolist()]
        )
    return _text(array.item(), as_base64)


def _text(value: bytes, as_base64: bool) -> Any:
    if not as_base64:
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    return {"b64": base64.b64encode(value).decode("ascii")}
