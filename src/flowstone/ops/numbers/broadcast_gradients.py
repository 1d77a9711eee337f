"""What gradients of operations that broadcast share: sums back to the shapes of the inputs.

TensorFlow 1.15 does it in two ways, of which an operation has one, and so do the nodes here: random ones
made later have its seeds. `broadcast_sums` asks known shapes before the step; TensorFlow asks by a node that
nothing reads, once for each pair of shapes in a graph. `shape_sums` lets the step ask all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims, broadcast
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.numbers.elementwise import reduced_axes

SumBack = Callable[[Any, int], Tensor]
"""``f(dz, i)``: the gradient `dz`, of the shape of the result, summed to the shape of input `i`."""


def is_known(dims: Dims) -> bool:
    """Whether all sizes of a shape are known."""
    return dims is not None and None not in dims


def have_one_shape(*tensors: Any) -> bool:
    """Whether all are tensors of one shape that is known."""
    dims = tensors[0].dims
    return is_known(dims) and all(isinstance(x, Tensor) and x.dims == dims for x in tensors)


def shape_sums(x: Tensor, y: Tensor) -> SumBack:
    """The sums of gradients back to the shapes of `x` and `y`, which were broadcast with each other."""
    return sums_to_shapes(shape(x), shape(y))


def sums_to_shapes(*shapes: Tensor) -> SumBack:
    """`shape_sums` of the inputs that have these two shapes, which are tensors."""
    axes = F.BroadcastGradientArgs(*shapes)
    return lambda dz, i: F.Reshape(F.Sum(dz, axes[i]), shapes[i])


def broadcast_sums(x: Tensor, y: Tensor, dz: Any) -> SumBack:
    """`shape_sums`, but what is known of the shapes is found now; `dz` is the gradient of the result."""
    if not isinstance(dz, Tensor):
        return shape_sums(x, y)
    if not (is_known(x.dims) and is_known(y.dims)):
        return sums_to_shapes(F.Shape(x), F.Shape(y))
    asked, question = get_default_graph().shapes_asked, ("broadcast", x.dims, y.dims)
    if question not in asked:
        asked.add(question)
        F.BroadcastGradientArgs(*[np.array(each.dims, np.int32) for each in (x, y)])
    whole, shapes = broadcast(x.dims, y.dims), (x.dims, y.dims)

    def back(flow: Any, i: int) -> Any:
        if shapes[i] == dz.dims:
            return flow
        axes = reduced_axes(shapes[i], whole, None)
        return F.Reshape(F.Sum(flow, np.array(axes, np.int32)), np.array(shapes[i], np.int32))

    return back
