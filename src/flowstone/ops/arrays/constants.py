"""Where values come from: constants, placeholders, filled tensors and sequences.

`constant` is also how every Python and NumPy value becomes a tensor.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel, Value
from flowstone.framework.declarations.operation import Equal, F, Gradients, Known, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import machine
from flowstone.framework.machine.array_code import stepped_numbers
from flowstone.framework.machine.machine_code import spaced_numbers
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor, register_tensor_conversion_function
from flowstone.framework.types import dtypes
from flowstone.framework.types.constant_arrays import constant_array
from flowstone.framework.types.shape import TensorShape, as_shape, format_dims
from flowstone.framework.types.tensor_proto import constant_of, is_tensor_proto
from flowstone.framework.types.values import to_runtime
from flowstone.ops.arrays.arrays import invalid, is_text, product
from flowstone.ops.arrays.identities import placeholder_with_default_op
from flowstone.ops.lists.tensor_list import zeros_like_list
from flowstone.ops.numbers.elementwise import ARITHMETIC

__all__ = [
    "constant", "eye", "fill", "lin_space", "linspace", "ones", "ones_like", "placeholder",
    "placeholder_with_default", "range", "zeros", "zeros_like",
]  # fmt: skip

_SMALL = 1000  # elements: below, zeros and ones are constants

const = op(
    "Const", "-> output: dtype", "value: tensor", dtype=None, free=True, holds_state=True, role="constant"
)
const.infer(lambda node: tuple(node.attributes["value"].shape))
const.not_differentiable()


@const.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    value = to_runtime(node.attributes["value"], node.attributes["dtype"])
    return Value(
        value if env.device.type == "cpu" or node.attributes["dtype"].torch is None else value.to(env.device)
    )


@const.value()
def _(node: Node) -> Known | list[Known]:
    return node.attributes["value"]  # type: ignore[no-any-return]


def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str = "Const", verify_shape: bool = False
) -> Tensor:
    """A constant tensor.

    `value`: a Python or NumPy number, string, nested list, or a TensorProto, whose type and shape hold;
    `dtype`: inferred if None (Python floats are float32, ints int32); `shape`: the value is broadcast or its
    last element repeated, unless `verify_shape`. TypeError or ValueError for values that do not fit.
    """
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    if is_tensor_proto(value):
        value, dtype, shape = constant_of(value), dtypes.as_dtype(value.dtype), None
    try:
        array = constant_array(value, dtype, shape, verify_shape)
    except NotImplementedError as error:  # a tensor has no value yet
        raise TypeError(
            "tf.constant takes values, not tensors; tf.convert_to_tensor takes a tensor, or a list with some"
        ) from error
    if isinstance(value, np.ndarray) and np.may_share_memory(array, value):
        array = array.copy()  # what the user does to his array later is not the graph's
    dtype = dtypes.as_dtype(array.dtype) if dtype is None else dtype.base_dtype
    attributes = {"value": array, "dtype": dtype}
    return get_default_graph().create(const, [], attributes, (), name or "Const").outputs[0]


def _constant_from_value(value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    return constant(value, dtype, name=name or "Const")  # no reference: who insists on one refuses it


register_tensor_conversion_function(object, _constant_from_value, 200)


def _unfed(node: Node, env: Environment) -> Kernel:
    dtype, dims = dtypes.wire_name(node.attributes["dtype"]), node.attributes["shape"]
    shape = f" and shape {format_dims(dims)}" if dims else ""
    message = f"You must feed a value for placeholder tensor '{node.name}' with dtype {dtype}{shape}"

    def fail(*_: Any) -> Any:
        raise errors.InvalidArgumentError(None, None, message)

    return fail


_FED: dict[str, Any] = {"dtype": None, "stateful": True, "free": True, "role": "placeholder"}
placeholder_op = op("Placeholder", "-> output: dtype", "shape: shape = ?", **_FED)
placeholder_op.infer(lambda node: node.attributes["shape"])
placeholder_op.kernel(CPU, GPU)(_unfed)
placeholder_op.not_differentiable()

placeholder_v2_op = op(
    "PlaceholderV2", "-> output: dtype", "dtype: type ; shape: shape", deprecated=(23, "Placeholder"), **_FED
)
placeholder_v2_op.infer(lambda node: node.attributes["shape"])
placeholder_v2_op.kernel(CPU, GPU)(_unfed)
placeholder_v2_op.not_differentiable()


def placeholder(dtype: Any = dtypes.float32, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that must be fed. `shape`: None for any; feeding a value of another shape is a ValueError."""
    return placeholder_op(dtype=dtype, shape=as_shape(shape).dims_tuple, name=name)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input`, unless this tensor is fed. ValueError if its static shape contradicts `shape`."""
    return placeholder_with_default_op(input, shape=as_shape(shape).dims_tuple, name=name)


# ---- filled tensors

fill_op = op(
    "Fill",
    "dims: index_type, value: T[] -> output: T",
    "index_type: type in [int32, int64] = int32",
    T=None,
    host=["dims"],
    by_element=True,
    uniform=lambda node: node.constant(1),
)


@fill_op.infer
def _(node: Node) -> Shapes:
    value = node.constant(0)
    if value is not None and value.size and int(value.min()) < 0:
        raise ValueError(f"Fill dimensions must be >= 0, got {int(value.min())}")
    return node.constant_dims(0)


@fill_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if is_text(node, 1):
        return lambda dims, value: np.full(_checked_sizes(dims.tolist()), value.item(), dtype=object)
    dims, value = node.constant(0), node.constant(1)
    dtype = node.dtype(1).torch
    if (
        dims is not None
        and value is not None
        and node.dtype(1) is not dtypes.bfloat16
        and value.dtype.names is None
    ):
        sizes = _checked_sizes(dims.tolist())
        return Call(torch.full, sizes, value.item(), dtype=dtype, device=env.device)

    def fill(dims: Any, value: Any) -> Any:
        return torch.empty(_checked_sizes(dims.tolist()), dtype=dtype, device=env.device).copy_(value)

    return fill


def _checked_sizes(sizes: list[int]) -> list[int]:
    if any(n < 0 for n in sizes):
        raise invalid(f"Dimension {min(sizes)} must be >= 0")
    return sizes


@fill_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return None, F.Sum(dy, F.Range(0, F.Rank(dy), 1))


def _like(name: str, types: Any, function: Any, number: int) -> OpDeclaration:
    traits: dict[str, Any] = {"by_element": True, "shape_only": True, "uniform": lambda node: number}
    declaration = op(name, "x: T -> y: T", T=types, **traits)
    declaration.infer(lambda node: node.dims(0))
    declaration.not_differentiable()

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        if is_text(node):
            return lambda x: np.full(x.shape, b"", dtype=object)
        if node.dtype(0) is dtypes.variant and name == "ZerosLike":
            return Call(zeros_like_list, X0)
        return Call(function, X0)

    return declaration


zeros_like_op = _like("ZerosLike", None, torch.zeros_like, 0)
ones_like_op = _like("OnesLike", (*ARITHMETIC, dtypes.bool), torch.ones_like, 1)
_FEW = 1 << 14  # zeros that a plan may hold


@zeros_like_op.fold
def _(node: Node) -> Equal:
    dims, dtype = node.static_shape(0), node.dtype(0)
    if dims is None or dtype.torch is None or node.inputs[0].dtype.is_ref or math.prod(dims) > _FEW:
        return None
    return np.zeros(dims, dtype.as_numpy_dtype)


# ---- sequences

range_op = op(
    "Range",
    "start: Tidx[], limit: Tidx[], delta: Tidx[] -> output: Tidx",
    "Tidx: type in [bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64]"
    " = int32",
    host=["start", "limit", "delta"],
)
range_op.not_differentiable()


def _count(start: Any, limit: Any, delta: Any) -> int:
    """How many elements a Range has. ValueError where it would never end."""
    if delta == 0:
        raise ValueError("Requires delta != 0")
    if delta > 0 and start > limit:
        raise ValueError(f"Requires start <= limit when delta > 0: {start}/{limit}")
    if delta < 0 and start < limit:
        raise ValueError(f"Requires start >= limit when delta < 0: {start}/{limit}")
    if isinstance(delta, int) and delta == 1:
        return limit - start  # type: ignore[no-any-return]
    if isinstance(delta, int):
        return int(-(-abs(limit - start) // abs(delta)))
    return math.ceil(float(abs((limit - start) / delta)))


@range_op.infer
def _(node: Node) -> Shapes:
    start, limit, delta = (node.constant(i) for i in (0, 1, 2))
    if start is None or limit is None or delta is None:
        return (None,)
    return (_count(start.item(), limit.item(), delta.item()),)


@range_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(0).torch
    wide = torch.int64 if node.dtype(0).is_integer else torch.float64
    on_host = env.device.type == "cpu"

    def sequence(start: Any, limit: Any, delta: Any) -> Any:
        first, step = start.item(), delta.item()
        count = _count(first, limit.item(), step)
        is_large = on_host and count >= machine.current().profile.native_framed
        if is_large and (code := stepped_numbers(dtype)) is not None:
            return code(first, step, count)
        if dtype in (torch.int32, torch.int64):
            return torch.arange(first, first + count * step, step, dtype=dtype, device=env.device)
        return (torch.arange(count, dtype=wide, device=env.device) * step + first).to(dtype)

    return sequence


lin_space_op = op(
    "LinSpace",
    "start: T[], stop: T[], num: Tidx[] -> output: T",
    "Tidx: type in [int32, int64] = int32",
    T=(dtypes.bfloat16, dtypes.half, dtypes.float32, dtypes.float64),
    host=["start", "stop", "num"],
)
lin_space_op.not_differentiable()


@lin_space_op.infer
def _(node: Node) -> Shapes:
    num = node.constant(2)
    if num is not None and int(num) <= 0:
        raise ValueError(f"Requires num > 0: {int(num)}")
    return (None if num is None else int(num),)


@lin_space_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, on_host = node.dtype(0).torch, env.device.type == "cpu"

    def sequence(start: Any, stop: Any, num: Any) -> Any:
        count = num.item()
        if count <= 0:
            raise invalid(f"Requires num > 0: {count}")
        is_large = on_host and machine.current().profile.native_framed <= count < 1 << 31
        if is_large and (code := spaced_numbers(dtype)) is not None:
            return code(start.item(), stop.item(), count)
        return torch.linspace(start.item(), stop.item(), count, dtype=dtype, device=env.device)

    return sequence


# ---- public functions


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape `dims` (int32 or int64, [rank]) with every element equal to the scalar `value`."""
    return fill_op(dims, value, name=name)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Zeros (False, empty strings). `shape`: integers, a TensorShape or an integer tensor, [rank]."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    zero = False if dtype is dtypes.bool else "" if dtype is dtypes.string else 0
    return _filled(shape, zero, dtype, name or "zeros")


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones (True). `shape`: integers, a TensorShape or an integer tensor, [rank]."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    return _filled(shape, True if dtype is dtypes.bool else 1, dtype, name or "ones")


def _filled(shape: Any, value: Any, dtype: dtypes.DType, name: str) -> Tensor:
    with get_default_graph().name_scope(name) as scope:
        if not isinstance(shape, Tensor):
            sizes = _plain_sizes(shape)
            if sizes is not None and product(sizes) < _SMALL:
                return constant(value, dtype, sizes, name=scope)
            _ask_whether_small(shape)
            try:
                shape = convert_to_tensor(as_shape(shape), dtypes.int32)
            except (TypeError, ValueError):
                shape = convert_to_tensor(shape, dtypes.int32)
        if not shape.dims:  # also of unknown rank: a number may come
            shape = F.Reshape(shape, [-1])
        return fill_op(shape, constant(value, dtype), name=scope)


def _ask_whether_small(sizes: Any) -> None:
    """Adds a question that nobody reads, as TensorFlow does where tensors are among the sizes."""
    if not isinstance(sizes, (list, tuple)) or not any(isinstance(size, Tensor) for size in sizes):
        return
    with contextlib.suppress(TypeError, ValueError):
        F.Less(functools.reduce(operator.mul, sizes), _SMALL)


def _plain_sizes(shape: Any) -> list[int] | None:
    """The sizes of a shape given as a sequence of plain integers; None for any other form."""
    if isinstance(shape, TensorShape):
        dims = shape.dims_tuple
        return None if dims is None or None in dims else list(dims)  # type: ignore[arg-type]
    if not isinstance(shape, (list, tuple, np.ndarray)):
        return None
    try:
        sizes = [int(n.__index__()) for n in shape]
    except (AttributeError, TypeError):
        return None
    return sizes if all(n >= 0 for n in sizes) else None


@dispatched("unary")
def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Zeros of the shape and (unless `dtype`) type of `tensor`; a constant if the shape is known."""
    with get_default_graph().name_scope(name or "zeros_like") as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype).base_dtype
        has_zeros = wanted.torch is not None or wanted is dtypes.string
        if optimize and has_zeros and tensor.shape.is_fully_defined():
            return zeros(tensor.shape, wanted, name=scope)
        if wanted is not tensor.dtype.base_dtype:
            return zeros(F.Shape(tensor, name="Shape"), wanted, name=scope)
        return zeros_like_op(tensor, name=scope)


@dispatched("unary")
def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Ones of the shape and, unless `dtype` is given, the type of `tensor`."""
    graph = get_default_graph()
    with graph.name_scope(name or "ones_like") as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype).base_dtype
        if optimize and tensor.shape.is_fully_defined():
            shape = convert_to_tensor(tensor.shape, dtypes.int32, "Shape")
        else:
            shape = F.Shape(tensor, name="Shape")
        return ones(shape, wanted, name=scope)


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """The numbers from `start` (0 if only one is given) to below `limit` in steps of `delta`: a vector.

    The type is `dtype`, else the widest of the arguments'. InvalidArgumentError in the step if it never ends.
    """
    if limit is None:
        start, limit = 0, start
    with get_default_graph().name_scope(name or "range") as scope:
        values = [
            value if isinstance(value, Tensor) else convert_to_tensor(value, dtype, part)
            for value, part in ((start, "start"), (limit, "limit"), (delta, "delta"))
        ]
        order = [dtypes.int32, dtypes.int64, dtypes.half, dtypes.bfloat16, dtypes.float32, dtypes.float64]
        if dtype is None:
            known = [value.dtype.base_dtype for value in values]
            wanted = max(known, key=order.index) if all(t in order for t in known) else known[0]
        else:
            wanted = dtypes.as_dtype(dtype)
        values = [v if v.dtype.base_dtype is wanted else F.Cast(v, DstT=wanted, name="Cast") for v in values]
        return range_op(*values, name=scope)


def lin_space(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """`num` evenly spaced floating numbers from `start` to `stop`, both included: a vector."""
    return lin_space_op(start, stop, num, name=name)


linspace = lin_space


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Identity matrices, [*batch_shape, num_rows, num_columns]; square if `num_columns` is None."""
    with get_default_graph().name_scope(name or "eye"):
        is_square = num_columns is None or (isinstance(num_rows, int) and num_rows == num_columns)
        columns = num_rows if num_columns is None else num_columns
        batch = [] if batch_shape is None else batch_shape
        static = all(isinstance(n, int) for n in (num_rows, columns)) and _plain_sizes(batch) is not None
        if static:
            sizes = _plain_sizes(batch) or []
            diagonal = ones([*sizes, min(num_rows, columns)], dtype)
            whole: Any = [*sizes, num_rows, columns]
        else:
            smaller = F.Minimum(num_rows, columns)
            outer = convert_to_tensor(batch, dtypes.int32, "shape")
            diagonal = ones(F.ConcatV2([outer, [smaller]], 0, name="concat"), dtype)
            whole = None if is_square else F.ConcatV2([outer, [num_rows, columns]], 0, name="concat")
        if is_square:
            result = F.MatrixDiag(diagonal, name="diag")
        else:
            result = F.MatrixSetDiag(zeros(whole, dtype), diagonal, name="set_diag")
        if not static and outer.static_shape is not None:
            known: Any = _plain_sizes(batch) or [None] * outer.static_shape[0]
            result.set_shape((*known, *[n if isinstance(n, int) else None for n in (num_rows, columns)]))
        return result
