"""Graphs for inference alone: placeholders for inputs, nothing that training needs, and batch normalisations
folded into the weights in front of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.graphs.graph_def_parts import extract_sub_graph, remove_training_nodes
from flowstone.framework.types.dtypes import as_dtype
from flowstone.framework.types.tensor_proto import make_ndarray, make_tensor_proto, messages

__all__ = ["fold_batch_norms", "optimize_for_inference", "strip_unused"]

_FUSED = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_GLOBAL = "BatchNormWithGlobalNormalization"
_PRODUCTS = ("Conv2D", "DepthwiseConv2dNative")


def strip_unused(
    input_graph_def: Any,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: int | Sequence[int],
) -> Any:
    """The GraphDef of what the outputs need, with placeholders for the inputs.

    `placeholder_type_enum`: the DataType of the placeholders, one for all or one each. Raises KeyError for an
    input that is not there, AssertionError for an output.
    """
    types = (
        [placeholder_type_enum] * len(input_node_names)
        if isinstance(placeholder_type_enum, int)
        else list(placeholder_type_enum)
    )
    wanted = dict(zip(input_node_names, types, strict=True))
    missing = sorted(set(wanted) - {node.name for node in input_graph_def.node})
    if missing:
        raise KeyError(f"The following input nodes were not found: {missing}")
    graph = messages("graph_pb2").GraphDef()
    graph.CopyFrom(input_graph_def)
    for node in graph.node:
        if node.name not in wanted:
            continue
        shape = node.attr["shape"].shape if "shape" in node.attr else None
        placeholder = messages("node_def_pb2").NodeDef(name=node.name, op="Placeholder")
        placeholder.attr["dtype"].type = wanted[node.name]
        if shape is not None:
            placeholder.attr["shape"].shape.CopyFrom(shape)
        node.CopyFrom(placeholder)
    return extract_sub_graph(graph, output_node_names)


def optimize_for_inference(
    input_graph_def: Any,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: int | Sequence[int],
    toco_compatible: bool = False,
) -> Any:
    """A frozen GraphDef for inference: unused nodes, checks and Identities are left out, and batch
    normalisations folded. See `strip_unused` for the arguments; outputs keep their names. All graphs are
    `toco_compatible`: they have no fused ops of their own."""
    del toco_compatible
    graph = strip_unused(input_graph_def, input_node_names, output_node_names, placeholder_type_enum)
    graph = remove_training_nodes(graph, output_node_names)
    return extract_sub_graph(_folded(graph, frozenset(output_node_names)), output_node_names)


# ---- batch normalisation


class _Normalization(NamedTuple):
    """A batch normalisation by constants: y = scale * x + shift, of the product `product`, whose weights are
    the constant `weights`."""

    product: Any
    weights: Any
    scale: Any
    shift: Any


def fold_batch_norms(input_graph_def: Any) -> Any:
    """The GraphDef with a BiasAdd in place of each batch normalisation by constants, and its scale in the
    weights of the convolution in front of it, where these are constant and nothing else takes them."""
    return _folded(input_graph_def, frozenset())


def _folded(input_graph_def: Any, outputs: frozenset[str]) -> Any:
    """The same, where the values of `outputs` are wanted, too."""
    nodes = {node.name: node for node in input_graph_def.node}
    uses = Counter(name.lstrip("^").partition(":")[0] for node in input_graph_def.node for name in node.input)
    uses.update(outputs)
    graph = messages("graph_pb2").GraphDef()
    graph.CopyFrom(input_graph_def)
    del graph.node[:]
    replaced: dict[str, list[Any]] = {}
    for node in input_graph_def.node:
        found = _normalization(node, nodes, uses) if node.op in (*_FUSED, _GLOBAL) else None
        if found is not None:
            replaced[found.weights.name] = [_constant(found.weights.name, _scaled(found), found.weights)]
            replaced[node.name] = _shifted(node, found)
    for node in input_graph_def.node:
        graph.node.extend(replaced.get(node.name, [node]))
    return graph


def _value(name: str, nodes: dict[str, Any]) -> Any:
    node = nodes.get(name.removesuffix(":0"))
    return make_ndarray(node.attr["value"].tensor) if node is not None and node.op == "Const" else None


def _normalization(node: Any, nodes: dict[str, Any], uses: Counter[str]) -> _Normalization | None:
    """What `node` does, if it can be folded."""
    if node.op == _GLOBAL:
        mean, variance, beta, gamma = (_value(name, nodes) for name in node.input[1:5])
        epsilon, scaled = node.attr["variance_epsilon"].f, node.attr["scale_after_normalization"].b
        gamma = gamma if scaled or gamma is None else np.ones_like(gamma)
    else:
        if node.attr["is_training"].b or _others_used(node, nodes):
            return None
        gamma, beta, mean, variance = (_value(name, nodes) for name in node.input[1:5])
        epsilon = node.attr["epsilon"].f
    product = nodes.get(node.input[0])
    if product is None or product.op not in _PRODUCTS or uses[product.name] != 1:
        return None
    weights = nodes.get(product.input[1])
    if weights is None or weights.op != "Const" or uses[weights.name] != 1:
        return None
    if any(part is None for part in (mean, variance, beta, gamma)):
        return None
    if _layout(product) != (_layout(node) if node.op in _FUSED else b"NHWC"):
        return None
    scale = gamma / np.sqrt(variance + epsilon)
    return _Normalization(product, weights, scale, beta - mean * scale)


def _layout(node: Any) -> Any:
    return node.attr["data_format"].s or b"NHWC"


def _others_used(node: Any, nodes: dict[str, Any]) -> bool:
    """Whether something takes another output than the normalised values, or waits for the node."""
    others = {f"{node.name}:{i}" for i in range(1, 6)} | {f"^{node.name}"}
    return any(others.intersection(each.input) for each in nodes.values())


def _scaled(found: _Normalization) -> Any:
    weights = make_ndarray(found.weights.attr["value"].tensor)
    if found.product.op == "DepthwiseConv2dNative":
        return weights * found.scale.reshape(weights.shape[2:])
    return weights * found.scale


def _constant(name: str, value: Any, like: Any) -> Any:
    node = messages("node_def_pb2").NodeDef(name=name, op="Const")
    dtype = like.attr["dtype"].type
    node.attr["dtype"].type = dtype
    node.attr["value"].tensor.CopyFrom(make_tensor_proto(value, dtype=as_dtype(dtype)))
    return node


def _shifted(node: Any, found: _Normalization) -> list[Any]:
    """The nodes in place of the normalisation: its shift, added."""
    offset = _constant(f"{node.name}_bn_offset", found.shift, found.weights)
    added = messages("node_def_pb2").NodeDef(
        name=node.name, op="BiasAdd", input=[found.product.name, offset.name], device=node.device
    )
    added.attr["T"].CopyFrom(node.attr["T"])
    added.attr["data_format"].s = _layout(found.product)
    return [offset, added]
