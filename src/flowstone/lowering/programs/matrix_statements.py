"""Nodes of linear algebra as statements: small square matrices, products of many, diagonals and bands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.programs.program_limits import MOST_ELEMENTS, Untranslatable, kind_of, static_dims
from flowstone.lowering.programs.statement_parts import broadcast, constant_input, copy, places_of, result_of
from flowstone.lowering.programs.translation import Translation
from flowstone.native.codegen.emitter import FLOATS

__all__ = ["MATRICES"]

_MOST_ROWS = 32  # above which a call of a kernel costs little beside it
_HOW = {
    "Cholesky": "factor",
    "MatrixDeterminant": "determine",
    "MatrixInverse": "invert",
    "MatrixSolve": "solve",
    "MatrixTriangularSolve": "substitute",
}
"""What small matrices have done, by the functions of `native/matrices/small_matrix_code.py`."""


def _square(t: Translation, node: PlanNode) -> list[int]:
    dtype, result = result_of(node)
    dims = static_dims(node, node.inputs[0].dims)
    if dtype not in FLOATS or not 1 <= dims[-1] <= _MOST_ROWS:
        raise Untranslatable(node, f"machine code has no {node.type} of {dtype}, or of so many rows")
    adjoint, columns = bool(node.attributes.get("adjoint", False)), 0
    if len(node.inputs) > 1:
        sides = static_dims(node, node.inputs[1].dims)
        columns = sides[-1]
        if sides[:-1] != dims[:-1] or columns > 2 * _MOST_ROWS:
            raise Untranslatable(node, "its right-hand sides are of another shape, or many")
    elif node.type == "MatrixInverse":
        columns = dims[-1]
    sizes = {"size": dims[-1], "columns": columns, "count": math.prod(dims[:-2])}
    turned = node.attributes.get("lower", adjoint) != adjoint  # of a triangle that is a lower one
    operands = [t.of(x) for x in node.inputs]
    how = _HOW[node.type]
    return [t.add("Matrix", operands, (dtype, result), how=how, adjoint=adjoint, turned=turned, **sizes)]


def _products(t: Translation, node: PlanNode) -> list[int]:
    """Products are laid out with the dimension that they are summed up along in front."""
    dtype, result = result_of(node)
    if dtype not in FLOATS:
        raise Untranslatable(node, f"machine code has no {node.type} of {dtype}")
    places = []
    for x, flag in zip(node.inputs, ("adj_x", "adj_y")):
        dims = static_dims(node, x.dims)
        each = np.arange(math.prod(dims)).reshape(dims)
        places.append(each.swapaxes(-1, -2) if node.attributes[flag] else each)
    a, b = np.moveaxis(places[0], -1, 0)[..., None], np.moveaxis(places[1], -2, 0)[..., None, :]
    rank = max(a.ndim, b.ndim)
    a, b = (np.expand_dims(x, tuple(range(1, 1 + rank - x.ndim))) for x in (a, b))
    whole = np.broadcast_shapes(a.shape, b.shape)
    if math.prod(whole) > MOST_ELEMENTS:
        raise Untranslatable(node, "the products are large")
    factors = [copy(t, node, t.of(x), np.broadcast_to(each, whole)) for x, each in zip(node.inputs, (a, b))]
    terms = t.add("Mul", factors, (dtype, whole))
    sizes = {"outer": 1, "size": whole[0], "inner": math.prod(result)}
    return [t.add("Reduce", [terms], (dtype, result), kind="Sum", **sizes)]


def _diagonal(t: Translation, node: PlanNode) -> list[int]:
    kind_of(node, node.inputs[0])
    return [copy(t, node, t.of(node.inputs[0]), places_of(node).diagonal(0, -2, -1))]


def _with_diagonal(t: Translation, node: PlanNode, x: int, diagonal: int) -> list[int]:
    """The matrices `x`, which nothing else reads, with this diagonal."""
    _, dims = result_of(node)
    rows, columns = dims[-2:]
    outer, length = math.prod(dims[:-2]), min(rows, columns)
    walk: dict[str, Any] = {
        "sizes": (outer, length),
        "from_strides": (length, 1),
        "to_strides": (rows * columns, columns + 1),
    }
    t.add("Copy", [diagonal], None, into=x, from_place=0, to_place=0, **walk)
    return [x]


def _matrix_of_diagonal(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    zeros = t.add("Fill", [t.builder.constant(dtype, (), [0])], (dtype, dims))
    return _with_diagonal(t, node, zeros, t.of(node.inputs[0]))


def _set_diagonal(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    size = math.prod(dims)
    walk: dict[str, Any] = {
        "sizes": (size,),
        "from_strides": (1,),
        "to_strides": (1,),
        "from_place": 0,
        "to_place": 0,
    }
    new = t.add("Copy", [t.of(node.inputs[0])], (dtype, dims), **walk)
    return _with_diagonal(t, node, new, t.of(node.inputs[1]))


def _band(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    rows, columns = dims[-2:]
    lower, upper = int(constant_input(node, 1)), int(constant_input(node, 2))
    if lower > rows or upper > columns:
        raise Untranslatable(node, "it has no such band")  # and fails
    ones = np.ones((rows, columns), bool)
    kept = np.tril(ones, columns if upper < 0 else upper) & np.triu(ones, -rows if lower < 0 else -lower)
    mask = broadcast(t, node, t.builder.constant("bool", (rows, columns), kept.ravel().tolist()), dims)
    zero = t.builder.constant(dtype, (), [0])
    return [t.add("Select", [mask, t.of(node.inputs[0]), zero], (dtype, dims))]


MATRICES: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    **dict.fromkeys(_HOW, _square),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2"), _products),
    "MatrixBandPart": _band,
    "MatrixDiag": _matrix_of_diagonal,
    "MatrixDiagPart": _diagonal,
    "MatrixSetDiag": _set_diagonal,
}
"""Nodes of linear algebra."""
