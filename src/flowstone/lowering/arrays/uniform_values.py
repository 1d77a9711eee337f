"""Values of one number and a known shape, which nodes that stay only read: constants of the plan.

They are not computed in each step then. A value stays a node where a step may need memory of its own: where
it is fetched, kept or written to a state, or where a kernel would leave its result in it. Zeros of any size
cost no memory: they are pages that nothing has written to, of which the system has one. Of other numbers a
plan keeps at most `MOST_BYTES`. What nobody reads has no memory at all.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import CPU, FOLDING, Call
from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.frames import ENTERS
from flowstone.rewriting.analyses.state_access import input_positions
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

__all__ = ["MOST_BYTES", "held_bytes", "hold_uniform_values"]

MOST_BYTES = 4 << 20
_MAPPED_BYTES = 1 << 16  # from which zeros are pages of their own

_Array = np.ndarray[Any, Any]


def hold_uniform_values(subgraph: Subgraph) -> None:
    """Replaces nodes of such values by constants."""
    found = [node for node in subgraph.nodes if node.declaration.uniform]
    if not found:
        return
    readers, values, fetched = subgraph.consumers(), _Values(), frozenset(subgraph.fetches)
    found = [node for node in found if _is_only_read(node.outputs[0], readers, fetched)]
    arrays = {node: values.of(node, readers) for node in found}

    def rule(node: PlanNode) -> Replacement | None:
        array = arrays.get(node)
        if array is None:
            return None
        constant = subgraph.new_constant(array, node, "value")
        constant.control_inputs = [control for x in node.inputs for control in x.op.control_inputs]
        return Replacement([constant.outputs[0]], "is one number everywhere", (constant,))

    rewrite(subgraph, "hold_uniform_values", rule)
    remove_unneeded(subgraph)


def held_bytes(value: _Array) -> int:
    """How much memory a constant's value takes: one number that stands everywhere, and zeros that are pages
    which nothing has written to, take hardly any."""
    if not any(value.strides):
        return value.itemsize
    return 0 if isinstance(value.base, mmap.mmap) else value.nbytes


def _is_only_read(x: PlanOutput, readers: Consumers, fetched: frozenset[PlanOutput]) -> bool:
    """Whether no kernel leaves its result in the value, keeps it or hands it out, under any name."""
    if x in fetched:
        return False
    for node in readers.get(x, ()):
        declaration = node.declaration
        if node.type in ENTERS:
            continue  # what comes into a loop is not overwritten there
        if declaration.mutates or declaration.keeps or declaration.asynchronous:
            return False
        if any(node.inputs[i] is x for i in input_positions(node, declaration.aliases)):
            if not all(_is_only_read(each, readers, fetched) for each in node.outputs):
                return False
        elif not declaration.role and _may_overwrite(node, x):
            return False
    return True


def _may_overwrite(node: PlanNode, x: PlanOutput) -> bool:
    """Whether the kernel of a node has a variant that leaves the result in this input's memory."""
    factory = node.declaration.kernels.get(CPU)
    if factory is None:
        return True
    try:
        kernel = factory(node, FOLDING)
    except Exception:  # which the plan's own kernel raises, or it needs what only a session has
        return True
    return isinstance(kernel, Call) and any(node.inputs[i] is x for i in kernel.overwrites)


class _Values:
    """The arrays of a plan's constants, one for all nodes of the same number, type and shape."""

    def __init__(self) -> None:
        self._made: dict[Any, _Array] = {}
        self._left = MOST_BYTES

    def of(self, node: PlanNode, readers: Consumers) -> _Array | None:
        """The node's value; None where only the step knows it, or it would take too much memory."""
        x = node.outputs[0]
        dims, number = x.static_shape, node.declaration.uniform(node)  # type: ignore[misc]
        if dims is None or number is None or x.dtype.torch is None:
            return None
        number = np.asarray(number).astype(x.dtype.as_numpy_dtype)
        if not readers.get(x):
            return np.lib.stride_tricks.as_strided(number, dims, (0,) * len(dims))
        key = (number.tobytes(), x.dtype, dims)
        if key not in self._made:
            array = self._array(number, dims)
            if array is None:
                return None
            self._made[key] = array
        return self._made[key]

    def _array(self, number: _Array, dims: tuple[int, ...]) -> _Array | None:
        size = math.prod(dims) * number.itemsize
        if not any(number.tobytes()):
            return _zeros(dims, number.dtype, size)
        if size > self._left:
            return None
        self._left -= size
        return np.full(dims, number)


def _zeros(dims: tuple[int, ...], dtype: np.dtype[Any], size: int) -> _Array:
    """Zeros; many of them in pages that take no memory until something is written to them."""
    if size < _MAPPED_BYTES or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(dims, dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    zeros: _Array = np.ndarray(dims, dtype, pages)
    return zeros
