"""Transforms of `TransformGraph` that join a convolution with what only moves its images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.tools.transform_parts import Arguments, node_of, with_nodes

__all__ = ["flatten_atrous_conv", "fuse_pad_and_conv", "fuse_resize_and_conv", "fuse_resize_pad_and_conv"]

# From a convolution to the nodes that stand for it and for the nodes before it; None where it stays.
_Rule = Callable[["_Chains", Any], list[Any] | None]


class _Chains:
    """The nodes of a graph by name, and which of them serve one other node only."""

    def __init__(self, graph: Any, outputs: Sequence[str]) -> None:
        self.nodes = {node.name: node for node in graph.node}
        self._uses = Counter(node_of(name) for node in graph.node for name in node.input)
        self._uses.update(outputs)

    def is_sole(self, node: Any) -> bool:
        """Whether one input of one node is all that takes this node."""
        return self._uses[node.name] == 1

    def before(self, node: Any, types: str, place: int = 0) -> Any:
        """The node that `node` alone takes at an input, if its type is among the words of `types`."""
        if len(node.input) <= place:
            return None
        found = self.nodes.get(node_of(node.input[place]))
        return found if found is not None and found.op in types.split() and self.is_sole(found) else None

    def constant(self, name: str) -> Any:
        """The value of a constant; None for other nodes."""
        node = self.nodes.get(node_of(name))
        if node is None or node.op != "Const":
            return None
        return tf.make_ndarray(node.attr["value"].tensor)


def _replaced(graph: Any, outputs: Sequence[str], kind: str, rule: _Rule) -> Any:
    """The graph with what `rule` gives in place of nodes of the types `kind`.

    What is replaced is the node itself and those of the new nodes' names; nodes that nothing takes any more
    are left out if they served these.
    """
    chains = _Chains(graph, outputs)
    made: dict[str, list[Any]] = {}
    for node in graph.node:
        found = rule(chains, node) if node.op in kind.split() else None
        if found is not None:
            made[node.name] = found
    names = {node.name for nodes in made.values() for node in nodes}
    before = {node_of(name) for node in graph.node for name in node.input}
    nodes: list[Any] = []
    for node in graph.node:
        nodes += made.get(node.name, [] if node.name in names else [node])
    while True:
        taken = {node_of(name) for node in nodes for name in node.input} | {*outputs}
        kept = [node for node in nodes if node.name in taken or node.name not in before]
        if len(kept) == len(nodes):
            return with_nodes(graph, nodes)
        nodes = kept


# ---- convolutions of dilated filters


def flatten_atrous_conv(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Makes SpaceToBatchND, a convolution and BatchToSpaceND one convolution by a filter with zeros between.

    The filter is a constant. The images are padded as before; where the paddings are no constants, as SAME
    means it.
    """
    return _replaced(graph, outputs, "BatchToSpaceND", _flattened)


def _flattened(chains: _Chains, node: Any) -> list[Any] | None:
    product = chains.before(node, "Conv2D DepthwiseConv2dNative")
    split = None if product is None else chains.before(product, "SpaceToBatchND")
    if split is None or not _same(chains, split.input[1], node.input[1]):
        return None
    weights, rates = chains.constant(product.input[1]), chains.constant(node.input[1])
    if weights is None or rates is None or rates.shape != (2,) or product.attr["padding"].s != b"VALID":
        return None
    sizes = [(size - 1) * rate + 1 for size, rate in zip(weights.shape[:2], rates.tolist())]
    padding = _padding(chains.constant(split.input[2]), chains.constant(node.input[2]), sizes)
    if padding is None:
        return None
    dilated = np.zeros((*sizes, *weights.shape[2:]), weights.dtype)
    dilated[:: rates[0], :: rates[1]] = weights
    filters = chains.nodes[node_of(product.input[1])]
    name = filters.name if chains.is_sole(filters) else f"{node.name}_dilated_filter"
    made = tf.NodeDef(name=node.name, op=product.op, device=product.device)
    made.input.extend([split.input[0], name, *_controls(split, product, node)])
    for key in set(product.attr) & {"T", "data_format", "strides", "use_cudnn_on_gpu"}:
        made.attr[key].CopyFrom(product.attr[key])
    made.attr["padding"].s = padding
    return [_constant(name, dilated), made]


def _same(chains: _Chains, first: str, second: str) -> bool:
    values = chains.constant(first), chains.constant(second)
    return values[0] is not None and values[1] is not None and np.array_equal(*values)


def _padding(paddings: Any, crops: Any, sizes: list[int]) -> bytes | None:
    """The word for what is padded and not cropped again, for filters of these sizes, if there is one."""
    if paddings is None or crops is None:
        return b"SAME"
    left = (paddings - crops).tolist()
    if left == [[(size - 1) // 2, size // 2] for size in sizes]:
        return b"SAME"
    return b"VALID" if left == [[0, 0], [0, 0]] else None


def _controls(*nodes: Any) -> list[str]:
    return [name for node in nodes for name in node.input if name.startswith("^")]


def _constant(name: str, value: Any) -> Any:
    node = tf.NodeDef(name=name, op="Const")
    node.attr["dtype"].type = tf.as_dtype(value.dtype).as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))
    return node


# ---- convolutions of padded and resized images


def fuse_pad_and_conv(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Makes MirrorPad and Conv2D one FusedPadConv2D."""

    def rule(chains: _Chains, node: Any) -> list[Any] | None:
        pad = chains.before(node, "MirrorPad")
        if pad is None or not _is_plain(node):
            return None
        return [_fused(node, "FusedPadConv2D", [*pad.input[:2], node.input[1]], pad, [pad])]

    return _replaced(graph, outputs, "Conv2D", rule)


def fuse_resize_pad_and_conv(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Makes ResizeBilinear, MirrorPad and Conv2D one FusedResizeAndPadConv2D."""

    def rule(chains: _Chains, node: Any) -> list[Any] | None:
        pad = chains.before(node, "MirrorPad")
        resize = None if pad is None else chains.before(pad, "ResizeBilinear")
        if resize is None or not _is_plain(node) or resize.attr["half_pixel_centers"].b:
            return None
        return [_fused_resize(node, resize, pad.input[1], pad)]

    return _replaced(graph, outputs, "Conv2D", rule)


def fuse_resize_and_conv(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Makes ResizeBilinear and Conv2D one FusedResizeAndPadConv2D, without padding."""

    def rule(chains: _Chains, node: Any) -> list[Any] | None:
        resize = chains.before(node, "ResizeBilinear")
        if resize is None or not _is_plain(node) or resize.attr["half_pixel_centers"].b:
            return None
        none = _constant(f"{node.name}_dummy_paddings", np.zeros((4, 2), np.int32))
        return [none, _fused_resize(node, resize, none.name, None)]

    return _replaced(graph, outputs, "Conv2D", rule)


def _is_plain(node: Any) -> bool:
    """Whether a fused op can do what a convolution does: no dilated filter, channels last."""
    dilations = list(node.attr["dilations"].list.i) if "dilations" in node.attr else []
    return (
        all(size == 1 for size in dilations)
        and node.attr["data_format"].s in (b"", b"NHWC")
        and node.attr["padding"].s in (b"SAME", b"VALID")
    )


def _fused_resize(node: Any, resize: Any, paddings: str, pad: Any) -> Any:
    sources = [*resize.input[:2], paddings, node.input[1]]
    made = _fused(node, "FusedResizeAndPadConv2D", sources, pad, [resize] if pad is None else [resize, pad])
    made.attr["resize_align_corners"].b = resize.attr["align_corners"].b
    return made


def _fused(node: Any, kind: str, sources: Sequence[str], pad: Any, joined: Sequence[Any]) -> Any:
    made = tf.NodeDef(name=node.name, op=kind, device=node.device)
    made.input.extend([*sources, *_controls(*joined, node)])
    for key in ("T", "strides", "padding"):
        made.attr[key].CopyFrom(node.attr[key])
    made.attr["mode"].s = b"REFLECT" if pad is None else pad.attr["mode"].s
    return made
