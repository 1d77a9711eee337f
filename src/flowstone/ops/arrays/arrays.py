"""What the rooms of array operations share: arrays of strings, vectors known in part, axes and reshaped
views.

Kernels of these rooms move elements of any type. Strings are NumPy object arrays inside a step, so a moving
kernel has a NumPy twin; `boxed` keeps its result an array where NumPy would hand out a bare element.

>>> as_known([2, None], np.int32), as_known([2, 3], np.int32)
((2, None), array([2, 3], dtype=int32))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import Call, Input
from flowstone.framework.declarations.operation import Known, evaluate
from flowstone.framework.machine import machine
from flowstone.framework.machine.large_arrays import large_array
from flowstone.framework.machine.machine_code import tuple_rows
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.values import to_numpy

Dims = "tuple[int | None, ...] | None"

_SAME_WIDTH = {dtypes.uint16: "int16", dtypes.uint32: "int32", dtypes.uint64: "int64"}
_STATIC_VALUE_LIMIT = 4096


def invalid(message: str) -> errors.InvalidArgumentError:
    """The error of a kernel whose arguments do not fit; the step adds the node."""
    return errors.InvalidArgumentError(None, None, message)


def unless_known(node: Node, check: Callable[..., None]) -> Callable[..., None]:
    """`check`, which raises what is `invalid` about the shapes of a step's inputs; nothing
    where the node's shapes are known before the step, and fit."""
    shapes = [node.static_shape(i) for i in range(len(node.inputs))]
    known = [torch.empty(dims, device="meta") for dims in shapes if dims is not None]
    if len(known) < len(shapes):
        return check
    try:
        check(*known)
    except errors.InvalidArgumentError:
        return check
    return lambda *inputs: None


def whole_numbers(values: Sequence[int], dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """A vector of these numbers; a third of the time that torch takes for a list."""
    return torch.from_numpy(np.array(values, np.int64)).to(dtype)


def whole_copy(x: torch.Tensor) -> torch.Tensor:
    """A contiguous copy; a large one on a host lies where the caches know the memory."""
    if x.device.type == "cpu" and x.nbytes >= machine.current().profile.large_results:
        return large_array(x.shape, x.dtype).copy_(x)
    return x.clone(memory_format=torch.contiguous_format)


def places_by_code(indices: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor | None:
    """The row-major numbers of index tuples [..., depth] in an array of these sizes, as a vector, by machine
    code; None where there is none, or a tuple is outside."""
    code = tuple_rows(indices.dtype) if len(sizes) and indices.device.type == "cpu" else None
    return None if code is None else code.places(indices, sizes)


def is_text(node: Node, i: int = 0) -> bool:
    """Whether input `i` holds strings."""
    return bool(node.dtype(i) is dtypes.string)


def boxed(value: Any) -> np.ndarray[Any, Any]:
    """`value` as an array of strings, also where it is one bare element."""
    if isinstance(value, np.ndarray):
        return value
    holder = np.empty((), dtype=object)
    holder[()] = value
    return holder


def is_handle(node: Node, i: int = 0) -> bool:
    """Whether input `i` holds handles: one is the bare object, several are an array of objects."""
    return node.dtype(i) in (dtypes.resource, dtypes.variant)


def unboxing(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of arrays of objects as a function of handles, one of which comes out bare."""

    def on_handles(*values: Any) -> Any:
        result = function(*(x if isinstance(x, torch.Tensor) else boxed(x) for x in values))
        return result[()] if result.ndim == 0 else result

    return on_handles


def in_signed(dtype: Any, function: Callable[..., Any], *positions: int) -> Callable[..., Any]:
    """`function` for types that ATen cannot index: inputs at `positions` and the result as signed twins."""
    name = _SAME_WIDTH.get(dtype)
    if name is None:
        return function
    signed = dtypes.as_dtype(name).torch
    unsigned = dtype.torch

    def call(*inputs: Any) -> Any:
        views = [x.view(signed) if i in positions else x for i, x in enumerate(inputs)]
        return function(*views).view(unsigned)

    return call


def moving(node: Node, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which only moves elements of its first argument, for every type: of texts numbers are
    moved, and then taken by them."""
    if not is_text(node):
        return in_signed(node.dtype(0), function, 0)

    def move(texts: Any, *rest: Any) -> Any:
        numbers = torch.arange(texts.size).reshape(texts.shape)
        return texts.reshape(-1)[function(numbers, *rest).numpy()]

    return move


def inputs_from(first: int, count: int) -> list[Input]:
    """`count` placeholders for consecutive inputs, to be one argument of a `Call`."""
    return [Input(first + i) for i in range(count)]


def call_on_list(function: Callable[..., Any], first: int, count: int, *rest: Any) -> Call:
    """A `Call` of `function` with a list of inputs as its first argument."""
    return Call(function, inputs_from(first, count), *rest)


# ---- what is known before a step


def computed(node: Node, index: int = 0) -> Known:
    """The static value of an output of small size whose inputs are all known, by its kernel; else None."""
    values = [x._static_value for x in node.inputs]
    if not all(isinstance(value, np.ndarray) for value in values):
        return None
    dims = node.outputs[index].static_shape
    if dims is None or math.prod(dims) > _STATIC_VALUE_LIMIT:
        return None
    try:
        return to_numpy(evaluate(node, values)[index], node.outputs[index].dtype)
    except Exception:  # the step will say what is wrong, with the node's name
        return None


def as_known(sizes: Sequence[int | None], dtype: Any) -> Known:
    """A vector of sizes as a static value: an array if all are known, else a tuple with None."""
    if None in sizes:
        return tuple(sizes)
    return np.array(sizes, dtype)


def elements(value: Any) -> tuple[int | None, ...] | None:
    """The elements of a static value that is a vector of integers, as a tuple with None; else None."""
    if type(value) is tuple:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        return tuple(value.tolist())
    return None


def scalar_element(value: Any) -> int | None:
    """The integer in a static value that is a scalar, or None."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu":
        return int(value)
    return None


def sizes_of(node: Node, i: int) -> tuple[int | None, ...] | None:
    """As `node.constant_dims`, but ValueError for a size below -1."""
    value = node.constant(i)
    if value is not None and value.size and int(value.min()) < -1:
        raise ValueError(f"Invalid value in tensor used for shape: {int(value.min())}")
    return node.constant_dims(i)


def checked_axis(axis: int, rank: int, what: str = "axis") -> int:
    """`axis` counted from the front. ValueError outside [-rank, rank)."""
    if not -rank <= axis < rank:
        raise ValueError(f"{what} {axis} is not in the range [{-rank}, {rank})")
    return axis + rank if axis < 0 else axis


def replaced(dims: tuple[Any, ...], axis: int, *sizes: Any) -> tuple[Any, ...]:
    """`dims` with the dimension at `axis` replaced by `sizes`."""
    return (*dims[:axis], *sizes, *dims[axis + 1 :])


def product(sizes: Sequence[int]) -> int:
    """The product of known sizes."""
    result = 1
    for n in sizes:
        result *= n
    return result
