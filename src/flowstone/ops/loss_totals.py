"""The soft-max cross entropies of a batch over few classes, added up or averaged at once.

Plans only: `rewriting/fusion.py` makes these of the losses of examples that only a Sum or a Mean takes. Their
second output is the gradient by the logits of the losses' sum, as the single ops have it. An example is a
column here, as in `softmax`.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework import dtypes
from flowstone.framework.kernel import CPU, GPU, X0, X1, Call
from flowstone.framework.operation import op
from flowstone.framework.shape import merge
from flowstone.ops.softmax import FLOATS, MINUS_ONE, cross_entropy_op, label_error, sparse_cross_entropy_op

__all__: list[str] = []

total_op = op(
    "_SoftmaxCrossEntropyTotal", "features: T, labels: T -> total: T, backprop: T", "divisor: int", T=FLOATS
)
total_op.infer(lambda node: [(), merge(node.dims(0), node.dims(1))])
total_op.not_differentiable()


@total_op.kernel(CPU)
def _(node, env):
    """The losses' sum over `divisor`: one product of all elements."""
    divisor = -node.attributes["divisor"]

    def cross_entropy_total(logits, labels):
        labels = labels.t().contiguous()
        log_probabilities = torch.log_softmax(logits.t(), 0)
        total = torch.dot(labels.view(-1), log_probabilities.view(-1)).div_(divisor)
        return total, log_probabilities.exp_().sub_(labels).t()

    return cross_entropy_total


sparse_total_op = op(
    "_SparseSoftmaxCrossEntropyTotal",
    "features: T, labels: Tlabels -> total: T, backprop: T",
    "divisor: int ; Tlabels: type in [int32, int64] = int64",
    T=FLOATS,
)
sparse_total_op.infer(lambda node: [(), node.dims(0)])
sparse_total_op.not_differentiable()

_MEAN, _SUM = 1, 2  # ATen's names of reductions
_NO_LABEL = -(1 << 63)


@sparse_total_op.kernel(CPU)
def _(node, env):
    """The losses' sum over `divisor`, which is 1 or the number of examples."""
    reduction = _SUM if node.attributes["divisor"] == 1 else _MEAN
    examples = node.static_shape(0)[0]
    minus_one = MINUS_ONE[node.dtype(0).torch].expand(1, examples)

    def cross_entropy_total(logits, labels):
        log_probabilities = torch.log_softmax(logits.t(), 0)
        try:
            total = torch._C._nn.nll_loss_nd(log_probabilities.t(), labels, None, reduction, _NO_LABEL)
        except (RuntimeError, IndexError):
            raise label_error(labels, logits.shape[1]) from None
        return total, log_probabilities.exp_().scatter_add_(0, labels.unsqueeze(0), minus_one).t()

    labels = X1 if node.dtype(1) is dtypes.int64 else Call(torch.Tensor.long, X1)
    return Call(cross_entropy_total, X0, labels)


def _by_losses(single: Any) -> Any:
    """A kernel factory for devices where the single op's kernel is as good as any."""

    def factory(node, env):
        losses, divisor = single.kernels[GPU](node, env), node.attributes["divisor"]

        def total(logits, labels):
            found, backprop = losses(logits, labels)
            return found.sum().div_(divisor), backprop

        return total

    return factory


total_op.kernel(GPU)(_by_losses(cross_entropy_op))
sparse_total_op.kernel(GPU)(_by_losses(sparse_cross_entropy_op))
