"""Elements of sparse tensors that a mask keeps, with one more for each row without any, in one call.

    places = Reshape(Where(keep), [-1])
    SparseFillEmptyRows(GatherV2(indices, places), GatherV2(values, places), shape, default)

becomes ``_KeptRows(indices, values, keep, shape, default)``, of which the last output are the rows of the new
elements, as ``Cast(indices[:, 0], int32)`` gave them. So `safe_embedding_lookup_sparse` drops ids that are
negative. Sums over the new elements,

    Select(Tile(Reshape(empty, [-1, 1, …]), …), 0, SparseSegmentSum(table, ids, rows))      # or …Mean, …SqrtN

become ``_FilledSums(table, ids, rows, empty)``. They have as many rows as the sparse tensor, so that to
reshape them to the first of its sizes and their own others does nothing. The results have the same bits;
`spread_rows.py` has their gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.declarations.operation import op, registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import array_code
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.sparse.elements import taken
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Rules, Surroundings, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

__all__ = ["choice_of_empty_rows", "fill_kept_rows", "is_by_rows", "is_zero", "kept_rows"]

kept_rows_op = op(
    "_KeptRows",
    "indices: int64, values: T, keep: bool, dense_shape: int64, default_value: T -> output_indices: int64, "
    "output_values: T, empty_row_indicator: bool, rows: int32",
    T=None,
    host=["dense_shape"],
    capturable=False,
    cost=4,
)
kept_rows_op.not_differentiable()


@kept_rows_op.infer
def _(node: Node) -> Any:
    indices, sizes = node.dims(0), node.dims(3)
    rank = indices[1] if indices is not None else sizes[0] if sizes is not None else None
    return [(None, rank), (None,), (None,), (None,)]


@kept_rows_op.kernel(CPU)
def _(node: Node, env: Any) -> Any:
    kind = node.dtype(1).torch
    every: Any = registry["SparseFillEmptyRows"].kernels[CPU](node, env)

    def fill(
        indices: torch.Tensor, values: Any, keep: torch.Tensor, shape: torch.Tensor, default: Any
    ) -> tuple[Any, ...]:
        code = array_code.filled_rows(kind)
        fit = indices.ndim == 2 and values.ndim == keep.ndim == shape.ndim == 1 and not default.ndim
        if code and fit and len(indices) == len(values) == len(keep) and indices.shape[1] == len(shape):
            sizes = shape.tolist()
            if sizes and min(sizes) >= 0:
                found = code(indices, values, sizes[0], default, keep)
                if found:
                    return found
        places = keep.nonzero().squeeze(1)
        for x in (indices, values):
            if len(places) and int(places[-1]) >= len(x):
                i = int((places >= len(x)).nonzero()[0])
                raise invalid(f"indices[{i}] = {int(places[i])} is not in [0, {len(x)})")
        new, *rest = every(indices.index_select(0, places), taken(values, places), shape, default)
        return new, *rest[:2], new[:, 0].to(torch.int32)

    return fill


filled_sums_op = op(
    "_FilledSums",
    "table: T, ids: Tids, rows: int32, empty: bool -> sums: T",
    "T: type ; Tids: type in [int32, int64] ; reduction: string",
    capturable=False,
)
filled_sums_op.not_differentiable()


@filled_sums_op.infer
def _(node: Node) -> Any:
    table, empty = node.dims(0), node.dims(3)
    return None if table is None else (None if empty is None else empty[0], *table[1:])


@filled_sums_op.kernel(CPU)
def _(node: Node, env: Any) -> Any:
    reduce: Any = registry[node.attributes["reduction"]].kernels[CPU](node, env)

    def fill(table: torch.Tensor, ids: torch.Tensor, rows: torch.Tensor, empty: torch.Tensor) -> torch.Tensor:
        sums: torch.Tensor = reduce(table, ids, rows)
        return sums.masked_fill_(empty.unsqueeze(1), 0)

    return fill


# ---- the pass


class _Kept(NamedTuple):
    """What makes the elements of the rows."""

    indices: PlanOutput
    values: PlanOutput
    keep: PlanOutput
    shape: PlanOutput
    default: PlanOutput
    root: PlanNode


class _Numbered(NamedTuple):
    """The rows of the elements, as int32."""

    filled: PlanNode
    root: PlanNode


class _Sums(NamedTuple):
    """Sums over filled rows, with zeros for those that were empty."""

    table: PlanOutput
    ids: PlanOutput
    rows: PlanOutput
    empty: PlanOutput
    sums: PlanNode
    filled: PlanNode
    root: PlanNode


class _Resized(NamedTuple):
    """Sums over filled rows, and the sizes that these give them."""

    sums: PlanOutput
    shape: PlanOutput
    filled: PlanNode
    root: PlanNode


def _list(*wanted: int) -> Number:
    return Number(where=lambda x: x.tolist() == list(wanted))


def is_zero(value: Any) -> bool:
    """Whether all bits are zero."""
    return value.size > 0 and not any(value.tobytes())


def _is_vector(x: PlanOutput) -> bool:
    return x.dims is not None and len(x.dims) == 1


_FIRST = Number(where=lambda axis: int(axis) == 0)
_PLACES = Op("Reshape", Op("Where", Value("keep", where=_is_vector)), _list(-1))
_KEPT = Pattern(
    Op(
        "SparseFillEmptyRows",
        Op("GatherV2", Value("indices"), _PLACES, _FIRST, batch_dims=0),
        Op("GatherV2", Value("values"), _PLACES, _FIRST, batch_dims=0),
        Value("shape"),
        Value("default"),
    ),
    _Kept,
    waits=False,
)


def kept_rows(name: str, part: int) -> Op:
    """An output of the node that the record has as `filled`."""
    return Op("_KeptRows", *[Value()] * 5, name=name, node="filled", part=part)


_NUMBERED = Pattern(
    Op(
        "Cast",
        Op(
            "StridedSlice",
            kept_rows("", 0),
            Number(where=lambda begin: len(begin) == 2 and begin[1] == 0),
            Value(),
            _list(1, 1),
            begin_mask=1,
            end_mask=1,
            ellipsis_mask=0,
            new_axis_mask=0,
            shrink_axis_mask=2,
        ),
        DstT=dtypes.int32,
    ),
    _Numbered,
    waits=False,
)
_EMPTY = kept_rows("empty", 2)
_COLUMN = Op("Reshape", _EMPTY, _list(-1, 1))
choice_of_empty_rows = Either(
    Either(Op("Tile", _COLUMN, Number(where=lambda x: len(x) == 2 and x[0] == 1)), _COLUMN),
    Op("BroadcastTo", _COLUMN, Value()),
)
_ZERO = Either(Op("ZerosLike", Value()), Number(where=is_zero))
_ROWS = kept_rows("rows", 3)


_SUMS = Pattern(
    Op(
        "Select",
        choice_of_empty_rows,
        _ZERO,
        Op(
            "SparseSegmentSum|SparseSegmentMean|SparseSegmentSqrtN",
            Value("table"),
            Value("ids"),
            _ROWS,
            node="sums",
        ),
    ),
    _Sums,
    waits=False,
)
_RESIZED = Pattern(
    Op(
        "Reshape",
        Op("_FilledSums", Value(), Value(), Value(), kept_rows("", 2), name="sums"),
        Op(
            "ConcatV2",
            Either(
                Op("Slice", Op("Cast", Value("shape")), _list(0), _list(1)),
                Op("Cast", Op("Slice", Value("shape"), _list(0), _list(1))),
            ),
            Op("Slice", Op("Shape", Value("sums")), _list(1), _list(-1)),
            _FIRST,
        ),
    ),
    _Resized,
    where=lambda found: found.filled.inputs[3] is found.shape,
    waits=False,
)


def fill_kept_rows(subgraph: Subgraph) -> None:
    """Joins masks of elements with the filling of rows, and this with sums over them and their gradients."""
    if not any(node.type == "SparseFillEmptyRows" for node in subgraph.nodes):
        return
    rewrite(subgraph, _NAME, Rules(Surroundings.of(subgraph), (_KEPT, _Joining(subgraph).kept)))
    join = _Joining(subgraph)
    rules = Rules(
        Surroundings.of(subgraph),
        (_NUMBERED, join.numbered),
        (_SUMS, join.sums),
        (_RESIZED, join.resized),
    )
    rewrite(subgraph, _NAME, rules)
    remove_unneeded(subgraph)


class _Joining:
    """What stands for what is found."""

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph, self._fetched = subgraph, set(subgraph.fetches)
        self._consumers = subgraph.consumers()

    def kept(self, found: _Kept) -> Replacement | None:
        place = found.root.outputs[3]
        if self._consumers.get(place) or place in self._fetched:
            return None
        inputs = [found.indices, found.values, found.keep, found.shape, found.default]
        new = self._new("_KeptRows", inputs, {"T": found.values.dtype.base_dtype}, found.root)
        return Replacement(list(new.outputs), "a mask's elements and one for each empty row", (new,))

    def numbered(self, found: _Numbered) -> Replacement:
        return Replacement([found.filled.outputs[3]], "the rows of the elements, which are known")

    def sums(self, found: _Sums) -> Replacement | None:
        if not is_by_rows(found.root):
            return None
        dtype, reduction = found.table.dtype.base_dtype, found.sums.type
        attributes = {"T": dtype, "Tids": found.ids.dtype.base_dtype, "reduction": reduction}
        inputs = [found.table, found.ids, found.rows, found.empty]
        new = self._new("_FilledSums", inputs, attributes, found.root)
        return Replacement([new.outputs[0]], "sums with zeros for empty rows", (new,))

    def resized(self, found: _Resized) -> Replacement:
        return Replacement([found.sums], "as many rows as the sparse tensor has")

    def _new(
        self,
        name: str,
        inputs: list[PlanOutput],
        attributes: dict[str, Any],
        like: PlanNode,
    ) -> PlanNode:
        return self._subgraph.new_node(registry[name], inputs, attributes, like=like)


_NAME = "fill_kept_rows"


def is_by_rows(choice: PlanNode) -> bool:
    """Whether a choice by a condition of all elements of a matrix is one by its rows."""
    dims = [x.dims for x in choice.inputs]
    widths = {each[1] if each is not None and len(each) == 2 else None for each in dims}
    return len(widths) == 1 and None not in widths
