"""Transposes and reshapes: moves them towards each other, and cancels those that meet.

- Of two transposes in a row one is enough, or none. The same for Reshape, ExpandDims and Squeeze, also with
  an element-wise op between them, where they only add and drop axes of size 1.
- A transpose comes after the element-wise ops, the bias and the concatenation that take it, which brings it
  to its inverse and them to the convolution or product before it (`fusion.py`). Their number never grows; a
  vector that such an op repeats is seen along another axis.
- Products, reductions and bias gradients take their operand as it was before the transpose.

A transpose is a view. Convolutions and poolings take images as `channels_last.py` decides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.patterns import Replacement, rewrite
from flowstone.rewriting.simplification.broadcasts import is_told_shape, kept_axes, with_axes

_Permutation = tuple[int, ...]


def cancel_transposes(subgraph: Subgraph) -> None:
    """Moves transposes past other nodes, and joins or cancels transposes and reshapes that meet."""
    if any(node.declaration.reshapes or node.type == "Transpose" for node in subgraph.nodes):
        rewrite(subgraph, "cancel_transposes", _Rules(subgraph))


class _Rules:
    """The rules, over a subgraph of whose outputs they know the `consumers`, and which are `fetched`."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph = subgraph
        self.consumers = dict(subgraph.consumers())
        self.fetched = set(subgraph.fetches)

    def __call__(self, node: PlanNode) -> Replacement | None:
        """The replacement of `node`, or None."""
        if node.declaration.reshapes:
            return self._reshaped(node)
        if not any(x.op.type == "Transpose" for x in node.inputs):
            return None
        if node.type == "Transpose":
            return self._composed(node)
        if node.declaration.elementwise:
            return self._moved(node, list(node.inputs), node.attributes)
        if node.type == "ConcatV2":
            return self._concatenated(node)
        if node.type in ("BiasAdd", "BiasAddGrad"):
            return self._biased(node)
        if node.declaration.reduces:
            return self._reduced(node)
        return self._multiplied(node) if node.type == "MatMul" else None

    # ---- what is made

    def _node(self, node: PlanNode, inputs: list[PlanOutput], attributes: dict[str, Any]) -> PlanNode:
        return self.subgraph.new_node(node.declaration, inputs, attributes, node, tuple(node.group_sizes))

    def _constant(self, like: PlanNode, value: Any, name: str) -> PlanNode:
        return self.subgraph.new_constant(np.array(value, np.int32), like, name)

    def _transposed(self, like: PlanNode, x: PlanOutput, order: _Permutation) -> list[PlanNode]:
        """A transpose of `x` that takes the place of `like`, after its constant."""
        nodes = transpose(self.subgraph, like, x, order, like.name)
        y, new = like.outputs[0], nodes[-1].outputs[0]
        self.consumers[new] = self.consumers.get(y, [])
        if y in self.fetched:
            self.fetched.add(new)
        return nodes

    # ---- rules

    def _composed(self, node: PlanNode) -> Replacement | None:
        outer, inner = permutation(node.outputs[0]), permutation(node.inputs[0])
        if outer is None or inner is None:
            return None
        both = tuple(inner[axis] for axis in outer)
        x = node.inputs[0].op.inputs[0]
        if both == tuple(range(len(both))):
            if x.dtype.is_ref:  # a variable, which may change before it is read
                return None
            return Replacement([x], "the inverse of the transpose before it")
        nodes = self._transposed(node, x, both)
        return Replacement([nodes[-1].outputs[0]], "one transpose for two", tuple(nodes))

    def _moved(
        self,
        node: PlanNode,
        inputs: list[PlanOutput],
        attributes: dict[str, Any],
        added: tuple[PlanNode, ...] = (),
    ) -> Replacement | None:
        """`node` before the transposes of its inputs, which must be equal, with these `attributes`.

        `inputs`: the node's, where `added` does not give others; of the node's own, those that are not
        transposed must be single elements or vectors along one axis.
        """
        transposed = [x for x in inputs if x.op.type == "Transpose"]
        orders = {permutation(x) for x in transposed}
        order = orders.pop()
        if orders or order is None or not any(self._is_alone(x, node) for x in transposed):
            return None
        sources: list[PlanOutput] = []
        views: list[PlanNode] = []
        for x in inputs:
            if x.op.type == "Transpose":
                sources.append(x.op.inputs[0])
            elif added or x.dims == ():
                sources.append(x)
            elif (before := self._before_transpose(node, x, order, views)) is not None:
                sources.append(before)
            else:
                return None
        new = self._node(node, sources, attributes)
        transposes = self._transposed(node, new.outputs[0], order)
        reason = "before the transpose of its input"
        return Replacement([transposes[-1].outputs[0]], reason, (*added, *views, new, *transposes))

    def _before_transpose(
        self, node: PlanNode, x: PlanOutput, order: _Permutation, views: list[PlanNode]
    ) -> PlanOutput | None:
        """A vector along one axis, or a single element, for operands as they were before a transpose; None of
        other values. New nodes are added to `views`.
        """
        dims = x.dims
        if not node.declaration.broadcasts or dims is None or len(dims) > len(order):
            return None
        if sum(n != 1 for n in dims) > 1:
            return None
        full = (1,) * (len(order) - len(dims)) + dims
        before = [full[order.index(axis)] for axis in range(len(order))]
        while before and before[0] == 1:
            del before[0]
        if tuple(before) == dims:
            return x
        source: PlanOutput = x.op.inputs[0] if _is_safe(x.op) else x
        if source.dims == tuple(before):
            return source
        if x.op.is_constant:
            # A constant is in no loop: a reshape of it would be computed outside of the one that takes it.
            value = x.op.attributes["value"].reshape([1 if n is None else n for n in before])
            constant = self.subgraph.new_constant(value, node, "vector")
            constant.control_inputs = list(x.op.control_inputs)
            views.append(constant)
            return constant.outputs[0]
        shape = self._constant(node, [-1 if n is None else n for n in before], "shape")
        attributes = {"T": x.dtype.base_dtype, "Tshape": dtypes.int32}
        view = self.subgraph.new_node(registry["Reshape"], [x, shape.outputs[0]], attributes, node)
        views += [shape, view]
        source = view.outputs[0]
        return source

    def _is_alone(self, x: PlanOutput, node: PlanNode) -> bool:
        """Whether only `node`, and transposes, which do not need it, take this transpose."""
        if x in self.fetched:
            return False
        return all(
            consumer is node
            or (consumer.type == "Transpose" and permutation(consumer.outputs[0]) is not None)
            for consumer in self.consumers.get(x, [])
        )

    def _concatenated(self, node: PlanNode) -> Replacement | None:
        *parts, _ = node.inputs
        axis, order = node.constant(len(parts)), permutation(parts[0])
        if axis is None or order is None or any(x.op.type != "Transpose" for x in parts):
            return None
        where = self._constant(node, order[int(axis)], "axis")
        attributes = {**node.attributes, "Tidx": dtypes.int32}
        return self._moved(node, [*parts, where.outputs[0]], attributes, (where,))

    def _biased(self, node: PlanNode) -> Replacement | None:
        x = node.inputs[0]
        order = permutation(x)
        if order is None:
            return None
        channels = order[1 if node.attributes["data_format"] == "NCHW" else -1]
        if channels not in (1, len(order) - 1) or len(order) < 3:
            return None
        layout = "NCHW" if channels == 1 else "NHWC"
        attributes = {**node.attributes, "data_format": layout}
        if node.type == "BiasAddGrad":
            new = self._node(node, [x.op.inputs[0]], attributes)
            return Replacement([new.outputs[0]], "sums before the transpose", (new,))
        if node.inputs[1].op.type == "Transpose" or not self._is_alone(x, node):
            return None
        new = self._node(node, [x.op.inputs[0], node.inputs[1]], attributes)
        transposes = self._transposed(node, new.outputs[0], order)
        nodes = (new, *transposes)
        return Replacement([transposes[-1].outputs[0]], "before the transpose of its input", nodes)

    def _reduced(self, node: PlanNode) -> Replacement | None:
        axes, order = node.constant(1), permutation(node.inputs[0])
        if axes is None or order is None or node.attributes.get("keep_dims", True):
            return None
        rank = len(order)
        over = {int(axis) % rank for axis in np.ravel(axes)}
        left = [order[axis] for axis in range(rank) if axis not in over]
        if left != sorted(left):
            return None
        where = self._constant(node, sorted(order[axis] for axis in over), "axes")
        inputs = [node.inputs[0].op.inputs[0], where.outputs[0]]
        new = self._node(node, inputs, {**node.attributes, "Tidx": dtypes.int32})
        return Replacement([new.outputs[0]], "reduces before the transpose", (where, new))

    def _multiplied(self, node: PlanNode) -> Replacement | None:
        inputs, attributes = list(node.inputs), dict(node.attributes)
        for i, key in enumerate(("transpose_a", "transpose_b")):
            if permutation(inputs[i]) == (1, 0):
                inputs[i] = inputs[i].op.inputs[0]
                attributes[key] = not attributes[key]
        if inputs == node.inputs:
            return None
        new = self._node(node, inputs, attributes)
        return Replacement([new.outputs[0]], "the product transposes its operands", (new,))

    def _reshaped(self, node: PlanNode) -> Replacement | None:
        inner = node.inputs[0].op
        x, dims = inner.inputs[0] if inner.inputs else None, node.outputs[0].dims
        if x is not None and inner.declaration.broadcasts and len(inner.inputs) == 2:
            return self._moved_reshapes(node, inner)
        if x is None or dims is None or not _is_safe(inner) or not _is_safe(node):
            return None
        if dims == x.dims:
            return Replacement([x], "two reshapes that cancel")
        shape = [-1 if n is None else n for n in dims]
        constant = self._constant(node, shape, "shape")
        attributes = {"T": x.dtype.base_dtype, "Tshape": dtypes.int32}
        inputs = [x, constant.outputs[0]]
        new = self.subgraph.new_node(registry["Reshape"], inputs, attributes, node)
        return Replacement([new.outputs[0]], "one reshape for two", (constant, new))

    def _moved_reshapes(self, node: PlanNode, inner: PlanNode) -> Replacement | None:
        """The op `inner`, which only this reshape takes, on operands that need no reshape."""
        before, after = inner.outputs[0].dims, node.outputs[0].dims
        axes = kept_axes(before, after) if _is_safe(node) else None
        if axes is None or inner.control_inputs or inner.outputs[0] in self.fetched:
            return None
        if inner.device != node.device:
            return None
        if len(self.consumers.get(inner.outputs[0], ())) != 1:
            return None
        inputs: list[PlanOutput] = []
        for x in inner.inputs:
            found = _without_reshape(x, len(before or ()), axes)
            if found is None:
                return None
            inputs.append(found)
        new = self.subgraph.new_node(inner.declaration, inputs, inner.attributes, like=node)
        if new.outputs[0].dims != after:
            return None
        return Replacement([new.outputs[0]], f"{inner.name} needs no reshapes", (new,))


def _without_reshape(x: PlanOutput, rank: int, axes: list[int | None]) -> PlanOutput | None:
    """What has the elements of `x` in the shape that is left of it when only `axes` are kept, if anything."""
    if x.dims is None or None in x.dims:
        return None
    wanted = with_axes(x.dims, rank, axes)  # type: ignore[arg-type]
    source = x.op.inputs[0] if _is_safe(x.op) else x
    for y in (x, source):
        dims = y.dims
        if (
            dims is not None
            and len(dims) <= len(wanted)
            and (1,) * (len(wanted) - len(dims)) + dims == wanted
        ):
            return y
    return None


def transpose(
    subgraph: Subgraph, like: PlanNode, x: PlanOutput, order: _Permutation, name: str
) -> list[PlanNode]:
    """A constant and the transpose of `x` of this name that takes it, neither yet in the subgraph."""
    constant = subgraph.new_constant(np.array(order, np.int32), like, "perm")
    attributes = {"T": x.dtype.base_dtype, "Tperm": dtypes.int32}
    inputs = [x, constant.outputs[0]]
    return [constant, subgraph.new_node(registry["Transpose"], inputs, attributes, like, name=name)]


def permutation(x: PlanOutput) -> _Permutation | None:
    """The constant permutation by which a transpose that waits for nothing else makes `x`, else None."""
    node = x.op
    if node.type != "Transpose" or node.control_inputs or node.inputs[1].op.control_inputs:
        return None
    value = node.constant(1)
    dims = node.inputs[0].dims
    if value is None or dims is None or sorted(value.tolist()) != list(range(len(dims))):
        return None
    return tuple(value.tolist())


def _is_safe(node: PlanNode) -> bool:
    """Whether a reshape cannot fail, and its shape follows from the number of elements."""
    if not node.declaration.reshapes or node.control_inputs or node.inputs[0].dtype.is_ref:
        return False
    if not is_told_shape(node):
        return False
    before, after = node.inputs[0].dims, node.outputs[0].dims
    if before is None or after is None or before.count(None) > 1 or after.count(None) != before.count(None):
        return False
    known = [math.prod(n for n in dims if n is not None) for dims in (before, after)]
    return bool(known[0] == known[1] != 0)
