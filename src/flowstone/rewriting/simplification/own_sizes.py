"""Vectors that are packed of their own elements, and sparse tensors that are reshaped to their own shape.

    Pack(Prod(Slice(shape, [0], [1]), [0]), GatherV2(shape, 1, 0))     # of a `shape` of two sizes
    SparseReshape(indices, shape, shape)

become ``shape``, and ``indices`` with ``shape``, as do reshapes to all sizes but one, which is left to be
worked out. `safe_embedding_lookup_sparse` and linear models make a matrix of whatever shape their ids have;
as a rule they are one. That sizes are not negative is left to who takes the tensor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.match_terms import constant_value
from flowstone.rewriting.matching import Number, Op, Pattern, Value
from flowstone.rewriting.patterns import Replacement, rewrite

__all__ = ["keep_own_sizes"]


class _Element(NamedTuple):
    """An element of a vector of integers."""

    vector: PlanOutput
    place: Any
    root: PlanNode


def _is_known(x: PlanOutput) -> bool:
    return x.static_shape is not None and len(x.static_shape) == 1 and x.dtype.base_dtype.is_integer


_VECTOR = Value("vector", where=_is_known)
_ZERO = Number(where=lambda x: not x.any())
_LIST = Number("place", where=lambda x: x.shape == (1,))
_ONE = Number(where=lambda x: x.tolist() == [1])
_ELEMENTS = tuple(
    Pattern(term, _Element, waits=False)
    for term in (
        Op("GatherV2", _VECTOR, Number("place", where=lambda x: x.shape == ()), _ZERO, batch_dims=0),
        Op(
            "StridedSlice",
            _VECTOR,
            _LIST,
            Value(),
            Value(),
            shrink_axis_mask=1,
            begin_mask=0,
            ellipsis_mask=0,
            new_axis_mask=0,
        ),
        Op("Prod|Sum|Max|Min", Op("Slice", _VECTOR, _LIST, _ONE), _ZERO, keep_dims=False),
    )
)


def keep_own_sizes(subgraph: Subgraph) -> None:
    """Takes vectors for their own elements packed, and sparse tensors for themselves in their own shape."""
    if not any(node.type == "SparseReshape" for node in subgraph.nodes):
        return
    rewrite(subgraph, "keep_own_sizes", _packed)
    rewrite(subgraph, "keep_own_sizes", _reshaped)


def _packed(node: PlanNode) -> Replacement | None:
    if node.type != "Pack" or node.control_inputs:
        return None
    vectors = [_vector(x.op, i) for i, x in enumerate(node.inputs)]
    first = vectors[0]
    if first is None or any(each is not first for each in vectors) or first.dims != (len(vectors),):
        return None
    return Replacement([first], "the vector of these elements")


def _vector(node: PlanNode, place: int) -> PlanOutput | None:
    """The vector that the node gives this element of; None if it gives something else."""
    for pattern in _ELEMENTS:
        found = pattern.match(node)
        if found is not None:
            return found.vector if np.asarray(found.place).tolist() in (place, [place]) else None
    return None


def _reshaped(node: PlanNode) -> Replacement | None:
    if node.type != "SparseReshape" or node.control_inputs:
        return None
    indices, shape, new = node.inputs
    if indices.dims is None or shape.dims is None or indices.dims[1:] != shape.dims:
        return None
    if not _is_same(new, shape):
        return None
    return Replacement([indices, shape], "a sparse tensor of this shape")


def _is_same(new: PlanOutput, shape: PlanOutput) -> bool:
    """Whether sizes are those of a shape, of which one may be left to be worked out."""
    new = _uncast(new)
    if new is shape:
        return True
    node = new.op
    if node.type != "Pack" or node.control_inputs or shape.dims != (len(node.inputs),):
        return False
    rest = 0
    for i, size in enumerate(node.inputs):
        value = constant_value(size)
        if value is not None and value.shape == () and value == -1:
            rest += 1
            continue
        vector = _vector(size.op, i)
        if vector is None or _uncast(vector) is not shape:
            return False
    return rest < 2


def _uncast(sizes: PlanOutput) -> PlanOutput:
    """The sizes in the type that they had."""
    node = sizes.op
    if node.type != "Cast" or node.control_inputs or not node.dtype(0).base_dtype.is_integer:
        return sizes
    return _uncast(node.inputs[0]) if sizes.dtype.base_dtype.is_integer else sizes
