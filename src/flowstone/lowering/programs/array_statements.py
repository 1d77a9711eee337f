"""Nodes that multiply matrices or reduce arrays, as statements."""

from __future__ import annotations

import math
from collections.abc import Callable

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims
from flowstone.lowering.programs.statement_parts import broadcast, constant_input, copy, places_in, result_of
from flowstone.lowering.programs.translation import Translation
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import FLOATS
from flowstone.native.programs.open_sizes import is_at_most, typical
from flowstone.native.programs.sums_code import REDUCTIONS

__all__ = ["ARRAYS", "WEIGHTS", "terms_of_products"]

_MOST_CLASSES = 1024
_FEW_ROWS = 4  # of a product, for which a transposed copy of the second matrix does not pay
_MUCH = 1024  # elements of a matrix that is not copied for few rows


def _product(t: Translation, node: PlanNode) -> list[int]:
    a, b = node.inputs[0], node.inputs[1]
    return [_multiplied(t, node, a, b, node.attributes["transpose_a"], node.attributes["transpose_b"])]


def _multiplied(
    t: Translation, node: PlanNode, x: PlanOutput, y: PlanOutput, transpose_a: bool, transpose_b: bool
) -> int:
    dtype, a, b = kind_of(node, x), t.of(x), t.of(y)
    rows, columns = static_dims(node, x.dims)
    (m, k) = (columns, rows) if transpose_a else (rows, columns)
    n = static_dims(node, y.dims)[0 if transpose_b else 1]
    dims = m, n
    if typical(m * n * k) > t.limits_of(node).terms:
        raise Untranslatable(node, "the product is large")
    if dtype not in FLOATS and dtype not in ("int32", "int64"):
        raise Untranslatable(node, f"machine code has no products of {dtype}")
    if n == 1 and m != 1:  # its only column becomes a row
        a, b, transpose_a, transpose_b = b, a, not transpose_b, not transpose_a
        m, n = 1, m
    turns = ""
    if transpose_b and 1 not in (n, k):
        if is_at_most(m, _FEW_ROWS) and n * k >= _MUCH and dtype in FLOATS:
            turns = "b"
        else:
            b = copy(t, node, b, places_in((n, k)).transpose((1, 0)))
    if transpose_a and 1 not in (m, k):
        if turns:
            a = copy(t, node, a, places_in((k, m)).transpose((1, 0)))
        else:
            turns = "a"
    return t.add("MatMul", [a, b], (dtype, dims), m=m, k=k, n=n, turns=turns)


def _sum_of_products(t: Translation, node: PlanNode) -> list[int]:
    """What a loop hands on instead of a sum (`products/product_sums.py`) is the sum so far."""
    return [t.of(node.inputs[0])]


def _added_product(t: Translation, node: PlanNode) -> list[int]:
    total = t.of(node.inputs[0])
    made = _sum_made(node.inputs[0]).attributes
    a, b = node.inputs[1], node.inputs[2]
    product = _multiplied(t, node, a, b, made["transpose_a"], made["transpose_b"])
    value = t.builder.values[total]
    return [t.add("Add", [total, product], (value.dtype, value.dims))]


def _sum_made(handle: PlanOutput) -> PlanNode:
    while handle.op.type != "_ProductSum":
        handle = handle.op.inputs[0]
    return handle.op


def _sum_of_product(t: Translation, node: PlanNode) -> list[int]:
    """A product, to which a vector or a matrix is added, and perhaps an activation."""
    dtype, dims = result_of(node)
    added = broadcast(t, node, t.of(node.inputs[2]), dims)
    total = t.add("Add", [*_product(t, node), added], (dtype, dims))
    activation = node.attributes.get("activation", "")
    return [t.add(activation, [total], (dtype, dims))] if activation else [total]


def _reduction(t: Translation, node: PlanNode) -> list[int]:
    dtype, _ = result_of(node)
    if (node.type == "Mean" and dtype not in FLOATS) or dtype == "uint8":
        raise Untranslatable(node, f"machine code has no {node.type} of {dtype}")
    return [_reduced(t, node, t.of(node.inputs[0]), node.type)]


def _reduced(t: Translation, node: PlanNode, x: int, kind: str) -> int:
    """The value, of the first input's shape, reduced along the axes that the node says."""
    dtype, dims = result_of(node)
    source = static_dims(node, node.inputs[0].dims)
    axes = {int(axis) % len(source) for axis in constant_input(node, 1).ravel()} if source else set()
    axes = {axis for axis in axes if source[axis] != 1}
    if not axes:
        return t.builder.view(x, dims)
    first, last = min(axes), max(axes)
    if any(source[axis] != 1 and axis not in axes for axis in range(first, last)):  # they lie apart
        order = [axis for axis in range(len(source)) if axis not in axes] + sorted(axes)
        x = copy(t, node, x, places_in(source).transpose(order))
        source = tuple([source[axis] for axis in order])
        first, last = len(source) - len(axes), len(source) - 1
    sizes = {
        "outer": math.prod(source[:first]),
        "size": math.prod(source[first : last + 1]),
        "inner": math.prod(source[last + 1 :]),
    }
    return t.add("Reduce", [x], (dtype, dims), kind=kind, **sizes)


def _bias_gradient(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    if node.attributes.get("data_format", "NHWC") != "NHWC":
        raise Untranslatable(node, "its channels do not come last")
    size = math.prod(static_dims(node, node.inputs[0].dims)) // dims[0]
    return [
        t.add("Reduce", [t.of(node.inputs[0])], (dtype, dims), kind="Sum", outer=1, size=size, inner=dims[0])
    ]


def _magnitude(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    x = t.of(node.inputs[0])
    if dtype not in FLOATS:
        raise Untranslatable(node, f"machine code has no {node.type} of {dtype}")
    squares = t.add("Square", [x], (dtype, t.builder.values[x].dims))
    return [t.add("Sqrt", [_reduced(t, node, squares, "Sum")], (dtype, dims))]


def _half_squares(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    x = t.of(node.inputs[0])
    value = t.builder.values[x]
    squares = t.add("Square", [x], (dtype, value.dims))
    total = t.add("Reduce", [squares], (dtype, dims), kind="Sum", outer=1, size=value.size, inner=1)
    return [t.add("Mul", [total, t.builder.constant(dtype, (), [0.5])], (dtype, dims))]


def _one_hot(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    kind = kind_of(node, node.inputs[0])
    axis = node.attributes["axis"] % len(dims)
    if not is_at_most(dims[axis], _MOST_CLASSES):
        raise Untranslatable(node, "it has many classes")
    x = t.builder.view(t.of(node.inputs[0]), (*dims[:axis], 1, *dims[axis + 1 :]))
    classes = t.builder.constant(kind, (dims[axis], *[1] * (len(dims) - 1 - axis)), range(dims[axis]))
    pair = [broadcast(t, node, each, dims) for each in (x, classes)]
    chosen = t.add("Equal", pair, ("bool", dims))
    return [t.add("Select", [chosen, t.of(node.inputs[2]), t.of(node.inputs[3])], (dtype, dims))]


def _extreme_place(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    if dtype not in ("int32", "int64") or kind_of(node, node.inputs[0]) == "bool":
        raise Untranslatable(node, f"machine code has no {node.type} of these types")
    source, axis = static_dims(node, node.inputs[0].dims), int(constant_input(node, 1))
    if not -len(source) <= axis < len(source):
        raise Untranslatable(node, "it has no such dimension")  # and fails
    axis %= len(source)
    sizes = {"outer": math.prod(source[:axis]), "size": source[axis], "inner": math.prod(source[axis + 1 :])}
    return [t.add(node.type, [t.of(node.inputs[0])], (dtype, dims), **sizes)]


def _running(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    given = constant_input(node, 1)
    if given.ndim or not -len(dims) <= given < len(dims) or dtype == "uint8":
        raise Untranslatable(node, "it has no such dimension, or its type is not one of machine code's")
    axis = int(given) % len(dims)
    sizes = {"outer": math.prod(dims[:axis]), "size": dims[axis], "inner": math.prod(dims[axis + 1 :])}
    ways = {key: node.attributes[key] for key in ("exclusive", "reverse")}
    return [t.add("Running", [t.of(node.inputs[0])], (dtype, dims), kind=node.type, **sizes, **ways)]


def _quotient(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = result_of(node)
    is_remainder = dtype in FLOATS and node.type.endswith("Mod") and host.has("fmodf")
    if dtype not in ("int32", "int64") and not is_remainder:
        raise Untranslatable(node, f"machine code has no {node.type} of {dtype}")
    name = "Integer" + {"Mod": "TruncateMod"}.get(node.type, node.type)
    return [t.add(name, [broadcast(t, node, t.of(x), dims) for x in node.inputs], (dtype, dims))]


ARRAYS: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), _extreme_place),
    **dict.fromkeys(("Cumsum", "Cumprod"), _running),
    **dict.fromkeys(("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Mod"), _quotient),
    **dict.fromkeys(("_FusedMatMul", "_AddedMatMul"), _sum_of_product),
    **dict.fromkeys(("_ProductSum", "_ProductSumTotal"), _sum_of_products),
    "BiasAddGrad": _bias_gradient,
    "EuclideanNorm": _magnitude,
    "L2Loss": _half_squares,
    "MatMul": _product,
    "OneHot": _one_hot,
    "_ProductSumAdd": _added_product,
}
"""Nodes that multiply matrices or reduce arrays."""

_PRODUCTS = ("MatMul", "_FusedMatMul", "_AddedMatMul")
WEIGHTS: dict[str, int] = {**dict.fromkeys(_PRODUCTS, 8), "Softmax": 2}
"""How much code nodes are, where that is more than their statements say."""


def terms_of_products(node: PlanNode) -> int:
    """The multiplications of a product of matrices of known shapes; 0 for other nodes."""
    if node.type not in _PRODUCTS:
        return 0
    rows, columns = static_dims(node, node.inputs[0].dims)
    size = math.prod(static_dims(node, node.outputs[0].dims))
    return size * (rows if node.attributes["transpose_a"] else columns)
