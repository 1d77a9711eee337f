"""Biases, dropout and other small parts of neural nets, with the losses that are no cross entropy.

Public names here belong to ``tf.nn``. Activations are in `activations`, softmax and the cross entropies in
`softmax`.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node, static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge, num_elements
from flowstone.ops.arrays.constants import ones_like, zeros_like
from flowstone.ops.arrays.shapes import size as array_size
from flowstone.ops.control.conditionals import cond
from flowstone.ops.networks.windows import is_channels_last
from flowstone.ops.numbers.reductions import reduce_sum
from flowstone.ops.numbers.unsigned_integers import modular, needs_help
from flowstone.ops.randomness.random import random_uniform
from flowstone.ops.variables.optimizer_steps import in_memory_order

__all__ = [
    "bias_add",
    "dropout",
    "l2_loss",
    "l2_normalize",
    "log_poisson_loss",
    "relu_layer",
    "xw_plus_b",
    "zero_fraction",
]

NUMBERS = (*dtypes.NUMBERS, dtypes.bfloat16)
REAL = (*dtypes.REAL, dtypes.bfloat16)
FLOATS = (*dtypes.FLOATS, dtypes.bfloat16)
_LAYOUT = "data_format: string in ['NHWC', 'NCHW'] = 'NHWC'"

# ---- biases


def _channel_axis(node: Node) -> int:
    return -1 if node.attributes.get("data_format", "NHWC") == "NHWC" else 1


def _dims_with_channels(node: Node) -> Dims:
    """The shape of the first input. ValueError for one without channels."""
    dims, least = node.dims(0), 2 if _channel_axis(node) == -1 else 3
    if dims is not None and len(dims) < least:
        raise ValueError(f"Shape must be at least rank {least} but is rank {len(dims)}")
    return dims


def _infer_bias_add(node: Node) -> Shapes:
    value, bias = _dims_with_channels(node), node.dims(1)
    if bias is not None and len(bias) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(bias)}")
    if value is None or bias is None:
        return value
    axis = _channel_axis(node) % len(value)
    return (*value[:axis], *(merge(value[axis : axis + 1], bias) or ()), *value[axis + 1 :])


def _bias_add_kernel(node: Node, env: Environment) -> Kernel:
    axis, dims, dtype = _channel_axis(node), node.dims(0), node.dtype(0)
    known = dims is not None and dims[-1] is not None and node.dims(1) == dims[-1:]
    if axis == -1 and known and not needs_help(dtype):
        return Call(torch.add, X0, X1).or_in_place(0, torch.Tensor.add_, X0, X1)

    def add(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        if x.dim() < 2 or bias.dim() != 1 or bias.shape[0] != x.shape[axis]:
            raise errors.InvalidArgumentError(
                None,
                None,
                "Must provide as many biases as the last dimension of the input tensor: "
                f"{list(bias.shape)} vs. {list(x.shape)}",
            )
        return x + (bias if axis == -1 else bias.view(-1, *(1,) * (x.dim() - 2)))

    return modular(dtype, add)


bias_add_op = op("BiasAdd", "value: T, bias: T -> output: T", _LAYOUT, T=NUMBERS, by_element=True)
bias_add_v1 = op("BiasAddV1", "value: T, bias: T -> output: T", T=NUMBERS)
bias_add_grad = op("BiasAddGrad", "out_backprop: T -> output: T", _LAYOUT, T=NUMBERS, by_element=True)
for _declaration in (bias_add_op, bias_add_v1):
    _declaration.infer(_infer_bias_add)
    _declaration.kernel(CPU, GPU)(_bias_add_kernel)


@bias_add_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return dy, F.BiasAddGrad(dy, data_format=op.attributes["data_format"])


@bias_add_v1.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    last = F.Sub(F.Rank(dy), 1, name="sub")
    return dy, F.Sum(dy, F.Range(0, last, 1, name="range"))


@bias_add_grad.infer
def _(node: Node) -> Shapes:
    dims = _dims_with_channels(node)
    return (None,) if dims is None else (dims[_channel_axis(node)],)


def _suits_blas(rows: int, columns: int) -> bool:
    """Whether BLAS adds up columns three times as fast as ATen's sum: many rows, few and uneven columns."""
    return rows >= 4096 and columns is not None and columns <= 32 and columns % 16 != 0


def _column_sums(x: torch.Tensor, ones: torch.Tensor, columns: int) -> torch.Tensor:
    return torch.mv(x.reshape(-1, columns).t(), ones)


@bias_add_grad.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    axis, dims = _channel_axis(node), node.dims(0)
    if dims is not None and len(dims) > 1 and (node.dtype(0).is_floating or node.dtype(0).is_complex):
        rows = num_elements(dims[:-1])
        by_blas = env.device.type == "cpu" and node.dtype(0) is dtypes.float32
        if (
            by_blas
            and axis % len(dims) == len(dims) - 1
            and rows
            and dims[-1]
            and _suits_blas(rows, dims[-1])
        ):
            return Call(_column_sums, X0, torch.ones(rows), dims[-1])
        return Call(torch.sum, X0, [i for i in range(len(dims)) if i != axis % len(dims)])
    return lambda dy: dy.movedim(axis, 0).flatten(1).sum(1).to(dy.dtype)


@bias_add_grad.gradient
def _(op: Operation, d_bias: Tensor) -> Gradients:
    """The received vector along the channels, repeated to the shape of what was summed."""
    x = op.inputs[0]
    axis = -1 if op.attributes["data_format"] == "NHWC" else 1
    if axis == 1:
        rest = F.Sub(F.Rank(x), 2, name="sub")
        ones = F.Fill(F.ExpandDims(rest, 0), 1, name="ones")
        d_bias = F.Reshape(d_bias, F.ConcatV2([[-1], ones], 0, name="concat"))
    return (F.BroadcastTo(d_bias, F.Shape(x)),)


# ---- half the sum of squares

l2_loss_op = op("L2Loss", "t: T -> output: T", T=FLOATS)
l2_loss_op.infer(lambda node: ())
l2_loss_op.gradient(lambda op, dy: (F.Mul(op.inputs[0], dy, name="mul"),))


@l2_loss_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return _half_squares_wide if node.dtype(0) in (dtypes.float16, dtypes.bfloat16) else _half_squares


def _half_squares(x: torch.Tensor) -> torch.Tensor:
    flat = (in_memory_order((x,)) or (x,))[0].reshape(-1)  # filters are not in their shape's order
    return torch.dot(flat, flat).div_(2)


def _half_squares_wide(x: torch.Tensor) -> torch.Tensor:
    flat = x.reshape(-1).float()
    return torch.dot(flat, flat).div_(2).to(x.dtype)


# ---- public functions


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """`value` plus the vector `bias` along its channels:

    the last dimension, or the second for "NC..." layouts.

    ValueError for other layouts or sizes that contradict; InvalidArgumentError where only the step can tell.
    """
    if data_format is not None:
        if not data_format.startswith("N"):
            raise ValueError(f"`data_format` must be of the form `N...C` or `NC...`. Received: {data_format}")
        data_format = "NCHW" if not is_channels_last(data_format) and data_format.startswith("NC") else "NHWC"
    with get_default_graph().name_scope(name or "BiasAdd") as scope:
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, value.dtype.base_dtype, name="bias")
        return bias_add_op(value, bias, data_format=data_format, name=scope)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """matmul(x, weights) + biases: [batch, in] × [in, out] + [out]."""
    with get_default_graph().name_scope(name or "xw_plus_b") as scope:
        return bias_add(F.MatMul(x, weights), convert_to_tensor(biases, name="biases"), name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """relu(matmul(x, weights) + biases): [batch, in] × [in, out] + [out]."""
    with get_default_graph().name_scope(name or "relu_layer") as scope:
        return F.Relu(bias_add(F.MatMul(x, weights), convert_to_tensor(biases, name="biases")), name=scope)


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """sum(t ** 2) / 2, a scalar; floating types."""
    return l2_loss_op(t, name=name)


def l2_normalize(
    x: Any, dim: Any = None, epsilon: float = 1e-12, name: str | None = None, axis: Any = None
) -> Tensor:
    """x / sqrt(max(sum(x ** 2), epsilon)) along `dim`, one or a list of them (`axis` is its later name)."""
    axis = dim if axis is None else axis
    with get_default_graph().name_scope(name or "l2_normalize") as scope:
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_complex:
            inverse = _inverse_norm(F.Square(x), axis, epsilon)
            return F.Mul(x, inverse, name=scope)
        part = x.dtype.real_dtype.base_dtype
        squares = F.AddV2(F.Square(F.Real(x, Tout=part)), F.Square(F.Imag(x, Tout=part)), name="add")
        inverse = _inverse_norm(squares, axis, epsilon)
        real, imaginary = F.Mul(F.Real(x, Tout=part), inverse), F.Mul(F.Imag(x, Tout=part), inverse)
        return F.Complex(real, imaginary, Tout=x.dtype, name=scope)


def _inverse_norm(squares: Tensor, axis: int, epsilon: float) -> Tensor:
    if axis is None:
        axis = (
            list(range(squares.shape.ndims))
            if squares.shape.ndims is not None
            else F.Range(0, F.Rank(squares), 1)
        )
    return F.Rsqrt(F.Maximum(F.Sum(squares, axis, keep_dims=True), epsilon))


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The fraction of zeros in `value`, a float32 scalar; NaN for an empty tensor."""
    with get_default_graph().name_scope(name or "zero_fraction"):
        value = convert_to_tensor(value, name="value")
        size = array_size(value, out_type=dtypes.int64)
        count = cond(
            F.LessEqual(size, dtypes.int32.max),
            lambda: F.Cast(_count_nonzero(value, dtypes.int32), DstT=dtypes.int64),
            lambda: _count_nonzero(value, dtypes.int64),
        )
        with get_default_graph().name_scope("counts_to_fraction"):
            zeros = F.Cast(F.Sub(size, count, name="sub"), DstT=dtypes.float32)
            fraction = F.RealDiv(zeros, F.Cast(size, DstT=dtypes.float32), name="truediv")
        fraction.set_shape(())
        return F.Identity(fraction, name="fraction")


def _count_nonzero(value: Tensor, dtype: dtypes.DType) -> Tensor:
    with get_default_graph().name_scope("count_nonzero"):
        zero = convert_to_tensor(np.zeros((), value.dtype.as_numpy_dtype), name="zeros")
        others = F.Cast(F.NotEqual(value, zero), DstT=dtype)
        return reduce_sum(others, name="nonzero_count")


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """exp(c) - z * c of predicted log rates `log_input` c and counts `targets` z, element-wise.

    `compute_full_loss` adds Stirling's z * log(z) - z + log(2 * pi * z) / 2 where z > 1. ValueError if shapes
    differ.
    """
    with get_default_graph().name_scope(name or "log_poisson_loss"):
        log_input = convert_to_tensor(log_input, name="log_input")
        kind = None if isinstance(targets, Tensor) else log_input.dtype.base_dtype
        targets = convert_to_tensor(targets, kind, name="targets")
        if not targets.shape.is_compatible_with(log_input.shape):
            raise ValueError(
                f"`log_input` and `targets` must have the same shape, received "
                f"({log_input.shape} vs {targets.shape})."
            )
        result = F.Sub(F.Exp(log_input), F.Mul(log_input, targets, name="mul"), name="sub")
        return F.AddV2(result, _stirling(targets), name="add") if compute_full_loss else result


def _stirling(z: Tensor) -> Tensor:
    dtype = z.dtype.base_dtype
    half, two_pi = convert_to_tensor(0.5, dtype), convert_to_tensor(2 * np.pi, dtype)
    linear = F.Sub(F.Mul(z, F.Log(z), name="mul"), z, name="sub")
    approximation = F.AddV2(linear, F.Mul(half, F.Log(F.Mul(two_pi, z, name="mul")), name="mul"), name="add")
    zeros, ones = zeros_like(z), ones_like(z)
    is_small = F.LogicalAnd(F.GreaterEqual(z, zeros), F.LessEqual(z, ones))
    return F.Select(is_small, zeros, approximation)


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """x with elements set to 0 with probability `rate` (1 - `keep_prob`), the others divided by 1 - rate.

    What is dropped is multiplied by 0: of infinity and NaN NaN stays, and zeros have their elements' signs.
    `noise_shape` broadcasts to x's: elements that share an entry are dropped together. `rate` may be a scalar
    tensor. ValueError for a rate outside [0, 1), both or none of rate and keep_prob, or an x that is not
    floating.
    """
    if keep_prob is not None:
        if rate is not None:
            raise ValueError("Cannot specify both 'keep_prob' and 'rate'")
        try:
            rate = 1 - keep_prob
        except TypeError:
            raise ValueError(f"keep_prob must be a number or a Tensor, not {keep_prob!r}") from None
    if rate is None:
        raise ValueError("You must provide a rate to dropout.")
    with get_default_graph().name_scope(name or "dropout"):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError(
                f"x has to be a floating point tensor since it's going to be scaled. "
                f"Got a {x.dtype} tensor instead."
            )
        if isinstance(rate, numbers.Real):
            if not 0 <= float(rate) < 1:
                raise ValueError(
                    f"rate must be a scalar tensor or a float in the range [0, 1), got {float(rate):g}"
                )
            if rate == 0:
                return x  # type: ignore[no-any-return]
        return _dropped(x, rate, noise_shape, seed)


def _dropped(x: Tensor, rate: Any, noise_shape: Any, seed: int | None) -> Tensor:
    dtype = x.dtype.base_dtype
    rate = convert_to_tensor(rate, dtype, name="rate")
    rate.shape.assert_is_compatible_with(())
    if rate.op.is_constant and static_value(rate) == 0:
        return x
    noise = random_uniform(_noise_shape(x, noise_shape), seed=seed, dtype=dtype)
    share = F.Sub(convert_to_tensor(1.0, dtype, "sub/x"), rate, name="sub")
    scale = F.RealDiv(convert_to_tensor(1.0, dtype, "truediv/x"), share, name="truediv")
    is_kept = F.GreaterEqual(noise, rate)
    result: Tensor = F.Mul(F.Mul(x, scale, name="mul"), F.Cast(is_kept, DstT=dtype), name="mul")
    result.set_shape(x.shape)
    return result


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    if noise_shape is None:
        dims = x.dims
        return (
            F.Shape(x)
            if dims is None or None in dims
            else convert_to_tensor(list(dims), dtypes.int32, "Shape")
        )
    if isinstance(noise_shape, Tensor) or x.shape.ndims is None:
        return noise_shape
    wanted = [getattr(n, "value", n) for n in noise_shape]
    if len(wanted) == x.shape.ndims:
        return [known if n is None else n for n, known in zip(wanted, x.shape.as_list())]
    return noise_shape
