"""Rows that are put side by side are copied in one call, those that are picked from tables only once.

    %8 = GatherV2(%0, %4, 0)        # embeddings of [n] indices, or of column i of [n, m] ones
    %9 = GatherV2(%1, %5, 0)        # of [n, k] indices, as Reshape(…, [n, -1])
    %10 = ConcatV2(%8, %9, %3, 1)   becomes   %10 = _JoinedRows(%0, %1, %4, %5, %3)

Columns of indices are read where they are, without a slice. Small concatenations without gathers, such as
that of a cell's inputs and state, take a third of ATen's time. The work is
`native/products/joined_rows.py`'s; where an index is out of bounds, the step fails with the gather's error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.declarations.operation import op
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import PlanData
from flowstone.framework.types import dtypes
from flowstone.native.clusters import kernels
from flowstone.native.products.joined_rows import TYPES, JoinedRows, Part, Picked, joined_rows
from flowstone.ops.arrays.arrays import invalid
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

__all__ = ["join_rows"]

_MOST = 256  # values: the code grows with each
_MOST_BYTES = 1 << 21  # of the result: more are copied by a team of threads
_SMALL = 1 << 16  # bytes of a result without picked rows, for which calls count more than copies
_INDICES = (dtypes.int32, dtypes.int64)


class _What(PlanData):
    """What stands in the rows."""

    __slots__ = ("rows",)

    def __init__(self, rows: JoinedRows) -> None:
        self.rows = rows


joined_rows_op = op(
    "_JoinedRows",
    "picks: K*T, indices: M*Tindices, parts: N*T -> joined: *Tout",
    "K: int ; M: int ; N: int >= 0 ; width: int ; Tindices: type in [int32, int64] ; Tout: list(type)",
    T=None,
    rows=work.first_output,
)
joined_rows_op.not_differentiable()


@joined_rows_op.infer
def _(node: Any) -> Any:
    return [(_what(node).rows, node.attributes["width"])]


@joined_rows_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    what = _what(node)
    return joined_rows(what, lambda *arguments: (_joined(what, arguments),))


def _what(node: Any) -> JoinedRows:
    held: _What = node.attributes["what"]
    return held.rows


def _joined(what: JoinedRows, arguments: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """The same by ATen. InvalidArgumentError for an index that is out of bounds."""
    columns = []
    for each in what.columns:
        if isinstance(each, Part):
            columns.append(arguments[each.rows].reshape(what.rows, -1))
            continue
        table, places = arguments[each.table], arguments[each.indices].reshape(what.rows, -1)
        places = places[:, each.column : each.column + each.number]
        bad = ((places < 0) | (places >= len(table))).nonzero()
        if len(bad):
            place = bad[0].tolist()
            words = ",".join(map(str, place if each.number > 1 else place[:1]))
            raise invalid(f"indices[{words}] = {int(places[tuple(place)])} is not in [0, {len(table)})")
        columns.append(table.index_select(0, places.reshape(-1)).reshape(what.rows, -1))
    return torch.cat(columns, 1)


# ---- the pass


def join_rows(subgraph: Subgraph) -> None:
    """Replaces concatenations of small rows, or of rows that are picked for them alone."""
    if not kernels.is_on() or not any(node.type == "ConcatV2" for node in subgraph.nodes):
        return
    consumers, fetched = subgraph.consumers(), set(subgraph.fetches)

    def is_alone(x: PlanOutput) -> bool:
        return len(consumers.get(x, ())) == 1 and x not in fetched and not x.op.control_inputs

    def joined(node: PlanNode) -> Replacement | None:
        if node.type != "ConcatV2":
            return None
        found = _Rows.of(node, is_alone)
        if found is None:
            return None
        dtype, sizes = node.attributes["T"], tuple(map(len, (found.tables, found.indices, found.parts)))
        attributes = {
            "T": dtype, "Tout": (dtype,), "Tindices": found.index_type or dtypes.int64, "width": found.width,
            **dict(zip("KMN", sizes)), "what": _What(found.what()),
        }  # fmt: skip
        inputs = [*found.tables, *found.indices, *found.parts]
        new = subgraph.new_node(joined_rows_op, inputs, attributes, like=node, group_sizes=sizes)
        reason = f"{len(found.columns)} in one call, {found.gathers} picked from tables"
        return Replacement([new.outputs[0]], reason, (new,))

    rewrite(subgraph, "join_rows", joined)
    remove_unneeded(subgraph)


class _Rows:
    """What a concatenation's rows are: its arguments by kind, each once, and the columns in order."""

    def __init__(self, rows: int, width: int, dtype: str) -> None:
        self.rows, self.width, self.dtype = rows, width, dtype
        self.tables: list[PlanOutput] = []
        self.indices: list[PlanOutput] = []
        self.parts: list[PlanOutput] = []
        self.columns: list[tuple[int, int, int, int] | int] = []  # a pick, or the number of a part
        self.gathers = 0
        self.index_type: Any = None

    @classmethod
    def of(cls, node: PlanNode, is_alone: Callable[[PlanOutput], bool]) -> _Rows | None:
        """Those of a concatenation along the last of two dimensions; None if not, or not worth it."""
        dims, axis, dtype = node.outputs[0].static_shape, node.constant(len(node.inputs) - 1), node.dtype(0)
        if dims is None or len(dims) != 2 or axis is None or int(axis) not in (-1, 1):
            return None
        name = dtype.base_dtype.name
        if name not in TYPES or not 0 < dims[0] * dims[1] * dtype.base_dtype.size <= _MOST_BYTES:
            return None
        found = cls(*dims, name)
        for x in node.inputs[:-1]:
            if not (is_alone(x) and found._picks(x, is_alone)) and not found._takes(x):
                return None
        is_small = dims[0] * dims[1] * dtype.base_dtype.size <= _SMALL
        return found if len(found.columns) <= _MOST and (found.gathers > 1 or is_small) else None

    def _picks(self, x: PlanOutput, is_alone: Callable[[PlanOutput], bool]) -> bool:
        gather = x.op
        if gather.type == "Reshape":
            x = gather.inputs[0]
            gather = x.op
            if not is_alone(x):
                return False
        if gather.type != "GatherV2" or gather.attributes["batch_dims"] or gather.constant(2) != 0:
            return False
        table, indices = gather.inputs[:2]
        shape, places = table.static_shape, indices.static_shape
        if shape is None or len(shape) != 2 or not shape[0] * shape[1] or not places:
            return False
        index_type = indices.dtype.base_dtype
        if index_type not in _INDICES or self.index_type not in (None, index_type) or len(places) > 2:
            return False
        if places[0] != self.rows or table.dtype.base_dtype.name != self.dtype:
            return False
        count, column = (places[1] if len(places) > 1 else 1), 0
        if gather is x.op and len(places) == 1 and (taken := _column(indices)) is not None:
            indices, column = taken
        self.index_type = index_type
        numbers = _number(self.tables, table), _number(self.indices, indices)
        self.columns.append((*numbers, column, count))
        self.gathers += 1
        return True

    def _takes(self, x: PlanOutput) -> bool:
        dims = x.static_shape
        if dims is None or len(dims) != 2 or dims[0] != self.rows or not dims[1]:
            return False
        self.columns.append(_number(self.parts, x))
        return True

    def what(self) -> JoinedRows:
        """The function's text in short; its arguments are tables, indices and parts."""
        tables, indices = len(self.tables), len(self.indices)
        arguments = [
            (x.dtype.base_dtype.name, *self._sizes(x)) for x in (*self.tables, *self.indices, *self.parts)
        ]
        columns = [
            Part(tables + indices + each)
            if isinstance(each, int)
            else Picked(each[0], tables + each[1], *each[2:])
            for each in self.columns
        ]
        return JoinedRows(tuple(arguments), tuple(columns), self.rows, self.dtype)

    def _sizes(self, x: PlanOutput) -> tuple[int, int]:
        dims = x.static_shape or ()
        return (dims[0], dims[1]) if len(dims) > 1 else (dims[0], 1)


def _number(values: list[PlanOutput], x: PlanOutput) -> int:
    if x not in values:
        values.append(x)
    return values.index(x)


def _column(indices: PlanOutput) -> tuple[PlanOutput, int] | None:
    """The matrix and the number of its column that indices are, if they are ``matrix[:, column]``."""
    node = indices.op
    if node.type != "StridedSlice" or node.control_inputs:
        return None
    masks = {name: node.attributes[f"{name}_mask"] for name in ("begin", "end", "ellipsis", "new_axis")}
    begin, strides, dims = node.constant(1), node.constant(3), node.inputs[0].static_shape
    if dims is None or len(dims) != 2 or begin is None or strides is None or len(begin) != 2:
        return None
    if node.attributes["shrink_axis_mask"] != 2 or masks["ellipsis"] or masks["new_axis"]:
        return None
    if masks["begin"] != 1 or masks["end"] != 1 or strides[0] != 1:
        return None
    column = int(begin[1]) + (dims[1] if begin[1] < 0 else 0)
    return (node.inputs[0], column) if 0 <= column < dims[1] else None
