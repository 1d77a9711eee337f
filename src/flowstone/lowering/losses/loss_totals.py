"""The soft-max cross entropies of a batch over few classes, added up or averaged at once.

Plans only: `loss_fusion.py` makes these of the losses of examples that only a Sum or a Mean takes.
Their second output is the gradient with respect to the logits of the losses' sum, as the single ops have it,
times `scale`; `transposed`: with an example a column. That is how all is computed here, as in `softmax`.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, X1, Call
from flowstone.framework.declarations.operation import op
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import merge
from flowstone.ops.networks.cross_entropies import cross_entropy_op
from flowstone.ops.networks.softmax import FLOATS
from flowstone.ops.networks.sparse_cross_entropies import label_error, sparse_cross_entropy_op

__all__: list[str] = []

_ATTRIBUTES = "divisor: int ; scale: float = 1 ; transposed: bool = false"
total_op = op(
    "_SoftmaxCrossEntropyTotal",
    "features: T, labels: T -> total: T, backprop: T",
    _ATTRIBUTES,
    T=FLOATS,
    by_element=True,
    cost=15,
)
sparse_total_op = op(
    "_SparseSoftmaxCrossEntropyTotal",
    "features: T, labels: Tlabels -> total: T, backprop: T",
    f"{_ATTRIBUTES} ; Tlabels: type in [int32, int64] = int64",
    T=FLOATS,
    cost=15,
)


@total_op.infer
def _(node: Any) -> Any:
    dims = merge(node.dims(0), node.dims(1))
    return [(), dims[::-1] if node.attributes["transposed"] and dims else dims]


@sparse_total_op.infer
def _(node: Any) -> Any:
    dims = node.dims(0)
    return [(), dims[::-1] if node.attributes["transposed"] and dims else dims]


total_op.not_differentiable()
sparse_total_op.not_differentiable()


@total_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    """The losses' sum over `divisor`: one product of all elements."""
    divisor, transposed = -node.attributes["divisor"], node.attributes["transposed"]
    scale = None if node.attributes["scale"] == 1 else _number(node, node.attributes["scale"])

    def cross_entropy_total(logits: Any, labels: Any) -> Any:
        labels = labels.t().contiguous()
        log_probabilities = torch.log_softmax(logits.t(), 0)
        total = torch.dot(labels.view(-1), log_probabilities.view(-1)).div_(divisor)
        gradient = log_probabilities.exp_().sub_(labels)
        if scale is not None:
            gradient.mul_(scale)
        return total, gradient if transposed else gradient.t()

    return cross_entropy_total


_MEAN, _SUM = 1, 2  # ATen's names of reductions
_NO_LABEL = -(1 << 63)


@sparse_total_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    """The losses' sum over `divisor`, which is 1 or the number of examples.

    The gradient, scale * (probability - 1 at the label), is made of columns of a table of -scale at each
    label, which ATen picks faster than it adds numbers in scattered places.
    """
    reduction = _SUM if node.attributes["divisor"] == 1 else _MEAN
    scale, transposed = node.attributes["scale"], node.attributes["transposed"]
    table = torch.eye(node.static_shape(0)[1], dtype=node.dtype(0).torch).mul_(_number(node, -scale))

    def cross_entropy_total(logits: Any, labels: Any) -> Any:
        log_probabilities = torch.log_softmax(logits.t(), 0)
        try:
            by_class = log_probabilities.t()
            total = torch._C._nn.nll_loss_nd(by_class, labels, None, reduction, _NO_LABEL)  # type: ignore[arg-type]
        except (RuntimeError, IndexError):
            raise label_error(labels, logits.shape[1]) from None
        gradient = table.index_select(1, labels).add_(log_probabilities.exp_(), alpha=scale)
        return total, gradient if transposed else gradient.t()

    labels = X1 if node.dtype(1) is dtypes.int64 else Call(torch.Tensor.long, X1)
    return Call(cross_entropy_total, X0, labels)


def _number(node: Any, value: Any) -> Any:
    return torch.tensor(value, dtype=node.dtype(0).torch)


def _by_losses(single: Any) -> Any:
    """A kernel factory for devices where the single op's kernel is as good as any."""

    def factory(node: Any, env: Any) -> Any:
        losses, divisor = single.kernels[GPU](node, env), node.attributes["divisor"]
        scale, transposed = node.attributes["scale"], node.attributes["transposed"]

        def total(logits: Any, labels: Any) -> Any:
            found, gradient = losses(logits, labels)
            if scale != 1:
                gradient.mul_(scale)
            return found.sum().div_(divisor), gradient.t() if transposed else gradient

        return total

    return factory


total_op.kernel(GPU)(_by_losses(cross_entropy_op))
sparse_total_op.kernel(GPU)(_by_losses(sparse_cross_entropy_op))
