"""Activation functions, element by element, and the operations of their gradients.

A gradient op takes the incoming gradient and what TensorFlow keeps of the forward pass: the activation's
output where that suffices (Relu, Relu6, Elu, Selu), else its input. A NaN feature passes the gradient of Relu
and Relu6 through, where TensorFlow gives 0: the activation itself is NaN there.

Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import (
    F,
    GradientFunction,
    Gradients,
    OpDeclaration,
    Shapes,
    op,
)
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import merge

__all__ = ["crelu", "elu", "leaky_relu", "relu", "relu6", "selu", "softplus", "softsign", "swish"]

REAL = (*dtypes.REAL, dtypes.bfloat16)
FLOATS = (*dtypes.FLOATS, dtypes.bfloat16)
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
_UNSIGNED = frozenset({dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64})


def _same_shape(node: Node) -> Shapes:
    return node.dims(0)


def _merged_shape(node: Node) -> Shapes:
    return merge(node.dims(0), node.dims(1))


def _checked(function: Call) -> Callable[..., Any]:
    """`function`, refusing the shapes that would broadcast."""

    def apply(dy: torch.Tensor, x: torch.Tensor, *rest: Any) -> torch.Tensor:
        if dy.shape != x.shape:
            raise ValueError(f"Inputs must have the same shape: {list(dy.shape)} vs. {list(x.shape)}")
        return function(dy, x, *rest)  # type: ignore[no-any-return]

    return apply


def _has_equal_shapes(node: Node) -> bool:
    return node.static_shape(0) is not None and node.static_shape(0) == node.static_shape(1)


def activation(
    name: str, types: tuple[DType, ...], make: Callable[..., Any], attributes: str = "", **traits: Any
) -> OpDeclaration:
    """Declares an activation; `make(node)` gives its kernel."""
    declaration = op(
        name,
        "features: T -> activations: T",
        attributes,
        T=types,
        by_element=True,
        elementwise=True,
        **traits,
    )
    declaration.infer(_same_shape)
    declaration.kernel(CPU, GPU)(lambda node, env: make(node))
    return declaration


def activation_gradient(
    name: str,
    types: tuple[DType, ...],
    make: Callable[..., Any],
    second: str = "features",
    attributes: str = "",
    **traits: Any,
) -> OpDeclaration:
    """Declares the op of an activation's gradient; `make(node)` gives its `Call` on equal shapes."""
    declaration = op(
        name,
        f"gradients: T, {second}: T -> backprops: T",
        attributes,
        T=types,
        by_element=True,
        elementwise=True,
        **traits,
    )
    declaration.infer(_merged_shape)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        call = make(node)
        return call if _has_equal_shapes(node) else _checked(call)

    return declaration


# ---- Relu and its bounded and leaky kin


def _relu_kernel(node: Node) -> Call:
    if node.dtype(0) in _UNSIGNED:
        return Call(torch.clone, X0)
    return Call(torch.relu, X0).or_in_place(0, torch.relu_, X0)


def _relu6_kernel(node: Node) -> Kernel:
    if node.dtype(0) in (dtypes.uint16, dtypes.uint32, dtypes.uint64):
        return _relu6_unsigned
    return Call(torch.clamp, X0, 0, 6).or_in_place(0, torch.clamp_, X0, 0, 6)


def _relu6_unsigned(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float64).clamp_(0, 6).to(x.dtype)


_leaky_relu_backward = torch.ops.aten.leaky_relu_backward
_hardtanh_backward = torch.ops.aten.hardtanh_backward.default


def _relu_grad_kernel(node: Node) -> Call:
    """As TensorFlow, the gradient times 1 or 0: of NaN features 0, of infinity times 0 NaN."""
    if not node.dtype(0).is_floating:
        return Call(_pass_where_positive, X0, X1)
    call = Call(_leaky_relu_backward.default, X0, X1, 0, False)
    return call.or_in_place(0, _leaky_relu_backward.grad_input, X0, X1, 0, False, grad_input=X0)


def _pass_where_positive(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    is_wide_unsigned = x.dtype in (torch.uint16, torch.uint32, torch.uint64)
    return torch.where(x != 0 if is_wide_unsigned else x > 0, dy, 0).to(dy.dtype)


def _relu6_grad_kernel(node: Node) -> Call:
    if not node.dtype(0).is_floating:
        return Call(_pass_inside_six, X0, X1)
    return Call(_times_inside_six, X0, X1)


def _times_inside_six(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    inside = _hardtanh_backward(x, x, 0, 6)  # x or, outside, zero
    result: torch.Tensor = _leaky_relu_backward.grad_input(dy, inside, 0, False, grad_input=inside)
    return result


def _pass_inside_six(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    wide = x.to(torch.float64)
    return torch.where((wide > 0) & (wide < 6), dy, 0).to(dy.dtype)


relu_op = activation("Relu", REAL, _relu_kernel)
relu_grad = activation_gradient("ReluGrad", REAL, _relu_grad_kernel, takes_result=1)
relu_op.gradient(lambda op, dy: (F.ReluGrad(dy, op.outputs[0]),))
relu_grad.gradient(
    lambda op, dy: (F.ReluGrad(dy, op.inputs[1]), F.ZerosLike(op.inputs[1], name="zeros_like"))
)

relu6_op = activation("Relu6", REAL, _relu6_kernel)
relu6_grad = activation_gradient("Relu6Grad", REAL, _relu6_grad_kernel, takes_result=1)
relu6_op.gradient(lambda op, dy: (F.Relu6Grad(dy, op.outputs[0]),))
relu6_grad.gradient(
    lambda op, dy: (F.Relu6Grad(dy, op.inputs[1]), F.ZerosLike(op.inputs[1], name="zeros_like"))
)


def _single(value: float) -> float:
    """A float attribute as the single precision that it has on the wire."""
    return float(np.float32(value))


def _leaky_relu_kernel(node: Node) -> Call:
    alpha = _single(node.attributes["alpha"])
    leaky = torch._C._nn.leaky_relu
    return Call(leaky, X0, alpha).or_in_place(0, torch._C._nn.leaky_relu_, X0, alpha)


def _leaky_relu_grad_kernel(node: Node) -> Call:
    return Call(_leaky_relu_backward.default, X0, X1, _single(node.attributes["alpha"]), False)


leaky_relu_op = op(
    "LeakyRelu",
    "features: T -> activations: T",
    "alpha: float = 0.2 ; T: type in [half, bfloat16, float, double] = float",
    by_element=True,
    elementwise=True,
)
leaky_relu_op.infer(_same_shape)
leaky_relu_op.kernel(CPU, GPU)(lambda node, env: _leaky_relu_kernel(node))
leaky_relu_grad = op(
    "LeakyReluGrad",
    "gradients: T, features: T -> backprops: T",
    "alpha: float = 0.2 ; T: type in [half, bfloat16, float, double] = float",
    by_element=True,
    elementwise=True,
)
leaky_relu_grad.infer(_merged_shape)


@leaky_relu_grad.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    call = _leaky_relu_grad_kernel(node)
    return call if _has_equal_shapes(node) else _checked(call)


leaky_relu_op.gradient(lambda op, dy: (F.LeakyReluGrad(dy, op.inputs[0], alpha=op.attributes["alpha"]),))


@leaky_relu_grad.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    x = op.inputs[1]
    return F.LeakyReluGrad(dy, x, alpha=op.attributes["alpha"]), F.ZerosLike(x, name="zeros_like")


# ---- exponential and soft activations

_elu_backward = torch.ops.aten.elu_backward.default


def _elu_kernel(alpha: float, scale: float) -> Callable[..., Any]:
    def make(node: Node) -> Call:
        call = Call(torch._C._nn.elu, X0, alpha, scale)
        return call.or_in_place(0, torch._C._nn.elu_, X0, alpha, scale)

    return make


def _elu_grad_kernel(node: Node) -> Call:
    """From the activation's output y: dy * (y + 1) where y < 0, else dy."""
    return Call(_elu_backward, X0, 1.0, 1.0, 1.0, True, _without_nan(X1))


def _selu_grad_kernel(node: Node) -> Call:
    """As of Elu, with its scale and alpha; at y = 0, which ATen counts as negative, that of positive ones."""
    kind = node.dtype(1).torch
    assert kind is not None
    y = Call(torch.add, X1, torch.finfo(kind).smallest_normal)  # which changes no other number's sign
    return Call(_elu_backward, X0, _SELU_ALPHA, _SELU_SCALE, 1.0, True, _without_nan(y))


def _without_nan(y: Any) -> Call:
    """ATen's vectors count NaN as negative, its single numbers and TensorFlow as positive."""
    return Call(torch.nan_to_num, y, nan=1.0, posinf=math.inf, neginf=-math.inf)


def _elu_grad_gradient(again: OpDeclaration) -> GradientFunction:
    def gradient(op: Operation, dy: Tensor) -> Gradients:
        gradients, y = op.inputs
        is_negative = F.Less(y, 0, name="Less")
        by_output = F.Select(is_negative, F.Mul(dy, gradients, name="mul"), F.ZerosLike(y), name="Select")
        return again(dy, y), by_output

    return gradient


elu_op = activation("Elu", FLOATS, _elu_kernel(1.0, 1.0), cost=8)
elu_op.gradient(lambda op, dy: (F.EluGrad(dy, op.outputs[0]),))
elu_grad = activation_gradient("EluGrad", FLOATS, _elu_grad_kernel, "outputs", takes_result=1)
elu_grad.gradient(_elu_grad_gradient(elu_grad))

selu_op = activation("Selu", FLOATS, _elu_kernel(_SELU_ALPHA, _SELU_SCALE), cost=8)
selu_op.gradient(lambda op, dy: (F.SeluGrad(dy, op.outputs[0]),))
selu_grad = activation_gradient("SeluGrad", FLOATS, _selu_grad_kernel, "outputs", takes_result=1)
selu_grad.gradient(_elu_grad_gradient(selu_grad))


def _softplus_grad(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x).mul_(dy)


def _softsign(x: torch.Tensor) -> torch.Tensor:
    divisor = torch.abs(x).add_(1)
    return torch.div(x, divisor, out=divisor)


def _softsign_grad(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return dy / torch.abs(x).add_(1).square_()


softplus_op = activation("Softplus", FLOATS, lambda node: Call(torch._C._nn.softplus, X0, 1, 40), cost=8)
softplus_op.gradient(lambda op, dy: (F.Mul(dy, F.Sigmoid(op.inputs[0]), name="mul"),))
softplus_grad = activation_gradient("SoftplusGrad", FLOATS, lambda node: Call(_softplus_grad, X0, X1))


@softplus_grad.gradient
def _(op: Operation, ddy: Tensor) -> Gradients:
    dy, x = op.inputs
    one_more = F.AddV2(F.Exp(F.Neg(x)), 2.0, name="add")
    slope = F.RealDiv(F.Mul(ddy, dy, name="mul"), F.AddV2(one_more, F.Exp(x), name="add"), name="truediv")
    return F.SoftplusGrad(ddy, x), slope


softsign_op = activation("Softsign", FLOATS, lambda node: _softsign)
softsign_op.gradient(lambda op, dy: (F.SoftsignGrad(dy, op.inputs[0]),))
softsign_grad = activation_gradient("SoftsignGrad", FLOATS, lambda node: Call(_softsign_grad, X0, X1))
softsign_grad.no_gradient()


# ---- public functions


@dispatched("unary")
def relu(features: Any, name: str | None = None) -> Tensor:
    """max(features, 0), element-wise; any real type."""
    return relu_op(features, name=name)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """min(max(features, 0), 6), element-wise; any real type."""
    return relu6_op(features, name=name or "Relu6")


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """features where positive, else alpha * features.

    Integers are computed as float32; `alpha` may be a tensor.
    """
    with get_default_graph().name_scope(name or "LeakyRelu") as scope:
        features = convert_to_tensor(features, name="features")
        if features.dtype.is_integer:
            features = F.Cast(features, DstT=dtypes.float32, name="Cast")
        if isinstance(alpha, Tensor):
            return F.Maximum(F.Mul(alpha, features, name="mul"), features, name=scope)
        return leaky_relu_op(features, alpha=float(alpha), name=scope)


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """Relu of features and of -features, concatenated along `axis`: doubles that dimension."""
    with get_default_graph().name_scope(name or "CRelu") as scope:
        features = convert_to_tensor(features, name="features")
        both = F.ConcatV2([features, F.Neg(features)], axis, name=scope)
        return relu_op(both)


def elu(features: Any, name: str | None = None) -> Tensor:
    """features where positive, else exp(features) - 1; floating types."""
    return elu_op(features, name=name)


def selu(features: Any, name: str | None = None) -> Tensor:
    """The scaled exponential linear unit, 1.0507 * (x or 1.67326 * (exp(x) - 1)); floating types."""
    return selu_op(features, name=name)


def softplus(features: Any, name: str | None = None) -> Tensor:
    """log(exp(features) + 1), element-wise; floating types."""
    return softplus_op(features, name=name)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """features / (|features| + 1), element-wise; floating types."""
    return softsign_op(features, name=name)


def swish(features: Any) -> Tensor:
    """features * sigmoid(features), element-wise; floating types."""
    features = convert_to_tensor(features, name="features")
    return F.Mul(features, F.Sigmoid(features), name="mul")
