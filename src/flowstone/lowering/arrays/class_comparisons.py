"""One-hot rows as comparisons, which are element-wise, so that what takes them computes them in its own pass.

    OneHot(indices, depth, on, off)       # axis -1, few enough classes

becomes ``SelectV2(Equal(ExpandDims(indices, -1), [0, 1, … depth - 1]), on, off)``. Where machine code is on,
a cluster (`lowering/clusters`) takes it in: by itself it is a call of one microsecond instead of three.
"""

from __future__ import annotations

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.native.clusters import kernels
from flowstone.rewriting.patterns import Replacement, rewrite

__all__ = ["compare_classes"]

_MOST_ELEMENTS = 1 << 16  # of the result; more are written faster by a table of rows
_INDICES = (dtypes.int32, dtypes.int64)


def compare_classes(subgraph: Subgraph) -> None:
    """Replaces one-hot rows by comparisons with the numbers of the classes."""
    if not kernels.is_on() or not any(node.type == "OneHot" for node in subgraph.nodes):
        return

    def compared(node: PlanNode) -> Replacement | None:
        if node.type != "OneHot" or not _suits(node):
            return None
        indices, on, off = node.inputs[0], *node.inputs[2:]
        dtype, (*_, classes) = indices.dtype, node.outputs[0].static_shape or ()
        axis = subgraph.new_constant(np.array(-1, np.int32), node, "axis")
        numbers = subgraph.new_constant(np.arange(classes, dtype=dtype.as_numpy_dtype), node, "classes")
        column = subgraph.new_node(
            registry["ExpandDims"], [indices, axis.outputs[0]], {"T": dtype, "Tdim": dtypes.int32}, node
        )
        equal = subgraph.new_node(
            registry["Equal"],
            [column.outputs[0], numbers.outputs[0]],
            {"T": dtype, "incompatible_shape_error": True},
            node,
        )
        chosen = subgraph.new_node(
            registry["SelectV2"], [equal.outputs[0], on, off], {"T": node.attributes["T"]}, node
        )
        new = (axis, numbers, column, equal, chosen)
        return Replacement([chosen.outputs[0]], "compares with the numbers of the classes", new)

    rewrite(subgraph, "compare_classes", compared)


def _suits(node: PlanNode) -> bool:
    dims, indices = node.outputs[0].static_shape, node.inputs[0]
    if dims is None or node.control_inputs or node.attributes["axis"] not in (-1, len(dims) - 1):
        return False
    if indices.dtype not in _INDICES or node.attributes["T"] not in (dtypes.float32, dtypes.float64):
        return False
    return 0 < (num_elements(dims) or 0) <= _MOST_ELEMENTS
