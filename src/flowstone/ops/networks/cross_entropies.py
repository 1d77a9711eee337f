"""Cross entropies of logits with distributions, class by class or of independent classes.

``SoftmaxCrossEntropyWithLogits`` gives the loss and, from the same exponentials, the gradient with respect to
the logits; the gradient of the loss is then a product. With many classes that matrix is large, so where the
logits have no other consumer, it takes their place. Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.building import operand
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node, static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import broadcast, num_elements
from flowstone.ops.arrays.constants import range as range_of
from flowstone.ops.arrays.constants import zeros_like
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.rearranging import place_of_axis
from flowstone.ops.arrays.shapes import rank
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.networks.softmax import FLOATS, axis_of

__all__ = [
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "weighted_cross_entropy_with_logits",
]

cross_entropy_op = op(
    "SoftmaxCrossEntropyWithLogits",
    "features: T, labels: T -> loss: T, backprop: T",
    T=FLOATS,
    by_element=True,
    row_wise=True,
    cost=15,
    starts_team=True,
)


@cross_entropy_op.infer
def _(node: Node) -> Shapes:
    features, labels = (node.dims(i) for i in (0, 1))
    dims = broadcast(features, labels)
    if dims is None:  # what is 1 may become more
        dims = tuple([None if size == 1 else size for size in features or labels or (None, None)])
    if len(dims) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
    return [dims[:1], dims]


@cross_entropy_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    call = Call(_cross_entropy, X0, X1)
    if env.device.type != "cpu" or node.dims(0) is None or node.dims(0) != node.dims(1):
        return call
    return call.or_in_place(0, _cross_entropy, X0, X1, in_place=True)


def _cross_entropy(
    logits: torch.Tensor, labels: torch.Tensor, in_place: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Losses and gradient; `in_place`: the latter may be left in the logits' memory."""
    if logits.dim() != 2 or labels.dim() != 2:
        raise errors.InvalidArgumentError(
            None, None, "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional"
        )
    shape = logits.shape
    if shape != labels.shape:
        logits, labels = torch.broadcast_tensors(logits, labels)
    if logits.shape[1] <= FEW_CLASSES:
        labels = labels.t()
        log_probabilities = torch.log_softmax(logits.t(), 0)
        loss = torch.mul(labels, log_probabilities).sum(0).neg_()
        return loss, log_probabilities.exp_().sub_(labels).t()
    in_place = in_place and logits.shape == shape and logits.data_ptr() != labels.data_ptr()
    log_probabilities = torch.log_softmax(logits, 1, out=logits if in_place else None)
    loss = torch.mul(labels, log_probabilities).sum(1).neg_()
    if (
        log_probabilities.is_cpu
    ):  # the soft-max of logarithms of probabilities is their exponential, but faster
        torch.softmax(log_probabilities, 1, out=log_probabilities)
    else:
        log_probabilities.exp_()
    return loss, log_probabilities.sub_(labels)


# ATen's soft-max of [100, 10] takes 12 µs along its rows, 2 µs along the columns of its transpose. So few
# classes are computed with an example a column; results are transposed views, as the next product wants them.
FEW_CLASSES = 32


def is_zeros(tensor: Tensor) -> bool:
    """Whether a gradient is a mere filling of zeros."""
    if tensor.op.type in ("ZerosLike", "Zeros"):
        return True
    if tensor.op.type not in ("Const", "Fill"):
        return False
    value = static_value(tensor.op.inputs[1] if tensor.op.type == "Fill" else tensor)
    return value is not None and not value.any()


def times_rows(vector: Tensor, matrix: Tensor) -> Tensor:
    return F.Mul(F.ExpandDims(vector, -1), matrix, name="mul")


def second_order(dx: Tensor, d_backprop: Tensor, logits: Tensor) -> Tensor:
    """What the gradient of the second output, softmax - labels, adds."""
    softmax = F.Softmax(logits)
    inner = F.BatchMatMulV2(F.ExpandDims(d_backprop, 1), F.ExpandDims(softmax, 2), name="MatMul")
    rest = F.Mul(F.Sub(d_backprop, F.Squeeze(inner, squeeze_dims=[1]), name="sub"), softmax, name="mul")
    return F.AddV2(dx, rest, name="add")


@cross_entropy_op.gradient
def _(op: Operation, d_loss: Tensor, d_backprop: Tensor) -> Gradients:
    dx = times_rows(d_loss, op.outputs[1])
    logits = op.inputs[0]
    if not is_zeros(d_backprop):
        dx = second_order(dx, d_backprop, logits)
    return dx, times_rows(d_loss, F.Neg(F.LogSoftmax(logits)))


def require_named(
    function: str,
    sentinel: Any,
    labels: Any,
    logits: Any,
) -> None:
    if sentinel is not None:
        raise ValueError(f"Only call `{function}` with named arguments (labels=..., logits=..., ...)")
    for argument, value in (("labels", labels), ("logits", logits)):
        if value is None:
            raise ValueError(f"Argument `{argument}` must not be None.")


def _as_labels(labels: Any, logits: Tensor) -> Tensor:
    """The labels as a tensor; one that is none already gets the logits' type."""
    return (
        labels if isinstance(labels, Tensor) else convert_to_tensor(labels, logits.dtype.base_dtype, "labels")
    )


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """Cross entropy of `labels` (distributions) and softmax(`logits`), of one shape, along `axis`.

    The result lacks that axis. Gradients flow to both. float16 is computed as float32. ValueError if one is
    missing.
    """
    require_named("softmax_cross_entropy_with_logits", None, labels, logits)
    axis = axis_of(axis, dim)
    with get_default_graph().name_scope(name or "softmax_cross_entropy_with_logits") as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        narrow = logits.dtype if logits.dtype in (dtypes.float16, dtypes.bfloat16) else None
        precise = F.Cast(logits, DstT=dtypes.float32) if narrow is not None else logits
        labels = (
            labels
            if labels.dtype.base_dtype is precise.dtype.base_dtype
            else F.Cast(labels, DstT=precise.dtype)
        )
        count, place = rank(precise), place_of_axis(axis, precise)
        if place is not None:
            precise, labels = (_with_last(x, place, count) for x in (precise, labels))
        sizes = shape_of(precise)
        cost = cross_entropy_op.several(_as_rows(precise), _as_rows(labels), name=scope).loss
        cost = F.Reshape(cost, F.Slice(sizes, [0], [F.Sub(count, 1)]))
        if precise.dims is not None:
            cost.set_shape(precise.dims[:-1])
        return cost if narrow is None else F.Cast(cost, DstT=narrow)


def _with_last(x: Tensor, place: Any, count: Tensor) -> Tensor:
    """`x` with the dimension at this place as the last."""
    others = [range_of(place), range_of(place + 1, count)]
    return F.Transpose(x, concat([*others, [place]], 0), name="transpose")


def _as_rows(x: Tensor) -> Tensor:
    """A tensor as a matrix whose rows are its last dimension."""
    count, sizes = rank(x), shape_of(x)
    last = F.Slice(sizes, [F.Sub(count, 1)], [1])
    matrix = F.Reshape(x, concat([[-1], last], 0))
    if x.dims is not None:
        matrix.set_shape((num_elements(x.dims[:-1]), x.dims[-1]))
    return matrix


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """As `softmax_cross_entropy_with_logits_v2`, without a gradient with respect to the labels. Named
    arguments only."""
    require_named("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with get_default_graph().name_scope(name or "softmax_cross_entropy_with_logits_sg") as scope:
        labels = F.StopGradient(labels, name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(labels, logits, dim if axis is None else axis, scope)


def _same_static_shape(labels: Tensor, logits: Tensor, wanted: str = "labels") -> None:
    if not logits.shape.is_compatible_with(labels.shape):
        raise ValueError(
            f"`logits` and `{wanted}` must have the same shape, received ({logits.shape} vs {labels.shape})."
        )


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Cross entropy of independent probabilities `labels` and sigmoid(`logits`), element-wise,

    without overflow.

    max(x, 0) - x * z + log(1 + exp(-|x|)). Both have one shape and floating type. Named arguments only.
    """
    require_named("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with get_default_graph().name_scope(name or "logistic_loss") as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = _as_labels(labels, logits)
        _same_static_shape(labels, logits)
        zeros = zeros_like(logits)
        is_positive = F.GreaterEqual(logits, zeros)
        relu_logits = F.Select(is_positive, logits, zeros)
        negative_abs = F.Select(is_positive, F.Neg(logits), logits)
        linear = F.Sub(relu_logits, F.Mul(logits, labels, name="mul"), name="sub")
        return F.Add(linear, F.Log1p(F.Exp(negative_abs)), name=scope)


def weighted_cross_entropy_with_logits(
    targets: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    labels: Any = None,
) -> Tensor:
    """As the sigmoid cross entropy, with the positive term times `pos_weight`.

    `labels` is the later name of `targets`.
    """
    labels = targets if labels is None else labels
    with get_default_graph().name_scope(name or "logistic_loss") as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = _as_labels(labels, logits)
        _same_static_shape(labels, logits)
        dtype = logits.dtype.base_dtype
        extra = operand(pos_weight - 1, dtype, "mul/x")
        weight = F.AddV2(
            convert_to_tensor(1, dtype, name="add/x"), F.Mul(extra, labels, name="mul"), name="add"
        )
        missing = F.Sub(convert_to_tensor(1, dtype, name="sub/x"), labels, name="sub")
        log_term = F.AddV2(F.Log1p(F.Exp(F.Neg(F.Abs(logits)))), F.Relu(F.Neg(logits)), name="add")
        return F.Add(F.Mul(missing, logits, name="mul"), F.Mul(weight, log_term, name="mul"), name=scope)
