"""Operations that hand their input on: identity, gradient barriers, checks.

>>> __all__[:2]
['check_numerics', 'ensure_shape']
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import as_shape, format_dims, is_compatible, merge
from flowstone.ops.arrays.arrays import invalid

__all__ = [
    "check_numerics",
    "ensure_shape",
    "guarantee_const",
    "identity",
    "identity_n",
    "stop_gradient",
    "verify_tensor_all_finite",
]


def _same(x: Any) -> Any:
    return x


def _identity(name: str, signature: str, attributes: str = "", **traits: Any) -> OpDeclaration:
    declaration = op(name, signature, attributes, aliases=[0], **traits)
    declaration.infer(lambda node: node.dims(0))
    declaration.kernel(CPU, GPU)(lambda node, env: _same)
    return declaration


def _pass_on(op: Operation, dy: Tensor) -> Gradients:
    return (dy,)


identity_op = _identity("Identity", "input: T -> output: T", T=None, free=True, moves=True, role="identity")
identity_op.gradient(_pass_on)
identity_op.fold(lambda node: node.inputs[0])
identity_op.value(0)(lambda node: node.inputs[0]._static_value)

stop_gradient_op = _identity(
    "StopGradient", "input: T -> output: T", T=None, free=True, role="gradient_barrier"
)
stop_gradient_op.not_differentiable()
stop_gradient_op.fold(lambda node: node.inputs[0])
stop_gradient_op.value(0)(lambda node: node.inputs[0]._static_value)

prevent_gradient_op = _identity(
    "PreventGradient",
    "input: T -> output: T",
    "message: string = ''",
    T=None,
    free=True,
    role="gradient_barrier",
)
prevent_gradient_op.fold(lambda node: node.inputs[0])


@prevent_gradient_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """TensorFlow's nodes have a barrier where it knows no second derivative, but here is one."""
    if op.inputs[0].op.type == "SparseSoftmaxCrossEntropyWithLogits":
        return (dy,)
    raise LookupError(f"Gradient explicitly disabled. Reason: {op.attributes['message']}")


value_op = _identity("_Value", "ref: T -> value: T", T=None, snapshot=True)  # of a reference, as it is now
value_op.not_differentiable()

snapshot_op = _identity("Snapshot", "input: T -> output: T", T=None, free=True)
snapshot_op.no_gradient()
snapshot_op.fold(lambda node: node.inputs[0])

guarantee_const_op = _identity("GuaranteeConst", "input: T -> output: T", T=None, stateful=True)
guarantee_const_op.no_gradient()

debug_gradient_identity_op = _identity("DebugGradientIdentity", "input: T -> output: T", T=None)
debug_gradient_identity_op.gradient(_pass_on)

placeholder_with_default_op = _identity(
    "PlaceholderWithDefault",
    "input: dtype -> output: dtype",
    "shape: shape",
    dtype=None,
    free=True,
    role="placeholder",
)
placeholder_with_default_op.gradient(_pass_on)
placeholder_with_default_op.value()(lambda node: None)  # it may be fed


@placeholder_with_default_op.infer
def _(node: Node) -> Shapes:
    merge(node.dims(0), node.attributes["shape"])
    return node.attributes["shape"]  # type: ignore[no-any-return]


identity_n_op = op("IdentityN", "input: *T -> output: *T", aliases=[0])
identity_n_op.infer(lambda node: [node.dims(i) for i in range(len(node.inputs))])
identity_n_op.gradient(lambda op, *dys: dys)
identity_n_op.fold(lambda node: list(node.inputs))


@identity_n_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return lambda *inputs: inputs


deep_copy_op = op("DeepCopy", "x: T -> y: T", T=None, stateful=True)
deep_copy_op.infer(lambda node: node.dims(0))
deep_copy_op.no_gradient()


@deep_copy_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return torch.clone if node.dtype(0).torch is not None else lambda x: x.copy()


ensure_shape_op = op("EnsureShape", "input: T -> output: T", "shape: shape", T=None, aliases=[0])
ensure_shape_op.infer(lambda node: merge(node.attributes["shape"], node.dims(0)))
ensure_shape_op.gradient(_pass_on)


@ensure_shape_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    wanted = node.attributes["shape"]

    def check(x: Any) -> Any:
        if not is_compatible(tuple(x.shape), wanted):
            raise invalid(
                f"Shape of tensor {node.inputs[0].name} {format_dims(tuple(x.shape))} is not "
                f"compatible with expected "
                f"shape {format_dims(wanted)}."
            )
        return x

    return check


def _is_finite(x: torch.Tensor) -> bool:
    """Whether all elements are finite. If their sum is, they are, which takes one pass."""
    if x.device.type != "cpu":
        return bool(torch.isfinite(x).all())
    total = x.sum(dtype=torch.float64 if x.dtype is torch.float64 else torch.float32)
    return math.isfinite(float(total)) or bool(torch.isfinite(x).all())


check_numerics_op = op(
    "CheckNumerics",
    "tensor: T -> output: T",
    "message: string",
    T=(dtypes.bfloat16, dtypes.half, dtypes.float32, dtypes.float64),
    aliases=[0],
    stateful=True,  # so that it runs wherever something waits for it
)
check_numerics_op.infer(lambda node: node.dims(0))


@check_numerics_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    message = node.attributes["message"]

    def check(x: Any) -> Any:
        if not _is_finite(x):
            found = ["Inf"] * bool(torch.isinf(x).any()) + ["NaN"] * bool(torch.isnan(x).any())
            raise invalid(f"{message} : Tensor had {' and '.join(found)} values")
        return x

    return check


@check_numerics_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    message = "Not a number (NaN) or infinity (Inf) values detected in gradient."
    return (F.CheckNumerics(dy, message=message),)


check_numerics_v2_op = op(
    "CheckNumericsV2",
    "tensor: T -> output: T",
    "message: string",
    T=(dtypes.bfloat16, dtypes.half, dtypes.float32, dtypes.float64),
    aliases=[0],
    stateful=True,
)
check_numerics_v2_op.infer(lambda node: node.dims(0))


@check_numerics_v2_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    message = node.attributes["message"]

    def check(x: Any) -> Any:
        if not _is_finite(x):
            infinite, low = torch.isinf(x), x < 0
            found = ["-Inf"] * bool((infinite & low).any()) + ["+Inf"] * bool((infinite & ~low).any())
            found += ["NaN"] * bool(torch.isnan(x).any())
            listed = ", ".join(found[:-1]) + "," * (len(found) > 2) + " and " * (len(found) > 1) + found[-1]
            raise invalid(f"{message} : Tensor had {listed} values")
        return x

    return check


@check_numerics_v2_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    message = "Not a number (NaN) or infinity (Inf) values detected in gradient."
    return (F.CheckNumericsV2(dy, message=f"{message} {op.attributes['message']}"),)


# ---- public functions


@overload
def identity(input: Tensor, name: str | None = None) -> Tensor: ...
@overload
def identity(input: Any, name: str | None = None) -> Any: ...
@dispatched("unary")
def identity(input: Any, name: str | None = None) -> Any:
    """A tensor with the same value; under `control_dependencies` it is taken after them."""
    if isinstance(input, SparseTensor):
        return SparseTensor(input.indices, identity(input.values, name), input.dense_shape)
    return identity_op(input, name=name)


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """Tensors with the values of a list of tensors, all available at the same time."""
    return identity_n_op.several(input, name=name)  # type: ignore[no-any-return]


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The same value, through which no gradient flows."""
    return stop_gradient_op(input, name=name)


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """The same value, promised never to change."""
    return guarantee_const_op(input, name=name)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """`x`, of which the step checks that its shape fits `shape` (unknown sizes fit any).

    Raises ValueError if the static shapes contradict; a step InvalidArgumentError.
    """
    return ensure_shape_op(x, shape=as_shape(shape).dims_tuple, name=name)


@dispatched("unary")
def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """`tensor` (floating); a step raises InvalidArgumentError with `message` if one is NaN or infinite."""
    return check_numerics_op(tensor, message=message, name=name)


def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Tensor:
    """`t` after the check that all its elements are finite; `msg` is the error's text."""
    value, text = (t if x is None else x), (msg if message is None else message)
    with get_default_graph().name_scope(name or "VerifyFinite"):
        value = convert_to_tensor(value, name="t")
        graph = value.graph
        with graph.colocate_with(value):
            checked = check_numerics(value, message=text or "")
        with graph.control_dependencies([checked]):
            return identity_op(value, name="control_dependency")
