"""Rows that are picked by way of their distinct indices are picked by the indices themselves.

    ids, places = Unique(indices)
    SparseSegmentSum(GatherV2(table, ids), places, segments)      # or …Mean, …SqrtN
    GatherV2(GatherV2(table, ids), places)

become ``SparseSegmentSum(table, indices, segments)`` and ``GatherV2(table, indices)``, with the same bits.
`embedding_lookup_sparse` writes the former, to send each row once where tables are elsewhere. On a host, to
find the distinct indices takes several times as long as to read a row twice. The gradients are alike:

    UnsortedSegmentSum(SparseSegmentMeanGrad(dy, places, segments, count), ids, size)     # or …SqrtNGrad
    UnsortedSegmentSum(UnsortedSegmentSum(dy, places, count), ids, size)

become ``SparseSegmentMeanGrad(dy, indices, segments, size)`` and ``UnsortedSegmentSum(dy, indices, size)``.
Where only the number of picked rows is wanted, ``Shape(GatherV2(table, ids))[0]``, none is picked: it is
``Size(ids)``; and there are as many places as indices. To give gradients that many rows, and the list of ids
as many elements, changes nothing:

    Reshape(UnsortedSegmentSum(…, Size(ids)), [Size(ids), …])
    Reshape(ids, [Size(ids)])
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowstone.framework.declarations.registry import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Rules, Surroundings, Through, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

__all__ = ["pick_rows_directly"]


class _Picked(NamedTuple):
    """What is taken of the rows of a table, by places among distinct indices."""

    table: PlanOutput
    indices: PlanOutput
    distinct: PlanNode
    listed: PlanNode
    root: PlanNode


class _Spread(NamedTuple):
    """A gradient by places among distinct indices, whose rows go to where the indices say."""

    by_places: PlanOutput
    indices: PlanOutput
    size: PlanOutput
    distinct: PlanNode
    listed: PlanNode
    root: PlanNode


def _is_of_one_list(found: _Picked | _Spread) -> bool:
    return found.distinct is found.listed


_FIRST = Number(where=lambda axis: int(axis) == 0)
_IDS = Op("Unique", Value("indices"), node="distinct", part=0)
_PLACES = Op("Unique", Value(), node="listed", part=1)
_ROWS = Op("GatherV2", Value("table"), _IDS, _FIRST, batch_dims=0)


_SUMS = Pattern(
    Op("SparseSegmentSum|SparseSegmentMean|SparseSegmentSqrtN", _ROWS, _PLACES, Value()),
    _Picked,
    where=_is_of_one_list,
    waits=False,
)
_AGAIN = Pattern(
    Op("GatherV2", _ROWS, _PLACES, _FIRST, batch_dims=0), _Picked, where=_is_of_one_list, waits=False
)


def _is_int32(x: PlanOutput) -> bool:
    return x.dtype is dtypes.int32


def _is_list(x: PlanOutput) -> bool:
    return x.dims is not None and len(x.dims) == 1


_SPREAD = Pattern(
    Op(
        "UnsortedSegmentSum",
        Either(
            Op(
                "SparseSegmentMeanGrad|SparseSegmentSqrtNGrad",
                Value(),
                _PLACES,
                Value(),
                Value(),
                name="by_places",
                alone=True,
            ),
            Op("UnsortedSegmentSum", Value(), _PLACES, Value(), name="by_places", alone=True),
        ),
        _IDS,
        Value("size", where=_is_int32),
    ),
    _Spread,
    where=_is_of_one_list,
    waits=False,
)


class _Counted(NamedTuple):
    """The number of rows that are picked by a list of ids."""

    ids: PlanOutput
    root: PlanNode


def _gives_int32(node: PlanNode) -> bool:
    return node.outputs[0].dtype is dtypes.int32


_LISTED = Value("ids", where=_is_list)
_PICKED = Either(
    Op("GatherV2", Value(), _LISTED, _FIRST, batch_dims=0),
    Op("ResourceGather", Value(), _LISTED, batch_dims=0),
)
_SIZES = Through("Cast", Op("Shape", _PICKED))
_BEGIN = Number(where=lambda begin: begin.tolist() == [0])
_COUNTED = Pattern(
    Op("GatherV2", _SIZES, _FIRST, _FIRST, batch_dims=0, where=_gives_int32), _Counted, waits=False
)
_COUNTED_BY_SLICE = Pattern(
    Op("StridedSlice", _SIZES, _BEGIN, Value(), Value(), shrink_axis_mask=1, where=_gives_int32),
    _Counted,
    waits=False,
)


_COUNTED_PLACES = Pattern(
    Op("Size", Op("Unique", Value("ids"), part=1), where=_gives_int32), _Counted, waits=False
)


class _Kept(NamedTuple):
    """A list, which is given the shape that it has."""

    kept: PlanOutput
    root: PlanNode


class _KeptRows(NamedTuple):
    """As many rows as a list has elements, which are given that number and the sizes behind it."""

    kept: PlanOutput
    behind: Any
    root: PlanNode


_OWN_SIZE = Op("ExpandDims", Op("Size", Value("kept")), Value())
_LIST = Pattern(Op("Reshape", Value("kept", where=_is_list), _OWN_SIZE), _Kept, waits=False)
_PLACES_KEPT = Pattern(
    Op(
        "Reshape",
        Op("Unique", Value("ids"), part=1, name="kept"),
        Op("ExpandDims", Op("Size", Value("ids")), Value()),
    ),
    _Kept,
    waits=False,
)
_NUMBER = Op("Size", Value("ids"), out_type=dtypes.int32)
_OF_ROWS = Op("ConcatV2", Op("ExpandDims", _NUMBER, Value()), Number("behind"), Value())
_WHOLE = Pattern(
    Op(
        "Reshape",
        Either(
            Op(
                "SparseSegmentMeanGrad|SparseSegmentSqrtNGrad",
                Value(),
                Value(),
                Value(),
                _NUMBER,
                name="kept",
            ),
            Op("UnsortedSegmentSum", Value(), Value(), _NUMBER, name="kept"),
            Op("Reshape", Value(), Op("Shape", _PICKED), name="kept"),
        ),
        _OF_ROWS,
        waits=False,
    ),
    _KeptRows,
    where=lambda found: found.kept.dims is not None and found.kept.dims[1:] == tuple(found.behind.tolist()),
)


def pick_rows_directly(subgraph: Subgraph) -> None:
    """Reads a table's rows by the indices that a program first made distinct."""
    if not any(node.type == "Unique" for node in subgraph.nodes):
        return

    def direct(found: _Picked) -> Replacement:
        node = found.root
        key = "Tindices" if node.type == "GatherV2" else "Tidx"
        attributes = {**node.attributes, key: found.indices.dtype}
        inputs = [found.table, found.indices, *node.inputs[2:]]
        new = subgraph.new_node(node.declaration, inputs, attributes, like=node)
        return Replacement([new.outputs[0]], "rows are picked without a list of distinct ones", (new,))

    def spread(found: _Spread) -> Replacement:
        node = found.by_places.op
        key = "Tindices" if node.type == "UnsortedSegmentSum" else "Tidx"
        dy, _, *segments, _ = node.inputs
        attributes = {**node.attributes, key: found.indices.dtype}
        inputs = [dy, found.indices, *segments, found.size]
        new = subgraph.new_node(node.declaration, inputs, attributes, like=found.root)
        return Replacement([new.outputs[0]], "rows are summed without a list of distinct ones", (new,))

    def counted(found: _Counted) -> Replacement:
        attributes = {"T": found.ids.dtype, "out_type": dtypes.int32}
        new = subgraph.new_node(registry["Size"], [found.ids], attributes, like=found.root)
        return Replacement([new.outputs[0]], "as many rows as ids", (new,))

    def keep(found: _Kept | _KeptRows) -> Replacement:
        return Replacement([found.kept], "has that shape")

    direct_rules = ((_SUMS, direct), (_AGAIN, direct), (_SPREAD, spread))
    counting_rules = ((_COUNTED, counted), (_COUNTED_BY_SLICE, counted), (_COUNTED_PLACES, counted))
    keeping_rules = ((_LIST, keep), (_PLACES_KEPT, keep), (_WHOLE, keep))
    rules = (*direct_rules, *counting_rules, *keeping_rules)
    rewrite(subgraph, "pick_rows_directly", Rules(Surroundings.of(subgraph), *rules))
    remove_unneeded(subgraph)
