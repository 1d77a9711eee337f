"""Where values come from: constants, placeholders, filled tensors and sequences.

`constant` is also how every Python and NumPy value becomes a tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework import dtypes, errors
from flowstone.framework.kernel import CPU, GPU, Value
from flowstone.framework.operation import op
from flowstone.framework.scope import get_default_graph
from flowstone.framework.shape import as_shape
from flowstone.framework.tensor import Tensor, register_tensor_conversion_function
from flowstone.framework.tensor_proto import constant_array
from flowstone.framework.values import to_runtime

const = op("Const", "-> output: dtype", "value: tensor", dtype=None)
const.infer(lambda node: tuple(node.attributes["value"].shape))
const.not_differentiable()


@const.kernel(CPU, GPU)
def _(node, env):
    value = to_runtime(node.attributes["value"], node.attributes["dtype"])
    return Value(value if env.device.type == "cpu" or node.attributes["dtype"].torch is None else value.to(env.device))


@const.value()
def _(node):
    return node.attributes["value"]


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const", verify_shape: bool = False) -> Tensor:
    """A constant tensor.

    `value`: a Python or NumPy number, string, or nested list; `dtype`: inferred if None (Python floats are float32,
    ints int32); `shape`: the value is broadcast or its last element repeated to it, unless `verify_shape`.
    Raises TypeError or ValueError for values that do not fit.
    """
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    array = constant_array(value, dtype, shape, verify_shape)
    if dtype is None:
        dtype = dtypes.as_dtype(array.dtype)
    elif dtype.is_ref:
        dtype = dtype.base_dtype
    attributes = {"value": array, "dtype": dtype}
    return get_default_graph().create(const, [], attributes, (), name or "Const")._outputs[0]  # type: ignore[no-any-return]


def _constant_from_value(value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    return NotImplemented if as_ref else constant(value, dtype, name=name or "Const")


register_tensor_conversion_function(object, _constant_from_value, 200)

placeholder_op = op("Placeholder", "-> output: dtype", "shape: shape = ?", dtype=None, stateful=True)
placeholder_op.infer(lambda node: node.attributes["shape"])
placeholder_op.not_differentiable()


@placeholder_op.kernel(CPU, GPU)
def _(node, env):
    def unfed(*_):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"You must feed a value for placeholder tensor '{node.name}' with dtype "
            f"{node.attributes['dtype'].name} and shape {as_shape(node.attributes['shape'])}",
        )

    return unfed


def placeholder(dtype: Any = dtypes.float32, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that must be fed. `shape`: None for any; feeding a value of another shape is a ValueError."""
    return placeholder_op(dtype=dtype, shape=as_shape(shape).dims_tuple, name=name)  # type: ignore[no-any-return]


identity_op = op("Identity", "input: T -> output: T", T=None, aliases=[0])
identity_op.infer(lambda node: node.dims(0))


@identity_op.kernel(CPU, GPU)
def _(node, env):
    return _same


def _same(x):
    return x


@identity_op.gradient
def _(op, dy):
    return (dy,)


@identity_op.fold
def _(node):
    return node.inputs[0]


@identity_op.value(0)
def _(node):
    return node.inputs[0]._static_value


def identity(input: Any, name: str | None = None) -> Tensor:  # noqa: A002 - the public name
    """A tensor with the same value; under `control_dependencies` it is taken after them."""
    return identity_op(input, name=name)  # type: ignore[no-any-return]


def as_numpy(value: Any) -> np.ndarray[Any, Any]:
    """A constant's value as an array."""
    return np.asarray(value)
