"""`tf.py_function`: a Python function of arrays as a node of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.control.script import call_node, eager_py_func_op

__all__ = ["py_function"]


class StepArray(np.ndarray):
    """An array that a step hands to a Python function; it has the method `numpy` of eager values."""

    def numpy(self) -> Any:
        """The values as a plain array, a scalar as NumPy's scalar or bytes."""
        return np.asarray(self)[()] if self.ndim == 0 else np.asarray(self)


def py_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, name: str | None = None
) -> Any:
    """The results of ``func(*arrays)`` as tensors of unknown shape.

    `func` gets NumPy arrays, with a method `numpy()` as eager tensors have one: it computes with NumPy, not
    with operations. `inp`: a list of tensors; `Tout`: a dtype, or a list of them (then the result is a list;
    an operation if it is empty). Errors are those of `py_func`. Its gradient is not known: to ask for it is a
    LookupError, so that `tf.custom_gradient` must give one.
    """
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    inputs = [convert_to_tensor(each) for each in inp]

    def call(*arrays: Any) -> Any:
        returned = func(*[_as_step_array(each) for each in arrays])
        if (
            isinstance(Tout, (list, tuple))
            and isinstance(returned, (list, tuple))
            and len(returned) == len(Tout)
        ):
            return [_typed(each, dtype) for each, dtype in zip(returned, Tout)]
        return returned if returned is None or isinstance(Tout, (list, tuple)) else _typed(returned, Tout)

    return call_node(eager_py_func_op, call, inputs, Tout, name)


def _typed(value: Any, dtype: Any) -> Any:
    """A result as an array; one that has no type, a Python number or list, of the type that is asked for."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    return np.asarray(value, dtypes.as_dtype(dtype).as_numpy_dtype)


def _as_step_array(value: Any) -> Any:
    if isinstance(value, bytes):
        array = np.empty((), object)
        array[()] = value
        return array.view(StepArray)
    return np.asarray(value).view(StepArray)
