"""Softmax, its logarithm, and the cross entropies of logits.

``SoftmaxCrossEntropyWithLogits`` and its sparse form give the loss and, from the same exponentials, the
gradient by the logits; the gradient of the loss is then a product. With many classes that matrix is large, so
where nobody else wants the logits, it takes their place. Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework import dtypes, errors
from flowstone.framework.errors import InvalidArgumentError
from flowstone.framework.graph_operation import Operation
from flowstone.framework.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.node import Node, static_value
from flowstone.framework.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.scope import get_default_graph
from flowstone.framework.shape import broadcast, merge, num_elements
from flowstone.framework.tensor import Tensor, convert_to_tensor

__all__ = [
    "log_softmax",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "sparse_softmax_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits",
]

FLOATS = (*dtypes.FLOATS, dtypes.bfloat16)


def _at_least_vector(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims is not None and not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    return dims


def _normaliser(name: str, output: str, function: Callable[..., Any]) -> OpDeclaration:
    declaration = op(name, f"logits: T -> {output}: T", T=FLOATS)
    declaration.infer(_at_least_vector)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        if node.dims(0) is not None:
            return Call(function, X0, -1)

        def checked(x: torch.Tensor) -> torch.Tensor:
            if x.dim() == 0:
                raise errors.InvalidArgumentError(None, None, "logits must have >= 1 dimension, got []")
            return function(x, -1)  # type: ignore[no-any-return]

        return checked

    return declaration


softmax_op = _normaliser("Softmax", "softmax", torch.softmax)
log_softmax_op = _normaliser("LogSoftmax", "logsoftmax", torch.log_softmax)


@softmax_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    y = op.outputs[0]
    total = F.Sum(F.Mul(dy, y, name="mul"), -1, keep_dims=True)
    return (F.Mul(F.Sub(dy, total, name="sub"), y, name="mul"),)


@log_softmax_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    softmax = F.Exp(op.outputs[0])
    return (F.Sub(dy, F.Mul(F.Sum(dy, -1, keep_dims=True), softmax, name="mul"), name="sub"),)


# ---- cross entropies

cross_entropy_op = op(
    "SoftmaxCrossEntropyWithLogits", "features: T, labels: T -> loss: T, backprop: T", T=FLOATS
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


def _is_zeros(tensor: Tensor) -> bool:
    """Whether a gradient is a mere filling of zeros."""
    if tensor.op.type in ("ZerosLike", "Zeros"):
        return True
    if tensor.op.type not in ("Const", "Fill"):
        return False
    value = static_value(tensor.op.inputs[1] if tensor.op.type == "Fill" else tensor)
    return value is not None and not value.any()


def _times_rows(vector: Tensor, matrix: Tensor) -> Tensor:
    return F.Mul(F.ExpandDims(vector, -1), matrix, name="mul")


def _second_order(dx: Tensor, d_backprop: Tensor, logits: Tensor) -> Tensor:
    """What the gradient of the second output, softmax - labels, adds."""
    softmax = F.Softmax(logits)
    inner = F.BatchMatMulV2(F.ExpandDims(d_backprop, 1), F.ExpandDims(softmax, 2), name="MatMul")
    rest = F.Mul(F.Sub(d_backprop, F.Squeeze(inner, squeeze_dims=[1]), name="sub"), softmax, name="mul")
    return F.AddV2(dx, rest, name="add")


@cross_entropy_op.gradient
def _(op: Operation, d_loss: Tensor, d_backprop: Tensor) -> Gradients:
    dx = _times_rows(d_loss, op.outputs[1])
    logits = op.inputs[0]
    if not _is_zeros(d_backprop):
        dx = _second_order(dx, d_backprop, logits)
    return dx, _times_rows(d_loss, F.Neg(F.LogSoftmax(logits)))


sparse_cross_entropy_op = op(
    "SparseSoftmaxCrossEntropyWithLogits",
    "features: T, labels: Tlabels -> loss: T, backprop: T",
    "Tlabels: type in [int32, int64] = int64",
    T=FLOATS,
)


@sparse_cross_entropy_op.infer
def _(node: Node) -> Shapes:
    logits, labels = node.dims(0), node.dims(1)
    if logits is not None and len(logits) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(logits)}")
    if labels is not None and len(labels) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(labels)}")
    logits = logits or (None, None)
    (rows,) = merge(logits[:1], labels) or (None,)
    return [(rows,), (rows, logits[1])]


@sparse_cross_entropy_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if env.device.type != "cpu":
        return _sparse_cross_entropy_unchecked
    labels = X1 if node.dtype(1) is dtypes.int64 else Call(torch.Tensor.long, X1)
    if node.dtype(0) not in (dtypes.float32, dtypes.float64):
        return Call(_sparse_cross_entropy_by_logarithms, X0, labels)
    call = Call(_sparse_cross_entropy, X0, labels)
    elements = num_elements(node.static_shape(0))
    if elements and env.machine.stays_cached(2 * elements):  # by two cores: memory does not count
        return call
    return call.or_in_place(0, sparse_cross_entropy_in_place, X0, labels)


def _sparse_cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    _check_sparse(logits, labels)
    if logits.shape[1] <= FEW_CLASSES:
        return _cross_entropy_by_columns(logits, labels)
    index = labels.unsqueeze(1)
    probabilities = torch.softmax(logits, 1)
    loss = _picked(probabilities, index).log_().neg_()
    if _some_imprecise(loss):
        rows = _imprecise(loss)
        loss[rows] = _picked(torch.log_softmax(logits[rows], 1), index[rows]).neg_()
    return loss, _less_one(probabilities, index)


def sparse_cross_entropy_in_place(
    logits: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The same, with the gradient in the logits' memory."""
    _check_sparse(logits, labels)
    if logits.shape[1] <= FEW_CLASSES:
        return _cross_entropy_by_columns(logits, labels)
    index = labels.unsqueeze(1)
    below_highest = torch.amax(logits, 1).sub_(_picked(logits, index))
    probabilities = torch.softmax(logits, 1, out=logits)
    loss = _picked(probabilities, index).log_().neg_()
    if _some_imprecise(loss):
        rows = _imprecise(loss)
        loss[rows] = below_highest[rows].sub_(probabilities[rows].amax(1).log_())
    return loss, _less_one(probabilities, index)


# The logarithm of a probability is as exact as the logarithmic probability, which ATen computes more slowly,
# until the exponential underflows: exp(-80) is still a normal number of float32.
_HIGHEST_BY_PROBABILITY = 80.0


def _some_imprecise(losses: torch.Tensor) -> bool:
    return losses.numel() > 0 and not losses.max().item() <= _HIGHEST_BY_PROBABILITY


def _imprecise(losses: torch.Tensor) -> torch.Tensor:
    return (losses <= _HIGHEST_BY_PROBABILITY).logical_not_().nonzero().squeeze(1)


def _sparse_cross_entropy_by_logarithms(
    logits: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    _check_sparse(logits, labels)
    if logits.shape[1] <= FEW_CLASSES:
        return _cross_entropy_by_columns(logits, labels)
    index = labels.unsqueeze(1)
    log_probabilities = torch.log_softmax(logits, 1)
    loss = _picked(log_probabilities, index).neg_()
    return loss, _less_one(log_probabilities.exp_(), index)


def _picked(matrix: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Of each row the element of this column."""
    try:
        return torch.gather(matrix, 1, index).squeeze(1)
    except (RuntimeError, IndexError):
        raise label_error(index.squeeze(1), matrix.shape[1]) from None


def _less_one(probabilities: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return probabilities.scatter_add_(1, index, MINUS_ONE[probabilities.dtype].expand(index.shape))


def _check_sparse(logits: torch.Tensor, labels: torch.Tensor) -> None:
    if logits.dim() == 2 and not logits.shape[1]:
        raise errors.InvalidArgumentError(
            None, None, f"Must have at least one class, but got logits shape {list(logits.shape)}"
        )
    if logits.dim() != 2 or labels.shape != logits.shape[:1]:
        raise errors.InvalidArgumentError(
            None,
            None,
            "logits and labels must have the same first dimension, got logits shape "
            f"{list(logits.shape)} and labels shape {list(labels.shape)}",
        )


def _cross_entropy_by_columns(
    logits: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same with an example a column: the results are transposed views."""
    index = labels.unsqueeze(0)
    log_probabilities = torch.log_softmax(logits.t(), 0)
    try:
        loss = torch.gather(log_probabilities, 0, index).squeeze(0).neg_()
    except (RuntimeError, IndexError):
        raise label_error(labels, logits.shape[1]) from None
    minus_one = MINUS_ONE[logits.dtype].expand(index.shape)
    return loss, log_probabilities.exp_().scatter_add_(0, index, minus_one).t()


MINUS_ONE = {kind.torch: torch.tensor(-1, dtype=kind.torch) for kind in FLOATS}


def label_error(labels: torch.Tensor, classes: int) -> InvalidArgumentError:
    """The error of a step whose labels are not all classes."""
    wrong = labels[(labels < 0) | (labels >= classes)]
    return errors.InvalidArgumentError(
        None,
        None,
        f"Received a label value of {int(wrong[0])} which is outside the valid range of [0, {classes}).  "
        f"Label values: {' '.join(str(label) for label in labels.tolist())}",
    )


def _sparse_cross_entropy_unchecked(logits: Any, labels: Any) -> Any:
    """As on the host, but labels out of range give NaN: raising would have to wait for the device."""
    index = labels.to(torch.int64).unsqueeze(1)
    classes = logits.shape[1]
    wrong = (index < 0) | (index >= classes)
    index = index.clamp(0, max(classes - 1, 0))
    log_probabilities = torch.log_softmax(logits, 1).masked_fill_(wrong, float("nan"))
    loss = torch.gather(log_probabilities, 1, index).squeeze(1).neg_()
    return loss, log_probabilities.exp_().scatter_add_(
        1, index, torch.full_like(index, -1, dtype=logits.dtype)
    )


@sparse_cross_entropy_op.gradient
def _(op: Operation, d_loss: Tensor, d_backprop: Tensor) -> Gradients:
    dx = _times_rows(d_loss, op.outputs[1])
    return (dx if _is_zeros(d_backprop) else _second_order(dx, d_backprop, op.inputs[0])), None


# ---- public functions


def _along(function: OpDeclaration, logits: Any, axis: int, name: str | None) -> Tensor:
    """`function` along any axis: the axis is swapped with the last one before and after."""
    logits = convert_to_tensor(logits)
    rank = logits.shape.ndims
    is_last = axis == -1 or (rank is not None and axis == rank - 1)
    if rank is not None and not is_last and not -rank <= axis < rank:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"`dim` must be in the range [{-rank}, {rank}) where {rank} is the number of dimensions in "
            f"the input. Received: dim={axis}",
        )
    if is_last or not rank:
        return function(logits, name=name)
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    swapped = function(F.Transpose(logits, order, name="transpose"))
    return F.Transpose(swapped, order, name=name or "transpose")


def _axis_of(axis: int | None, dim: int | None) -> int:
    if dim is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'dim'.")
        axis = dim
    return -1 if axis is None else axis


def softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """exp(logits) / sum(exp(logits)) along `axis` (default the last; `dim` is its old name); floating types.

    Raises InvalidArgumentError for an axis that the logits do not have.
    """
    return _along(softmax_op, logits, _axis_of(axis, dim), name)


def log_softmax(
    logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """logits - log(sum(exp(logits))) along `axis` (default the last; `dim` is its old name)."""
    return _along(log_softmax_op, logits, _axis_of(axis, dim), name)


def _require_named(
    function: str,
    sentinel: Tensor | None,
    labels: Tensor | list[list[int]] | np.ndarray[Any, Any],
    logits: Tensor | np.ndarray[Any, Any] | None,
) -> None:
    if sentinel is not None:
        raise ValueError(f"Only call `{function}` with named arguments (labels=..., logits=..., ...)")
    for argument, value in (("labels", labels), ("logits", logits)):
        if value is None:
            raise ValueError(f"Argument `{argument}` must not be None.")


def _as_labels(labels: Tensor | np.ndarray[Any, Any], logits: Tensor) -> Tensor:
    """The labels as a tensor; one that is none already gets the logits' type."""
    return (
        labels if isinstance(labels, Tensor) else convert_to_tensor(labels, logits.dtype.base_dtype, "labels")
    )


def _flatten_rows(x: Tensor) -> Tensor:
    """A tensor as a matrix whose rows are its last dimension."""
    rank = x.shape.ndims
    if rank == 2:
        return x
    size = x.shape[-1].value if rank else None
    if size is None:
        size = F.StridedSlice(F.Shape(x), [-1], [0], [1], shrink_axis_mask=1)
    return F.Reshape(x, F.Pack([-1, size]) if isinstance(size, Tensor) else [-1, size])


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """Cross entropy of `labels` (distributions) and softmax(`logits`), of one shape, along `axis`.

    The result lacks that axis. Gradients flow to both. float16 is computed as float32. ValueError if one is
    missing.
    """
    _require_named("softmax_cross_entropy_with_logits", None, labels, logits)
    axis = _axis_of(axis, dim)
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
        rank = precise.shape.ndims
        if axis != -1 and rank is not None and axis % rank != rank - 1:
            order = [i for i in range(rank) if i != axis % rank] + [axis % rank]
            precise = F.Transpose(precise, order, name="transpose")
            labels = F.Transpose(labels, order, name="transpose")
        cost = _rows_cross_entropy(precise, labels, scope)
        return cost if narrow is None else F.Cast(cost, DstT=narrow)


def _rows_cross_entropy(logits: Tensor, labels: Tensor, scope: str) -> Tensor:
    cost: Tensor = cross_entropy_op.several(_flatten_rows(logits), _flatten_rows(labels), name=scope).loss
    rank = logits.shape.ndims
    if rank == 2:
        return cost
    outer = None if logits.dims is None else logits.dims[:-1]
    if outer is not None and None not in outer:
        return F.Reshape(cost, list(outer))
    shape = F.Shape(logits)
    cost = F.Reshape(cost, F.StridedSlice(shape, [0], [-1], [1], begin_mask=1))
    if outer is not None:
        cost.set_shape(outer)
    return cost


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """As `softmax_cross_entropy_with_logits_v2`, without a gradient by the labels. Named arguments only."""
    _require_named("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with get_default_graph().name_scope(name or "softmax_cross_entropy_with_logits_sg") as scope:
        labels = F.StopGradient(labels, name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(labels, logits, dim if axis is None else axis, scope)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Cross entropy of softmax(`logits`) [..., classes] and class numbers `labels` [...] (int32, int64).

    The result has the labels' shape. Labels out of range are an InvalidArgumentError of the step (NaN on a
    GPU). ValueError if the ranks do not fit. Named arguments only.
    """
    _require_named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with get_default_graph().name_scope(name or "SparseSoftmaxCrossEntropyWithLogits"):
        labels = convert_to_tensor(labels)
        logits = convert_to_tensor(logits)
        _check_sparse_ranks(labels, logits)
        narrow = logits.dtype if logits.dtype in (dtypes.float16, dtypes.bfloat16) else None
        precise = F.Cast(logits, DstT=dtypes.float32) if narrow is not None else logits
        if logits.shape.ndims == 2:
            cost = sparse_cross_entropy_op.several(precise, labels).loss
        else:
            rows = sparse_cross_entropy_op.several(_flatten_rows(precise), F.Reshape(labels, [-1])).loss
            cost = F.Reshape(rows, F.Shape(labels))
            cost.set_shape(labels.shape)
        return cost if narrow is None else F.Cast(cost, DstT=narrow)


def _check_sparse_ranks(labels: Tensor, logits: Tensor) -> None:
    shapes = labels.shape, logits.shape
    if shapes[1].ndims == 0:
        raise ValueError(f"`logits` cannot be a scalar. Received logits={logits}`")
    ranks = labels.shape.ndims, logits.shape.ndims
    if ranks[0] is not None and ranks[1] is not None and ranks[0] != ranks[1] - 1:
        raise ValueError(
            "`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: "
            f"labels.shape={shapes[0]} of rank {shapes[0].ndims} and "
            f"logits.shape={shapes[1]} of rank {shapes[1].ndims}"
        )


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
    _require_named("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with get_default_graph().name_scope(name or "logistic_loss") as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = _as_labels(labels, logits)
        _same_static_shape(labels, logits)
        zeros = F.ZerosLike(logits, name="zeros_like")
        is_positive = F.GreaterEqual(logits, zeros)
        relu_logits = F.Select(is_positive, logits, zeros)
        negative_abs = F.Select(is_positive, F.Neg(logits), logits)
        linear = F.Sub(relu_logits, F.Mul(logits, labels, name="mul"), name="sub")
        return F.AddV2(linear, F.Log1p(F.Exp(negative_abs)), name=scope)


def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: Any = None,
) -> Tensor:
    """As the sigmoid cross entropy, with the positive term times `pos_weight`.

    `targets` is the labels' old name.
    """
    labels = targets if labels is None else labels
    with get_default_graph().name_scope(name or "logistic_loss") as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = _as_labels(labels, logits)
        _same_static_shape(labels, logits)
        dtype = logits.dtype.base_dtype
        extra = convert_to_tensor(pos_weight - 1, dtype, name="mul/x")
        weight = F.AddV2(
            convert_to_tensor(1, dtype, name="add/x"), F.Mul(extra, labels, name="mul"), name="add"
        )
        missing = F.Sub(convert_to_tensor(1, dtype, name="sub/x"), labels, name="sub")
        log_term = F.AddV2(F.Log1p(F.Exp(F.Neg(F.Abs(logits)))), F.Relu(F.Neg(logits)), name="add")
        return F.AddV2(F.Mul(missing, logits, name="mul"), F.Mul(weight, log_term, name="mul"), name=scope)
