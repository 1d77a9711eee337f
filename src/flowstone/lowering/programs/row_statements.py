"""Nodes that take, add and put rows by indices, as statements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims, strides_of
from flowstone.lowering.programs.statement_parts import check_inside, result_of
from flowstone.lowering.programs.translation import Translation
from flowstone.native.codegen.emitter import KINDS
from flowstone.native.programs.indexed_code import KINDS_OF_ROWS, KINDS_OF_SEGMENTS

__all__ = ["ROWS", "one_row"]


def one_row(t: Translation, node: PlanNode, index: int, axis: int, wraps: bool) -> int:
    """The elements of the first input at an index of a dimension, perhaps counted from the end."""
    dims = static_dims(node, node.inputs[0].dims)
    dtype, result = result_of(node)
    outer, row = math.prod(dims[:axis]), math.prod(dims[axis + 1 :])
    sizes, strides = ((row,), (1,)) if outer == 1 else ((outer, row), (dims[axis] * row, 1))
    return t.add(
        "Copy",
        [t.of(node.inputs[0]), index],
        (dtype, result),
        sizes=sizes,
        from_strides=strides,
        to_strides=strides_of(sizes),
        from_place=0,
        to_place=0,
        scale=row,
        limit=dims[axis],
        wraps=wraps,
    )


def _gather(t: Translation, node: PlanNode) -> list[int]:
    axis, batch = node.constant(2) if node.type == "GatherV2" else 0, node.attributes.get("batch_dims", 0)
    dims, (dtype, result) = static_dims(node, node.inputs[0].dims), result_of(node)
    indices = static_dims(node, node.inputs[1].dims)
    if axis is None or not -len(dims) <= int(axis) < len(dims) or not 0 <= batch <= int(axis) % len(dims):
        raise Untranslatable(node, "the dimension that it gathers along is not known, or is none")
    axis = int(axis) % len(dims)
    if not indices:
        return [one_row(t, node, t.of(node.inputs[1]), axis, wraps=False)]
    if dims[:batch] != indices[:batch]:
        raise Untranslatable(node, "its shapes do not fit each other")  # and it fails
    operands = [t.of(x) for x in node.inputs[:2]]
    sizes = {"rows": dims[axis], "inner": math.prod(dims[axis + 1 :])}
    outer = math.prod(dims[:axis])
    if outer != 1:
        sizes |= {"outer": outer, "times": outer // math.prod(dims[:batch])}
    return [t.add("Rows", operands, (dtype, result), **sizes)]


def _gather_nd(t: Translation, node: PlanNode) -> list[int]:
    dtype, result = result_of(node)
    dims, indices = (static_dims(node, x.dims) for x in node.inputs)
    depth = indices[-1]
    if not 0 < depth <= len(dims):
        raise Untranslatable(node, "its indices say nothing")
    operands, inner = [t.of(x) for x in node.inputs], math.prod(dims[depth:])
    return [t.add("Tuples", operands, (dtype, result), sizes=dims[:depth], inner=inner)]


def _places(t: Translation, node: PlanNode, indices: PlanOutput, dims: Sequence[int]) -> int:
    """Where rows, of an array of these dimensions of rows, lie; the program fails if an index is none."""
    kind, found = kind_of(node, indices), static_dims(node, indices.dims)
    depth, count = found[-1], math.prod(found[:-1])
    places = t.builder.constant(kind, (), [0])
    for axis, size in enumerate(dims):
        walk = {"sizes": (count,), "from_strides": (depth,), "from_place": axis}
        index = t.moved(t.of(indices), (count,), **walk)
        check_inside(t, index, size)
        scaled = t.add("Mul", [places, t.builder.constant(kind, (), [size])], (kind, (count,)[: axis > 0]))
        places = t.add("Add", [index, scaled], (kind, (count,)))
    return places


def _scatter_nd(t: Translation, node: PlanNode) -> list[int]:
    """Sums of rows: segments, by the places of the rows' indices."""
    dtype, dims = result_of(node)
    places, data, inner = _scattered(t, node, node.inputs[0], node.inputs[1])
    segments = math.prod(dims) // inner
    return [t.add("Segments", [data, places], (dtype, dims), kind="Sum", segments=segments, inner=inner)]


def _scattered(
    t: Translation, node: PlanNode, indices: PlanOutput, updates: PlanOutput
) -> tuple[int, int, int]:
    """The places of rows of the result, what is put there, and the size of a row."""
    dtype, dims = result_of(node)
    found = static_dims(node, indices.dims)
    depth, count = found[-1], math.prod(found[:-1])
    if not 0 < depth <= len(dims) or dtype in ("bool", "uint8"):
        raise Untranslatable(node, "its indices say nothing, or its type has no sums")
    inner = math.prod(dims[depth:])
    if math.prod(static_dims(node, updates.dims)) != count * inner:
        raise Untranslatable(node, "its updates have another shape")  # and it fails
    places = _places(t, node, indices, dims[:depth])
    return places, t.builder.view(t.of(updates), (count, inner)), inner


def _changed_rows(t: Translation, node: PlanNode) -> list[int]:
    """A copy of an array in which some rows are others, or combined with others."""
    if node.attributes.get("bad_indices_policy"):
        raise Untranslatable(node, "it ignores indices that are none")
    places, data, inner = _scattered(t, node, node.inputs[1], node.inputs[2])
    kind = node.type.removeprefix("TensorScatter")
    return [t.add("PutRows", [t.of(node.inputs[0]), data, places], result_of(node), kind=kind, inner=inner)]


def _stitched(t: Translation, node: PlanNode) -> list[int]:
    """Rows that are put where the indices say, later ones over earlier ones."""
    dtype, dims = result_of(node)
    inner, half = math.prod(dims[1:]), len(node.inputs) // 2
    if dtype == "bool":
        raise Untranslatable(node, f"machine code has no {node.type} of {dtype}")
    known = [node.constant(i) for i in range(half)]
    if any(x is None for x in known) or {
        *np.concatenate([np.ravel(x) for x in known if x is not None]).tolist()
    } != {*range(dims[0])}:
        raise Untranslatable(node, "rows may be left that nothing is put into")
    found = t.add("Fill", [t.builder.constant(dtype, (), [0])], (dtype, dims))
    for indices, data in zip(node.inputs[:half], node.inputs[half:]):
        places = t.of(indices)
        value = t.builder.view(t.of(data), (t.builder.values[places].size, inner))
        found = t.add("PutRows", [found, value, places], (dtype, dims), kind="Update", inner=inner)
    return [found]


def _segments(t: Translation, node: PlanNode) -> list[int]:
    dtype, result = result_of(node)
    data, ids = static_dims(node, node.inputs[0].dims), static_dims(node, node.inputs[1].dims)
    if dtype not in KINDS or dtype in ("bool", "uint8"):
        raise Untranslatable(node, f"machine code has no segments of {dtype}")
    sizes = {"segments": result[0], "inner": math.prod(data[len(ids) :])}
    kind = node.type.removeprefix("UnsortedSegment")
    return [t.add("Segments", [t.of(x) for x in node.inputs[:2]], (dtype, result), kind=kind, **sizes)]


ROWS: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    **dict.fromkeys(("Gather", "GatherV2"), _gather),
    **dict.fromkeys((f"UnsortedSegment{kind}" for kind in KINDS_OF_SEGMENTS), _segments),
    **dict.fromkeys((f"TensorScatter{kind}" for kind in KINDS_OF_ROWS), _changed_rows),
    **dict.fromkeys(("DynamicStitch", "ParallelDynamicStitch"), _stitched),
    "GatherNd": _gather_nd,
    "ScatterNd": _scatter_nd,
}
"""Nodes whose places are data."""
