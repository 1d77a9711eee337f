"""Counts of truths: the sum or mean of truths that were cast to numbers, without the numbers.

    %1 = Cast(%0) : float32[200,1000]
    %3 = Sum(%1, %2) : float32[200]

becomes ``_CountTrue(%0)``, which adds up truths as integers: of [200, 1000] ATen's cast takes 130 µs, which
writes four times as much as there is to read, its sum of truths 55. The result is exact. Metrics are full of
them, and ``reduce_mean(cast(equal(…)))`` is how programs compute an accuracy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op, registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.numbers.reduction_calls import positive_axes
from flowstone.rewriting.matching import Op, Pattern, Rules, Surroundings, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

__all__: list[str] = []

count_op = op(
    "_CountTrue",
    "x: bool -> count: T",
    "axes: list(int) ; keep_dims: bool = false ; divisor: int = 1",
    T=(dtypes.float32, dtypes.float64),
    by_element=True,
)
count_op.not_differentiable()


@count_op.infer
def _(node: Node) -> Shapes:
    dims, axes, keep = node.dims(0), node.attributes["axes"], node.attributes["keep_dims"]
    if dims is None:
        return None
    return tuple([1 if i in axes else n for i, n in enumerate(dims) if keep or i not in axes])


@count_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    axes, divisor = list(node.attributes["axes"]), node.attributes["divisor"]
    number = Call(torch.sum, X0, axes, node.attributes["keep_dims"])
    count = Call(torch.Tensor.to, number, node.attributes["T"].torch)
    return count if divisor == 1 else Call(torch.Tensor.div_, count, divisor)


class _Count(NamedTuple):
    """The sum or mean of truths as numbers, which nobody else takes."""

    x: PlanOutput
    root: PlanNode


def _is_known(found: _Count) -> bool:
    root, shape = found.root, found.x.static_shape
    if found.x.dtype is not dtypes.bool or root.dtype(0) not in (dtypes.float32, dtypes.float64):
        return False
    axes = root.constant(1)
    return shape is not None and 0 not in shape and axes is not None and axes.size > 0


_COUNT = Pattern(Op("Sum|Mean", Op("Cast", Value("x"), alone=True), Value()), _Count, _is_known, waits=False)


def count_truths(subgraph: Subgraph) -> None:
    """Adds up truths without casting them to numbers."""
    if not any(node.type == "Cast" and node.dtype(0) is dtypes.bool for node in subgraph.nodes):
        return

    def counted(found: _Count) -> Replacement:
        x, root = found.x, found.root
        shape, given = x.static_shape or (), root.constant(1)
        assert given is not None
        axes = positive_axes(given, len(shape))
        attributes = {
            "T": root.dtype(0),
            "axes": tuple(axes),
            "keep_dims": bool(root.attributes["keep_dims"]),
            "divisor": math.prod(shape[i] for i in axes) if root.type == "Mean" else 1,
        }
        new = subgraph.new_node(registry["_CountTrue"], [x], attributes, root)
        return Replacement([new.outputs[0]], "truths are counted, not cast", (new,))

    around = Surroundings(subgraph.consumers(), subgraph.fetches)
    rewrite(subgraph, "count_truths", Rules(around, (_COUNT, counted)))
    remove_unneeded(subgraph)
