"""Convolutions of images whose places were moved to the batch, as dilated convolutions.

    BatchToSpaceND(Conv2D(SpaceToBatchND(x, blocks, paddings), w), blocks, crops)

is ``Conv2D(x, w)`` whose dilations are the blocks and whose margins are paddings less crops: TensorFlow's
form of `tf.nn.convolution` with a dilation rate, which moves each place twice. The gradients, which move `dy`
as the results were, are those of the dilated convolution. Axes of size 1 that sequences are given become
axes of `x`. Paddings and crops may be computed in the step, where their difference is known: both have the
number of places that fill the last block.

    %4 = BatchToSpaceND(%3, [2,2], [[0,0],[0,1]])    becomes    %4 = Conv2D(%0, W)  dilations 2, padding SAME

A gradient by filters then multiplies no zeros of paddings, which make NaN of infinite gradients.

Left alone are differences that are neither none nor those of SAME, paddings that are known not to fill the
last block, and gradients by images of which no shape is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.slice_geometry import dense_entries
from flowstone.ops.arrays.slicing import masks_of
from flowstone.ops.networks.windows import is_channels_last
from flowstone.rewriting.match_terms import constant_value
from flowstone.rewriting.patterns import Replacement, rewrite

__all__ = ["dilate_convolutions"]

_FORWARD = ("Conv2D", "Conv3D", "DepthwiseConv2dNative")
_BY_INPUT = ("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput")
_BY_FILTER = ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter")
_VIEWS = ("ExpandDims", "Squeeze", "Reshape")


class _Entry(NamedTuple):
    """An element of a tensor of integers: a number and, if any, an element of another tensor."""

    number: int
    of: PlanOutput | None = None
    place: tuple[int, ...] = ()


class _Moved(NamedTuple):
    """A value before or after a move between space and batch: of each axis but the first the block and the
    places added before and after it; `axis`, of size 1, is one that the other side of the move lacks."""

    value: PlanOutput
    blocks: list[int]
    margins: list[tuple[Any, Any]]
    axis: int | None
    nodes: list[PlanNode]


def dilate_convolutions(subgraph: Subgraph) -> None:
    """Replaces convolutions of places that were moved to the batch, and their gradients, by dilated ones."""
    if any(node.type == "SpaceToBatchND" for node in subgraph.nodes):
        rewrite(subgraph, "dilate_convolutions", _Convolutions(subgraph))


class _Convolutions:
    """The rule, which makes the nodes of each convolution."""

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph = subgraph

    def __call__(self, node: PlanNode) -> Replacement | None:
        if node.type == "BatchToSpaceND":
            return self._by_image(node)
        return self._by_filter(node) if node.type in _BY_FILTER else None

    def _by_image(self, node: PlanNode) -> Replacement | None:
        """The convolution whose results are moved back, or its gradient by the images."""
        outer = _moved_back(node)
        inner = outer and outer.value.op
        if outer is None or inner is None or inner.type not in (*_FORWARD, *_BY_INPUT):
            return None
        is_forward = inner.type in _FORWARD
        source = _moved(inner.inputs[0 if is_forward else 2], inner)
        if source is None or not _agree(source, outer):
            return None
        added, taken = (source, outer) if is_forward else (outer, source)
        attributes = _attributes(inner, added, taken, inner.inputs[1].dims)
        image = None if is_forward else _images_of(inner.inputs[0], inner, outer)
        if attributes is None or not (is_forward or image is not None or _is_whole(node)):
            return None
        new: list[PlanNode] = []
        x = self._expanded(source.value, source.axis, node, new)
        if is_forward:
            inputs = [x, inner.inputs[1]]
        else:
            inputs = [self._sizes(image, source.axis, node, new), inner.inputs[1], x]
        new.append(self._subgraph.new_node(inner.declaration, inputs, attributes, like=inner))
        if source.axis is not None:
            squeezing = {"T": node.dtype(0), "squeeze_dims": [source.axis]}
            new.append(self._subgraph.new_node(registry["Squeeze"], new[-1].outputs[:1], squeezing, node))
        return _replaced(new, (node, inner, *source.nodes, *outer.nodes))

    def _by_filter(self, node: PlanNode) -> Replacement | None:
        """The gradient by the filter, of images and of gradients that were moved."""
        images, results = (_moved(node.inputs[i], node) for i in (0, 2))
        if images is None or results is None or not _agree(images, results):
            return None
        attributes = _attributes(node, images, results, node.outputs[0].dims)
        if attributes is None:
            return None
        new: list[PlanNode] = []
        x, dy = (self._expanded(each.value, each.axis, node, new) for each in (images, results))
        inputs = [x, node.inputs[1], dy]
        new.append(self._subgraph.new_node(node.declaration, inputs, attributes, like=node))
        return _replaced(new, (node, *images.nodes, *results.nodes))

    def _sizes(self, image: PlanOutput | None, axis: int | None, node: PlanNode, new: list[PlanNode]) -> Any:
        """The shape of the images: a constant, where it is known."""
        dims = node.outputs[0].dims if _is_whole(node) or image is None else None
        if dims is not None:
            whole = list(dims) if axis is None else [*dims[:axis], 1, *dims[axis:]]
            new.append(self._subgraph.new_constant(np.array(whole, np.int32), node, "sizes"))
        else:
            assert image is not None
            x = self._expanded(image, axis, node, new)
            attributes = {"T": x.dtype.base_dtype, "out_type": dtypes.int32}
            new.append(self._subgraph.new_node(registry["Shape"], [x], attributes, node))
        return new[-1].outputs[0]

    def _expanded(self, x: PlanOutput, axis: int | None, node: PlanNode, new: list[PlanNode]) -> PlanOutput:
        if axis is None:
            return x
        constant = self._subgraph.new_constant(np.array(axis, np.int32), node, "axis")
        attributes = {"T": x.dtype.base_dtype, "Tdim": dtypes.int32}
        inputs = [x, constant.outputs[0]]
        new += [constant, self._subgraph.new_node(registry["ExpandDims"], inputs, attributes, node)]
        return new[-1].outputs[0]


def _replaced(new: list[PlanNode], old: tuple[PlanNode, ...]) -> Replacement:
    """The last of the new nodes, which wait for what the old ones waited for."""
    waits = list(dict.fromkeys(control for node in old for control in node.control_inputs))
    for node in new:
        node.control_inputs = waits
    return Replacement([new[-1].outputs[0]], "a dilated convolution", tuple(new))


def _is_whole(node: PlanNode) -> bool:
    """Whether the shape of the result is known."""
    dims = node.outputs[0].dims
    return dims is not None and None not in dims


# ---- moves


def _moved(x: PlanOutput, convolution: PlanNode) -> _Moved | None:
    """What was moved to the batch to make an operand of a convolution."""
    source, axis = _before_view(x, convolution)
    node = source.op
    if node.type != "SpaceToBatchND" or node.inputs[0].dtype.is_ref:
        return None
    found = _moves(node, node.inputs[0].dims, axis)
    views = [x.op] if axis is not None else []
    return found and _Moved(node.inputs[0], *found, axis, [node, *views])


def _moved_back(node: PlanNode) -> _Moved | None:
    """The convolution's result that is moved back to space."""
    x, axis = node.inputs[0], None
    if x.op.type in _VIEWS:
        before = x.op.inputs[0]
        axis = _axis_between(x, before)
        if axis is None:
            return None
        found = _moves(node, node.outputs[0].dims, axis)
        return found and _Moved(before, *found, axis, [x.op])
    found = _moves(node, node.outputs[0].dims, None)
    return found and _Moved(x, *found, None, [])


def _before_view(x: PlanOutput, convolution: PlanNode) -> tuple[PlanOutput, int | None]:
    """A sequence that was given an axis of size 1, and the axis; else the value itself, and None."""
    if x.op.type in _VIEWS:
        axis = _axis_between(x.op.inputs[0], x)
        is_last = is_channels_last(convolution.attributes["data_format"])
        if axis == (1 if is_last else 2):
            return x.op.inputs[0], axis
    return x, None


def _axis_between(less: PlanOutput, more: PlanOutput) -> int | None:
    """The axis of size 1 that `more` has and `less`, a sequence, lacks; None if it is neither 1 nor 2."""
    if less.dims is None or more.dims is None or len(less.dims) != 3 or len(more.dims) != 4:
        return None
    if less.dims.count(None) > 1 and "Reshape" in (less.op.type, more.op.type):
        return None
    for axis in (1, 2):
        if more.dims[axis] == 1 and (*more.dims[:axis], *more.dims[axis + 1 :]) == less.dims:
            return axis
    return None


def _moves(node: PlanNode, dims: Any, axis: int | None) -> tuple[list[int], list[tuple[Any, Any]]] | None:
    """Blocks and margins of each axis, if blocks are known and fill the axes as far as these are."""
    value, entries = constant_value(node.inputs[1]), _entries(node.inputs[2])
    if value is None or entries is None or dims is None or len(value) >= len(dims):
        return None
    blocks, margins = value.tolist(), [tuple(pair) for pair in entries]
    for size, block, (before, after) in zip(dims[1:], blocks, margins):
        if before.of is None and after.of is None:
            if block > 1 and (size is None or (size + before.number + after.number) % block):
                return None
    rest = len(dims) - 1 - len(blocks)
    blocks += [1] * rest
    margins += [(_Entry(0), _Entry(0))] * rest
    if axis is not None:
        blocks.insert(axis - 1, 1)
        margins.insert(axis - 1, (_Entry(0), _Entry(0)))
    return blocks, margins


def _agree(first: _Moved, second: _Moved) -> bool:
    return first.blocks == second.blocks and first.axis == second.axis


def _images_of(sizes: PlanOutput, convolution: PlanNode, back: _Moved) -> PlanOutput | None:
    """The images whose form, moved as results are moved back, the step asks for these sizes."""
    node = sizes.op
    if node.type not in ("Shape", "ShapeN"):
        return None
    moved = _moved(node.inputs[sizes.value_index], convolution)
    is_same = moved is not None and _agree(moved, back) and moved.margins == back.margins
    return moved.value if moved is not None and is_same else None


# ---- margins


def _attributes(
    convolution: PlanNode, added: _Moved, taken: _Moved, filter_dims: Any
) -> dict[str, Any] | None:
    """Those of the dilated convolution.

    None if the convolution has strides, dilations or margins of its own, or would have those of neither rule.
    """
    given, n = convolution.attributes, len(convolution.attributes["strides"]) - 2
    if given["padding"] != "VALID" or {*given["strides"], *given["dilations"]} != {1}:
        return None
    if filter_dims is None or len(added.blocks) != n + 1:
        return None
    differences = [_less(a, t) for a, t in zip(added.margins, taken.margins)]
    is_last = is_channels_last(given["data_format"])
    blocks = list(added.blocks)
    channels = -1 if is_last else 0
    if blocks[channels] != 1 or differences[channels] != (0, 0):
        return None
    del differences[channels]
    dilations = [1, *blocks]
    rates = blocks[:-1] if is_last else blocks[1:]
    if all(each == (0, 0) for each in differences):
        return {**given, "dilations": dilations}
    if None in filter_dims[:n]:
        return None
    totals = [(size - 1) * rate for size, rate in zip(filter_dims, rates)]
    if differences == [(total // 2, total - total // 2) for total in totals]:
        return {**given, "dilations": dilations, "padding": "SAME"}
    return None


def _less(added: tuple[Any, Any], taken: tuple[Any, Any]) -> tuple[int, int] | None:
    """The margin that is left of what is added when places are taken off again."""
    if any(a[1:] != t[1:] for a, t in zip(added, taken)):
        return None
    return added[0].number - taken[0].number, added[1].number - taken[1].number


def _entries(x: PlanOutput) -> Any:
    """The elements of a tensor of integers of known shape, as an array of `_Entry`s; None if it is none."""
    value = constant_value(x)
    if value is not None:
        return _array([_Entry(int(n)) for n in value.flat], value.shape)
    node, dims = x.op, x.dims
    if dims is None or None in dims or node.control_inputs:
        return None
    if node.type == "Identity":
        return _entries(node.inputs[0])
    if node.type in ("Pack", "ConcatV2", "StridedSlice", "AddV2"):
        parts = [_entries(each) for each in node.inputs]
        if all(part is not None for part in parts):
            return _composed(node, parts)
    return _own_entries(x)


def _composed(node: PlanNode, parts: list[Any]) -> Any:
    if node.type == "Pack":
        return np.stack(parts, node.attributes["axis"])
    if node.type == "ConcatV2":
        return np.concatenate(parts[:-1], parts[-1].item().number)
    if node.type == "StridedSlice":
        begin, end, strides = [[each.number for each in part] for part in parts[1:]]
        where = dense_entries(parts[0].ndim, begin, end, strides, masks_of(node))
        found = parts[0][tuple(where)]
        return found if isinstance(found, np.ndarray) else _array([found], ())
    first, second = np.broadcast_arrays(*parts)
    sums = [_sum(a, b) for a, b in zip(first.flat, second.flat)]
    return _own_entries(node.outputs[0]) if None in sums else _array(sums, first.shape)


def _sum(a: _Entry, b: _Entry) -> _Entry | None:
    if a.of is not None and b.of is not None:
        return None
    return (a if b.of is None else b)._replace(number=a.number + b.number)


def _own_entries(x: PlanOutput) -> Any:
    """Elements of which nothing is known but whose they are."""
    dims: Any = x.dims
    return _array([_Entry(0, x, place) for place in np.ndindex(*dims)], dims)


def _array(entries: list[_Entry | None], shape: Any) -> Any:
    result = np.empty(len(entries), object)
    for i, each in enumerate(entries):
        result[i] = each
    return result.reshape(shape)
