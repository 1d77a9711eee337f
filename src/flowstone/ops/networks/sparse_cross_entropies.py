"""Cross entropies of logits with one class an example: ``SparseSoftmaxCrossEntropyWithLogits``.

As in `cross_entropies.py`, the op gives the loss and the gradient with respect to the logits. A label that is
no class is an error on hosts; on a GPU, which an error would have to wait for, its loss is NaN.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.errors import InvalidArgumentError
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import merge, num_elements
from flowstone.ops.arrays.shapes import rank
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.control.checks import assert_equal
from flowstone.ops.networks.cross_entropies import (
    FEW_CLASSES,
    is_zeros,
    require_named,
    second_order,
    times_rows,
)
from flowstone.ops.networks.softmax import FLOATS

__all__ = ["sparse_softmax_cross_entropy_with_logits"]

sparse_cross_entropy_op = op(
    "SparseSoftmaxCrossEntropyWithLogits",
    "features: T, labels: Tlabels -> loss: T, backprop: T",
    "Tlabels: type in [int32, int64] = int64",
    T=FLOATS,
    by_element=True,
    row_wise=True,
    starts_team=True,
    cost=15,
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
) -> tuple[torch.Tensor, torch.Tensor]:
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


def _sparse_cross_entropy_unchecked(
    logits: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
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
    backprop = F.PreventGradient(
        op.outputs[1],
        message="The gradient of sparse_softmax_cross_entropy_with_logits is made by the loss itself, and is "
        "not differentiated here.",
    )
    dx = times_rows(d_loss, backprop)
    return (dx if is_zeros(d_backprop) else second_order(dx, d_backprop, op.inputs[0])), None


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Cross entropy of softmax(`logits`) [..., classes] and class numbers `labels` [...] (int32, int64).

    The result has the labels' shape. Labels out of range are an InvalidArgumentError of the step (NaN on a
    GPU). ValueError if the ranks do not fit. Named arguments only.
    """
    require_named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with get_default_graph().name_scope(name or "SparseSoftmaxCrossEntropyWithLogits"):
        labels = convert_to_tensor(labels)
        logits = convert_to_tensor(logits)
        _check_sparse_ranks(labels, logits)
        narrow = logits.dtype if logits.dtype in (dtypes.float16, dtypes.bfloat16) else None
        precise = F.Cast(logits, DstT=dtypes.float32) if narrow is not None else logits
        shape = shape_of(labels)
        if logits.shape.ndims == 2:
            cost = sparse_cross_entropy_op.several(precise, labels, name=name).loss
        else:
            with get_default_graph().control_dependencies(_shape_checks(labels, logits)):
                cost = _of_any_rank(labels, precise, name)
                cost = F.Reshape(cost, shape)
            cost.set_shape(labels.shape)
        return cost if narrow is None else F.Cast(cost, DstT=narrow)


def _shape_checks(labels: Tensor, logits: Tensor) -> list[Operation]:
    """What the step has to check: nothing where the shapes are known."""
    known = labels.dims is not None and logits.dims is not None
    if known and None not in (*labels.dims, *logits.dims[:-1]):  # type: ignore[misc, index]
        return []
    return [assert_equal(shape_of(labels), shape_of(logits)[:-1])]


def _of_any_rank(labels: Tensor, logits: Tensor, name: str | None) -> Tensor:
    """The losses one after the other."""
    classes = shape_of(logits)[rank(logits) - 1]
    rows = F.Reshape(logits, [-1, classes])
    if logits.dims is not None:
        rows.set_shape((num_elements(logits.dims[:-1]), logits.dims[-1]))
    losses: Tensor = sparse_cross_entropy_op.several(rows, F.Reshape(labels, [-1]), name=name).loss
    return losses


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
