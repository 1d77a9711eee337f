"""What nodes are in clusters: which may be members, and each one's steps (`native/clusters`).

An *element* node does something to every element, a *view* gives the results of rows another shape, a
*reduction* goes over axes, a *row* node is a program on every row: a soft-max, a cross entropy with its
gradient, a position of an extreme. A *dot* node is a small product with a matrix of one column: it adds up
each row times that column. A product of a column and a row is an element node.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, num_elements
from flowstone.native.clusters.clusters import OPEN, Step
from flowstone.native.codegen.emitter import FLOATS, HALF, KINDS
from flowstone.native.numerics.elements import ATTRIBUTES, suits
from flowstone.native.numerics.reductions import reduces

__all__ = [
    "TYPES",
    "Steps",
    "axes_of",
    "baked",
    "dot_steps",
    "element_of",
    "kind_of",
    "lead_of",
    "row_steps",
    "seen_as",
    "sizes_of",
]

TYPES = frozenset(dtypes.as_dtype(name) for name in (*KINDS, HALF))
"""The types of arrays in clusters."""
_POWERS = {2.0: "Square", 0.5: "Sqrt", -0.5: "Rsqrt", -1.0: "Reciprocal"}
_REDUCTIONS = frozenset({"Sum", "Mean", "Max", "Min", "Prod", "Any", "All"})
_VIEWS = frozenset({"Reshape", "ExpandDims", "Squeeze"})
_ROWS = frozenset({
    "Softmax", "LogSoftmax", "ArgMax", "ArgMin", "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits", "_SoftmaxCrossEntropyTotal", "_SparseSoftmaxCrossEntropyTotal",
})  # fmt: skip
_SOFTMAX = frozenset({"Softmax", "LogSoftmax"})
_PRODUCTS = frozenset({"MatMul", "_FusedMatMul"})
_LARGEST_CONSTANT = 1 << 16


@functools.lru_cache(1 << 12)
def sizes_of(dims: Dims) -> tuple[int, ...] | None:
    """A shape as clusters have it, with `OPEN` for the leading sizes up to the last that is not known; None
    if there are no elements, or it is not known how many sizes."""
    if dims is None or 0 in dims:
        return None
    if None not in dims:
        return dims  # type: ignore[return-value]
    return (OPEN, *dims[_open_axes(dims) :])  # type: ignore[arg-type]


def _open_axes(dims: Dims) -> int:
    """How many leading sizes an `OPEN` one stands for."""
    return max([i for i, n in enumerate(dims or (), 1) if n is None], default=0)


def lead_of(node: PlanNode) -> tuple[int, ...] | None:
    """The leading sizes that `OPEN` stands for in the node's shapes: none where all are known; None if they
    differ."""
    leads = {
        tuple([OPEN if n is None else n for n in dims[: _open_axes(dims)]])
        for x in (*node.inputs, *node.outputs)
        if (dims := x.dims) is not None and None in dims
    }
    return None if len(leads) > 1 else next(iter(leads), ())


def kind_of(node: PlanNode) -> str:
    """``element``, ``view``, ``reduction``, ``row`` or ``dot``; empty for a node that is no member."""
    if node.control_inputs or not node.inputs:
        return ""
    for x in node.outputs:
        if x.dtype.is_ref or x.dtype not in TYPES or sizes_of(x.dims) is None:
            return ""
    if any(sizes_of(x.dims) is None for i, x in enumerate(node.inputs) if i == 0 or x.dims != (0,)):
        return ""  # only axes and shapes may have no elements
    if len(node.outputs) == 1 and node.outputs[0].dims == () and not node.outputs[0].dtype.is_floating:
        return ""  # counters and decisions of loops are Python's numbers
    if node.type in _VIEWS or node.type == "BroadcastTo":
        drops = all(x.op.is_constant for x in node.inputs[1:])
        is_known = drops and node.inputs[0].dtype.base_dtype in TYPES
        return ("element" if node.type == "BroadcastTo" else "view") if is_known else ""
    if node.type in _REDUCTIONS or node.type in ("BiasAddGrad", "L2Loss"):
        return "reduction" if _may_reduce(node) else ""
    if node.type in _ROWS:
        return "row" if _is_on_rows(node) else ""
    if node.type in _PRODUCTS and not _is_outer(node):
        return "dot" if _is_dot(node) else ""
    return "element" if _is_by_element(node) else ""


# ---- by element


def _is_by_element(node: PlanNode) -> bool:
    if len(node.outputs) != 1:
        return False
    operation, attributes, count = element_of(node)
    if not all(x.op.is_constant for x in node.inputs[count:]):  # those are in the code
        return False
    types = [x.dtype.base_dtype for x in node.inputs[:count]]
    if any(each not in TYPES for each in types) or not suits(operation, [t.name for t in types], attributes):
        return False
    return _broadcasts(node, count)


def _broadcasts(node: PlanNode, count: int) -> bool:
    """Whether its inputs are broadcast to the output as NumPy does it."""
    dims = sizes_of(node.outputs[0].dims)
    if node.type in ("BiasAdd", "BiasAddV1") and node.attributes.get("data_format", "NHWC") != "NHWC":
        return False
    shapes = [seen_as(x, node) for x in node.inputs[:count]]
    if dims is None or any(each is None or len(each) > len(dims) for each in shapes):
        return False
    padded = [(*[1] * (len(dims) - len(each)), *each) for each in shapes if each is not None]
    return all({n, 1} >= set(own) and n in own for n, *own in zip(dims, *padded))


def seen_as(x: PlanOutput, node: PlanNode) -> tuple[int, ...] | None:
    """The shape in which an element node takes an input: a `Select` by rows has a condition for each, a
    product takes a column and a row, or two numbers."""
    dims, result = sizes_of(x.dims), sizes_of(node.outputs[0].dims)
    if node.type in _PRODUCTS and result is not None:
        return (result[0], 1) if x is node.inputs[0] or result == (1, 1) else result[1:]
    if dims is None or result is None or node.type != "Select" or x is not node.inputs[0]:
        return _fitted(dims, result)
    return (*dims, *[1] * (len(result) - 1)) if len(dims) == 1 else dims


def _fitted(dims: tuple[int, ...] | None, result: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """A shape without the sizes of 1 that it has along what an open size stands for."""
    while dims and result and result[0] == OPEN and len(dims) > len(result) and dims[0] == 1:
        dims = dims[1:]
    return dims


def element_of(node: PlanNode) -> tuple[str, dict[str, Any], int]:
    """What an element node does: the element's name, its attributes, and how many inputs that takes."""
    if node.type == "BroadcastTo":
        return "Identity", {}, 1
    if node.type in _PRODUCTS:
        return "Mul", {}, 2
    if node.type == "Pow" and node.inputs[1].op.is_constant and node.inputs[1].dims == ():
        exponent = node.constant(1)
        assert exponent is not None
        name = _POWERS.get(float(exponent))
        if name is not None and node.inputs[0].dims == node.outputs[0].dims:
            return name, {}, 1
    attributes: dict[str, Any] = {key: node.attributes[key] for key in ATTRIBUTES if key in node.attributes}
    return node.type, attributes, len(node.inputs)


def baked(x: PlanOutput) -> Step | None:
    """The number that a constant is everywhere, as a step."""
    if not x.op.is_constant or x.dtype.base_dtype not in TYPES:
        return None
    value = np.asarray(x.op.attributes["value"])
    if not 0 < value.size <= _LARGEST_CONSTANT:
        return None
    first = value.flat[0].item()
    if (value.size > 1 and not (value == first).all()) or (first == 0 and np.signbit(value).any()):
        return None  # not one number, or a zero of some sign
    text = first.hex() if isinstance(first, float) and math.isfinite(first) else str(first)
    return Step("Const", (), x.dtype.base_dtype.name, (("value", text),))


# ---- products


def _is_outer(node: PlanNode) -> bool:
    """Whether each element of a product is one of a column times one of a row; not a gradient of weights,
    which an update takes."""
    (first, second), dims = node.inputs[:2], node.inputs[0].dims
    if dims is None or len(dims) != 2 or dims[1] != 1 or node.attributes["transpose_a"]:
        return False
    return first is not second and len(node.inputs) == 2 and not node.attributes.get("activation")


def _is_dot(node: PlanNode) -> bool:
    """Whether a product is one of few rows with a column; its bias is then a number."""
    dims, dtype = sizes_of(node.inputs[0].dims), node.inputs[0].dtype.base_dtype.name
    if (
        dims is None
        or dims[0] == OPEN
        or dims[1] < 2
        or node.attributes["transpose_a"]
        or dtype not in FLOATS
    ):
        return False
    if node.outputs[0].dims != (dims[0], 1) or math.prod(dims) > machine.current().profile.native_reduction:
        return False
    activation = node.attributes.get("activation")
    if activation and not suits(activation, [dtype], {}):
        return False
    return all(x.dims == (1,) for x in node.inputs[2:])


# ---- reductions


def axes_of(node: PlanNode) -> list[int] | None:
    """The axes of a reduction, in order, of the shape that clusters have; None where they are not known, or
    some but not all of an open size's."""
    dims = node.inputs[0].dims
    rank, leading = len(dims or ()), _open_axes(dims)
    axes = _given_axes(node, rank)
    if not leading or axes is None:
        return axes
    inside = sum([axis < leading for axis in axes])
    if inside not in (0, leading):
        return None
    first = [0] if inside else []
    return [*first, *[axis - leading + 1 for axis in axes[inside:]]]


def _given_axes(node: PlanNode, rank: int) -> list[int] | None:
    if node.type == "L2Loss":
        return list(range(rank))
    if node.type == "BiasAddGrad":
        is_last = node.attributes.get("data_format", "NHWC") == "NHWC"
        return list(range(rank - 1)) if is_last else None
    if not node.inputs[1].op.is_constant:
        return None
    given = np.asarray(node.inputs[1].op.attributes["value"]).ravel().tolist()
    axes = sorted({int(axis) % rank if -rank <= axis < rank else rank for axis in given}) if rank else []
    return axes if len(axes) == len(given) and rank not in axes else None


def _may_reduce(node: PlanNode) -> bool:
    dtype = node.inputs[0].dtype.base_dtype.name
    name = "Sum" if node.type in ("Mean", "BiasAddGrad", "L2Loss") else node.type
    if node.type in ("Mean", "L2Loss") and dtype not in FLOATS:
        return False
    return reduces(name, dtype) and bool(axes_of(node)) and num_elements(node.inputs[0].dims) != 1


# ---- programs on rows


def _is_on_rows(node: PlanNode) -> bool:
    first = node.inputs[0]
    dims = first.dims or ()
    dtype = first.dtype.base_dtype
    if dtype.name not in FLOATS and not (node.type in _SOFTMAX and _is_half(dtype)):
        return False
    if not dims or (dims[-1] or 0) < 2:
        return False
    if node.type in ("ArgMax", "ArgMin"):
        axis = node.inputs[1].op
        is_known = axis.is_constant and node.attributes["output_type"].name in ("int32", "int64")
        return is_known and int(axis.attributes["value"]) in (-1, len(dims) - 1)
    if "Sparse" in node.type:
        return node.inputs[1].dims == dims[:1]
    if "CrossEntropy" in node.type:
        return node.inputs[1].dims == dims
    return True


def _is_half(dtype: dtypes.DType) -> bool:
    """Whether it is float16, which this processor converts."""
    return dtype is dtypes.float16 and suits("Cast", [HALF], {"DstT": dtypes.float32})


class Steps:
    """Steps so far; arrays are numbered from `first` on."""

    def __init__(self, first: int) -> None:
        self.first, self.steps = first, list[Step]()

    def add(self, op: str, dtype: str, *operands: int, **attributes: Any) -> int:
        """One more step; returns its number."""
        self.steps.append(Step(op, operands, dtype, tuple(sorted(attributes.items()))))
        return self.first + len(self.steps) - 1

    def number(self, dtype: str, value: float) -> int:
        """A number that is the same everywhere."""
        return self.add("Const", dtype, value=float(value).hex())


def row_steps(node: PlanNode, steps: Steps, operands: list[int]) -> list[int]:
    """Adds the steps of a program on rows; returns the arrays that are its outputs."""
    dtype, x = node.inputs[0].dtype.base_dtype.name, operands[0]
    if dtype == HALF:  # as by ATen, in float32
        x = steps.add("Cast", "float32", x, DstT=dtypes.float32)
        return [steps.add("Cast", HALF, _softmax(node, steps, "float32", x), DstT=dtypes.float16)]
    if node.type in ("ArgMax", "ArgMin"):
        return [_position(node, steps, dtype, x)]
    if node.type in _SOFTMAX:
        return [_softmax(node, steps, dtype, x)]
    return _cross_entropy(node, steps, operands[1], _powers(steps, dtype, x))


def _powers(steps: Steps, dtype: str, x: int) -> tuple[int, int, int]:
    """Of each row: what is below its largest number, the powers of e, and their sum."""
    below = steps.add("Sub", dtype, x, steps.add("Max", dtype, x, over="row"))
    powers = steps.add("Exp", dtype, below)
    return below, powers, steps.add("Sum", dtype, powers, over="row")


def _softmax(node: PlanNode, steps: Steps, dtype: str, x: int) -> int:
    below, powers, total = _powers(steps, dtype, x)
    if node.type == "LogSoftmax":
        return steps.add("Sub", dtype, below, steps.add("Log", dtype, total))
    return steps.add("Mul", dtype, powers, steps.add("Reciprocal", dtype, total))


def _position(node: PlanNode, steps: Steps, dtype: str, x: int) -> int:
    """The first place of the extreme; a NaN is never it."""
    none = steps.number(dtype, -math.inf if node.type == "ArgMax" else math.inf)
    x = steps.add("SelectV2", dtype, steps.add("IsNan", "bool", x), none, x)
    found = steps.add("Equal", "bool", x, steps.add(node.type[3:], dtype, x, over="row"))
    place = steps.add("ColumnIndex", "int32")
    after = steps.add("Const", "int32", value=str((1 << 31) - 1))
    first = steps.add("Min", "int32", steps.add("SelectV2", "int32", found, place, after), over="row")
    target = node.attributes["output_type"]
    return first if target is dtypes.int32 else steps.add("Cast", target.name, first, DstT=target)


def dot_steps(node: PlanNode, steps: Steps, operands: list[int]) -> int:
    """Adds the steps of a product with a column; returns the array of its numbers, one a row."""
    dtype = node.outputs[0].dtype.name
    found = steps.add("Sum", dtype, steps.add("Mul", dtype, *operands[:2]), over="row")
    for each in operands[2:]:
        found = steps.add("AddV2", dtype, found, each)
    activation = node.attributes.get("activation")
    return steps.add(activation, dtype, found) if activation else found


def _cross_entropy(node: PlanNode, steps: Steps, labels: int, parts: tuple[int, int, int]) -> list[int]:
    """The losses, or their total, and the gradient with respect to the logits."""
    dtype = node.inputs[0].dtype.base_dtype.name
    below, powers, total = parts
    logarithm = steps.add("Log", dtype, total)
    is_total, scale = node.type.endswith("Total"), float(node.attributes.get("scale", 1))
    factor = steps.number(dtype, scale)
    share = steps.add("Mul", dtype, powers, steps.add("RealDiv", dtype, factor, total))
    if "Sparse" in node.type:
        if node.inputs[1].dtype.base_dtype is not dtypes.int32:
            labels = steps.add("Cast", "int32", labels, DstT=dtypes.int32)
        is_label = steps.add("Equal", "bool", steps.add("ColumnIndex", "int32"), labels)
        zero = steps.number(dtype, 0)
        chosen = steps.add("Sum", dtype, steps.add("SelectV2", dtype, is_label, below, zero), over="row")
        loss = steps.add("Sub", dtype, logarithm, chosen)
        target = steps.add("SelectV2", dtype, is_label, factor, zero)
    else:
        terms = steps.add("Mul", dtype, labels, steps.add("Sub", dtype, below, logarithm))
        loss = steps.add("Neg", dtype, steps.add("Sum", dtype, terms, over="row"))
        target = steps.add("Mul", dtype, labels, factor) if scale != 1 else labels
    gradient = steps.add("Sub", dtype, share, target)
    if is_total:
        loss = steps.add("Sum", dtype, loss, divisor=node.attributes["divisor"], of="rows", over="all")
    return [loss, gradient]
