"""Sums of many terms, as gradients of unrolled recurrences have them, computed from stacked operands.

- A sum of products ``X₁ᵀD₁ + X₂ᵀD₂ + …`` (the gradient with respect to a weight that every time step uses) is
  one product of the stacked operands, where the stacks are smaller than the products. A sum of sums of small
  matrices' rows (the gradient with respect to a bias) is one sum of the rows of their stack.
- A sum of gradients of slices that tile a tensor, or of tensors with zeros around them that do, is their
  concatenation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.slice_geometry import PythonSlice, dense_entries
from flowstone.ops.arrays.slicing import masks_of
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.matching import Number, Op, Pattern, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

_FEWEST = 3  # terms for which stacking is worth while
_NAMES = {"MatMul": "product", "Sum": "sum", "BiasAddGrad": "sum"}
_SMALL = 8  # calls that take longer than adding up the rows of a matrix


# ---- products


def stack_products(subgraph: Subgraph) -> None:
    """Computes products, and sums of rows, that are only added up as one of their operands, stacked."""
    if not any(_is_sum(node) for node in subgraph.nodes):
        return
    consumers = subgraph.consumers()
    fetched = set(subgraph.fetches)
    stacks = _Stacks(subgraph)

    def rule(node: PlanNode) -> Replacement | None:
        if not _is_sum(node) or node.dtype(0).is_complex:
            return None
        groups: dict[Any, list[PlanOutput]] = {}
        for x in node.inputs:
            alone = len(consumers.get(x, ())) == 1 and x not in fetched
            key = (_product_key(x.op) or _rows_key(x.op)) if alone else None
            if key is not None:
                groups.setdefault(key, []).append(x)
        stacked = [group for group in groups.values() if len(group) >= _FEWEST and _saves_memory(group)]
        if not stacked:
            return None
        added: list[PlanNode] = []
        rest = [x for x in node.inputs if not any(x in group for group in stacked)]
        terms = [stacks.result(node, group, added) for group in stacked] + rest
        if len(terms) == 1:
            return Replacement(terms, f"one {_NAMES[added[-1].type]} of stacked operands", tuple(added))
        attributes = {**node.attributes, "N": len(terms)}
        total = subgraph.new_node(node.declaration, terms, attributes, like=node, group_sizes=(len(terms),))
        return Replacement(list(total.outputs), "products of stacked operands", (*added, total))

    rewrite(subgraph, "stack_products", rule)
    remove_unneeded(subgraph)


def _is_sum(node: PlanNode) -> bool:
    return node.type == "AddN" and len(node.inputs) >= _FEWEST


def _product_key(node: PlanNode) -> Any:
    """What products must share to be stacked: how they are transposed, and the result's shape."""
    if node.type != "MatMul":
        return None
    a, b, result = node.static_shape(0), node.static_shape(1), node.outputs[0].dims
    if a is None or b is None or result is None:
        return None
    return node.attributes["transpose_a"], node.attributes["transpose_b"], result


def _rows_key(node: PlanNode) -> Any:
    """The same of sums of the rows of small matrices."""
    dims = node.static_shape(0) if node.type in ("Sum", "BiasAddGrad") else None
    if dims is None or len(dims) != 2 or not 0 < math.prod(dims) <= machine.current().elements(_SMALL):
        return None
    if node.type == "Sum":
        axes = node.constant(1)
        if axes is None or axes.ravel().tolist() not in ([0], [-2]) or node.attributes["keep_dims"]:
            return None
    return "rows", dims[1]


def _saves_memory(group: list[PlanOutput]) -> bool:
    """Whether the stacks are smaller than the products, if these are products."""
    if group[0].op.type != "MatMul":
        return True
    operands = sum(_elements(x) for term in group for x in term.op.inputs)
    return operands <= sum(_elements(term) for term in group)


def _elements(x: PlanOutput) -> int:
    dims: Any = x.dims
    return math.prod(dims)


class _Stacks:
    """The stacks of operands of a subgraph, each made once where nothing is conditional."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph = subgraph
        self._may_share = subgraph.analysis(Liveness).trivial
        self._made: dict[Any, PlanOutput] = {}

    def result(self, node: PlanNode, group: list[PlanOutput], added: list[PlanNode]) -> PlanOutput:
        """The sum of a group of a sum's terms; `added` gets the nodes that compute it."""
        terms = [x.op for x in group]
        first = terms[0]
        left = [term.inputs[0] for term in terms]
        inputs = list(first.inputs)
        if first.type == "MatMul":
            transposes = [first.attributes[key] for key in ("transpose_a", "transpose_b")]
            size = sum(_elements(x) for x in left)
            by_columns = transposes[0] and self.subgraph.machine.stacks_by_columns(size)
            inputs[0] = self._stack(node, left, "columns" if by_columns else int(not transposes[0]), added)
            inputs[1] = self._stack(node, [term.inputs[1] for term in terms], int(transposes[1]), added)
        else:
            inputs[0] = self._stack(node, left, 0, added)
        name = f"{node.name}/{_NAMES[first.type]}"
        total = self.subgraph.new_node(first.declaration, inputs, first.attributes, like=first, name=name)
        controls = [control for each in terms for control in each.control_inputs]
        total.control_inputs = list(dict.fromkeys(controls))
        total.order = node.order
        added.append(total)
        output: PlanOutput = total.outputs[0]
        return output

    def _stack(self, node: PlanNode, parts: list[PlanOutput], axis: Any, added: list[PlanNode]) -> PlanOutput:
        key = (axis, *parts)
        made = self._made.get(key)
        if made is None:
            if axis == "columns":
                made = _by_columns(self.subgraph, node, parts, added)
            else:
                made = concatenation(self.subgraph, node, parts, axis, added)
            if self._may_share:
                self._made[key] = made
        return made


def _by_columns(
    subgraph: Subgraph, node: PlanNode, parts: list[PlanOutput], added: list[PlanNode]
) -> PlanOutput:
    attributes = {"N": len(parts), "T": parts[0].dtype.base_dtype}
    stack = subgraph.new_node(
        registry["_StackByColumns"], parts, attributes, node, (len(parts),), f"{node.name}/stack"
    )
    added.append(stack)
    output: PlanOutput = stack.outputs[0]
    return output


def concatenation(
    subgraph: Subgraph, node: PlanNode, parts: list[PlanOutput], axis: int, added: list[PlanNode]
) -> PlanOutput:
    """The parts one behind the other along an axis; `added` gets the nodes that join them, like `node`."""
    dtype = parts[0].dtype.base_dtype
    where = subgraph.new_constant(np.array(axis, np.int32), node, "axis")
    attributes = {"N": len(parts), "T": dtype, "Tidx": dtypes.int32}
    joined = subgraph.new_node(
        registry["ConcatV2"],
        [*parts, where.outputs[0]],
        attributes,
        like=node,
        group_sizes=(len(parts), 1),
        name=f"{node.name}/stack",
    )
    added += [where, joined]
    output: PlanOutput = joined.outputs[0]
    return output


# ---- slices


def join_slices(subgraph: Subgraph) -> None:
    """Concatenates gradients of slices that together make the whole tensor, instead of adding them padded."""
    if not any(node.type in ("StridedSliceGrad", "Pad") for node in subgraph.nodes):
        return

    def rule(node: PlanNode) -> Replacement | None:
        if node.type != "AddN" or len(node.inputs) < 2:
            return None
        found = [_SLICED.match(x.op) or _PADDED.match(x.op) for x in node.inputs]
        parts = [(place, part.dy) for part in found if part and (place := part.place)]
        if len(parts) < len(found) or len({(place.axis, place.shrunk) for place, _ in parts}) != 1:
            return None
        parts.sort(key=lambda part: part[0])
        (axis, _, last, shrunk), dims = parts[-1][0], node.outputs[0].dims
        ends = [0, *[place.last for place, _ in parts]]
        if [place.first for place, _ in parts] != ends[:-1] or dims is None or last != dims[axis]:
            return None
        return _joined(subgraph, node, [dy for _, dy in parts], axis, shrunk)

    rewrite(subgraph, "join_slices", rule)
    remove_unneeded(subgraph)


class _Place(NamedTuple):
    """The one axis that is sliced, from where to where, and whether it is gone."""

    axis: int
    first: int
    last: int
    shrunk: bool


class _Sliced(NamedTuple):
    """The gradient of a strided slice, from that of the slice."""

    dy: PlanOutput
    sizes: Any
    begin: Any
    end: Any
    strides: Any
    root: PlanNode

    @property
    def place(self) -> _Place | None:
        """Where the slice is, if it is along one axis."""
        sizes, begin, end, strides = (x.tolist() for x in (self.sizes, self.begin, self.end, self.strides))
        entries = dense_entries(len(sizes), begin, end, strides, masks_of(self.root))
        if len(entries) != len(sizes):
            return None
        found = None
        for axis, (entry, size) in enumerate(zip(entries, sizes)):
            if type(entry) is PythonSlice:
                first, last, step = entry.indices(size)
                shrunk = False
            else:
                first, shrunk, step = entry + size if entry < 0 else entry, True, 1
                last = first + 1
            if step != 1:
                return None
            if (first, last) == (0, size) and not shrunk:
                continue
            if found is not None:
                return None
            found = _Place(axis, first, last, shrunk)
        return found


class _Padded(NamedTuple):
    """Zeros around a tensor, as the gradient of Slice has them."""

    dy: PlanOutput
    paddings: Any
    root: PlanNode

    @property
    def place(self) -> _Place | None:
        """Where the tensor is, if there are zeros along one axis."""
        dims = self.root.outputs[0].static_shape
        padded = [axis for axis, around in enumerate(self.paddings.tolist()) if any(around)]
        if dims is None or len(padded) != 1:
            return None
        (axis,) = padded
        before, after = self.paddings[axis].tolist()
        return _Place(axis, before, dims[axis] - after, False)


_NUMBERS = [Number(name) for name in ("sizes", "begin", "end", "strides")]
_SLICED = Pattern(Op("StridedSliceGrad", *_NUMBERS, Value("dy"), waits=False), _Sliced)
_PADDED = Pattern(Op("Pad", Value("dy"), Number("paddings"), waits=False), _Padded)


def _joined(
    subgraph: Subgraph, node: PlanNode, parts: list[PlanOutput], axis: int, shrunk: bool
) -> Replacement:
    reason = "the slices tile the tensor"
    if not shrunk:
        added: list[PlanNode] = []
        return Replacement([concatenation(subgraph, node, parts, axis, added)], reason, tuple(added))
    attributes = {"N": len(parts), "T": parts[0].dtype.base_dtype, "axis": axis}
    packed = subgraph.new_node(
        registry["Pack"], parts, attributes, like=node, group_sizes=(len(parts),), name=f"{node.name}/stack"
    )
    return Replacement(list(packed.outputs), reason, (packed,))
