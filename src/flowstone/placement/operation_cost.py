"""What one run of a node costs by its shapes: floating-point operations and bytes of memory traffic.

The number of operations is what the op's declaration says (`cost`, by formulas of
`framework/declarations/work.py`), else one for each element. Unknown dimensions count as `ASSUMED_SIZE`,
which is rough; measured costs (`cost_model.py`) replace it. Ops that only pass on existing values (constants,
variables, feeds, Identity, control flow) are *free*; views of an input cost a call.

>>> from flowstone.framework.graphs.graph import Graph
>>> from flowstone.ops.arrays.constants import constant
>>> from flowstone.ops.algebra.matrices import matmul
>>> with Graph().as_default():
...     product = matmul(constant(1.0, shape=[2, 3]), constant(1.0, shape=[3, 4]))
>>> work(product.op)
Work(operations=48.0, size=104)
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework.declarations.work import by_element, element_count
from flowstone.framework.tensors.node import Node, Output
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType

_HANDLE_SIZE = 8  # bytes: strings, resources and variants count as pointers


class Work(NamedTuple):
    """`operations` (floating point) and `size` (bytes read and written) of one run."""

    operations: float
    size: int


def _element_size(dtype: DType) -> int:
    handles = (dtypes.string, dtypes.resource, dtypes.variant)
    return _HANDLE_SIZE if dtype.base_dtype in handles else dtype.size


def tensor_size(output: Output) -> int:
    """Bytes of an output's value."""
    return element_count(output.dims) * _element_size(output.dtype)


def state_size(node: Node) -> int:
    """Bytes that a node whose op `holds_state` keeps between steps."""
    if node.outputs[0].dtype is dtypes.resource:
        return element_count(node.attributes["shape"]) * _element_size(node.attributes["dtype"])
    return sum(tensor_size(output) for output in node.outputs)


def touched_rows(node: Node) -> Output | None:
    """For an op that reads or changes only some rows of its tables, the output that has the shape of these
    rows in one table. None for all other ops.
    """
    find = node.declaration.rows_function
    return None if find is None else find(node)


def work(node: Node) -> Work:
    """The work of one run of `node`."""
    declaration = node.declaration
    if declaration.is_free:
        return Work(0.0, 0)
    written = sum([tensor_size(x) for x in node.outputs])
    rows = touched_rows(node)
    if rows is not None:
        size = 2 * tensor_size(rows) * max(len(declaration.mutates), 1)
        return Work(size / 4, size)
    cost = declaration.cost_function
    if cost is None and declaration.is_view:
        return Work(0.0, _HANDLE_SIZE)
    size = written + sum([tensor_size(x) for x in node.inputs])
    return Work((by_element if cost is None else cost)(node), size)
