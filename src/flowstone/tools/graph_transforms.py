"""`tensorflow.tools.graph_transforms.TransformGraph`: changes a GraphDef step by step, for inference.

    TransformGraph(graph_def, ["x"], ["out"], ["strip_unused_nodes", "remove_nodes(op=Identity)"])

A transform is a name, with arguments in brackets; `TRANSFORMS` has them. Nodes keep their names: a folded
constant has that of the node whose value it is.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.framework.declarations.registry import registry
from flowstone.framework.graphs.graph_def_parts import extract_sub_graph
from flowstone.framework.graphs.inference_graphs import fold_batch_norms, strip_unused
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES
from flowstone.rewriting.analyses.frames import LOOP_TYPES
from flowstone.tools.convolution_transforms import (
    flatten_atrous_conv,
    fuse_pad_and_conv,
    fuse_resize_and_conv,
    fuse_resize_pad_and_conv,
)
from flowstone.tools.node_transforms import (
    add_default_attributes,
    backport_concatv2,
    backport_tensor_array_v3,
    insert_logging,
    obfuscate_names,
)
from flowstone.tools.transform_parts import Arguments, invalid, node_of, one, rewired, with_nodes
from flowstone.tools.weight_transforms import quantize_weights, round_weights

__all__ = ["TRANSFORMS", "TransformGraph"]

_CALL = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_ARGUMENT = re.compile(r'\s*(\w+)\s*=\s*("[^"]*"|[^,"]+?)\s*(?:,|$)')


def TransformGraph(
    input_graph_def: Any, inputs: Sequence[str], outputs: Sequence[str], transforms: Sequence[str]
) -> Any:
    """The GraphDef after the transforms, in their order.

    Args:
        input_graph_def: the GraphDef, which stays as it is.
        inputs, outputs: the names of the nodes that are fed and fetched.
        transforms: names of transforms, with arguments in brackets.

    Raises InvalidArgumentError for a transform or an argument that is not known, and for a malformed one.
    """
    graph = tf.GraphDef()
    graph.CopyFrom(input_graph_def)
    for text in transforms:
        name, arguments = _parsed(text)
        graph = TRANSFORMS[name](graph, list(inputs), list(outputs), arguments)
    return graph


def _parsed(text: str) -> tuple[str, Arguments]:
    found = _CALL.fullmatch(text)
    if found is None:
        raise invalid(f"Transform {text!r} is malformed: expected name(argument=value, ...).")
    name, rest = found.group(1), (found.group(2) or "").strip()
    if name not in TRANSFORMS:
        raise invalid(f"Transform '{name}' not recognized. Flowstone has {', '.join(sorted(TRANSFORMS))}.")
    arguments: Arguments = {}
    while rest:
        part = _ARGUMENT.match(rest)
        if part is None:
            raise invalid(f"Transform {text!r} is malformed at {rest!r}.")
        arguments.setdefault(part.group(1), []).append(part.group(2).strip('"'))
        rest = rest[part.end() :]
    return name, arguments


# ---- nodes


def _strip_unused_nodes(graph: Any, inputs: list[str], outputs: list[str], arguments: Arguments) -> Any:
    """Leaves what the outputs need; inputs become placeholders, by `type` or `name` with `type_for_name`,
    unless they are. InvalidArgumentError for outputs that are not there."""
    by_name = dict(zip(arguments.get("name", []), arguments.get("type_for_name", []), strict=True))
    shapes = dict(zip(arguments.get("name", []), arguments.get("shape_for_name", [])))
    kinds = {node.name: node for node in graph.node}
    types = []
    for name in inputs:
        given = by_name.get(name, arguments.get("type", [None])[0])
        node = kinds.get(name)
        own = (
            node.attr["dtype"].type
            if node is not None and "dtype" in node.attr
            else tf.float32.as_datatype_enum
        )
        types.append(tf.as_dtype(given).as_datatype_enum if given else own)
    for name in outputs:
        if name not in kinds:
            raise tf.errors.InvalidArgumentError(None, None, f"Couldn't find the output {name} in the graph")
    made = strip_unused(graph, inputs, outputs, types)
    for node in made.node:
        if node.name in inputs and kinds[node.name].op == "Placeholder":
            node.CopyFrom(kinds[node.name])
            continue
        shape = shapes.get(node.name, arguments.get("shape", [None])[0])
        if node.name in inputs and shape is not None:
            dims = [int(n) for n in shape.split(",") if n.strip()]
            sizes = [None if n < 0 else n for n in dims]
            node.attr["shape"].shape.CopyFrom(tf.TensorShape(sizes).as_proto())
    return made


def _remove_nodes(graph: Any, inputs: list[str], outputs: list[str], arguments: Arguments) -> Any:
    """Takes nodes of the types `op` out; what took them takes their first input, or at most `max_inputs`."""
    most = int(one(arguments, "max_inputs", "1"))
    kept = {*inputs, *outputs}
    gone: dict[str, str] = {}
    for node in graph.node:
        own = [name for name in node.input if not name.startswith("^")]
        if node.op in arguments.get("op", []) and node.name not in kept and 0 < len(own) <= most:
            gone[node.name] = own[0]

    def source(name: str) -> str:
        while not name.startswith("^") and node_of(name) in gone:
            name = gone[node_of(name)]
        if name.startswith("^") and node_of(name) in gone:
            return f"^{node_of(source(node_of(name)))}"
        return name

    return with_nodes(graph, [rewired(node, source) for node in graph.node if node.name not in gone])


def _merge_duplicate_nodes(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Leaves one of several nodes of the same type, attributes and inputs, none of which has state."""
    kept, merged = {*inputs, *outputs}, {}
    nodes = list(_in_order(graph))
    while True:
        seen: dict[bytes, str] = {}
        found = {}
        for node in nodes:
            key = tf.NodeDef()
            key.CopyFrom(node)
            key.name = ""
            text = key.SerializeToString(deterministic=True)
            if node.name in kept or _is_stateful(node):
                continue
            first = seen.setdefault(text, node.name)
            if first != node.name:
                found[node.name] = first
        if not found:
            return with_nodes(graph, nodes)
        merged.update(found)

        def source(name: str, found: dict[str, str] = found) -> str:
            base = node_of(name)
            return name if base not in found else name.replace(base, found[base], 1)

        nodes = [rewired(node, source) for node in nodes if node.name not in found]


def _is_stateful(node: Any) -> bool:
    declared = registry.get(node.op)
    return node.op in ("Placeholder", "PlaceholderWithDefault") or declared is None or bool(declared.stateful)


def _is_control_flow(node: Any) -> bool:
    return node.op in LOOP_TYPES or node.op in SWITCHES or node.op in MERGES


def _in_order(graph: Any) -> Sequence[Any]:
    """The nodes, each behind its inputs."""
    nodes = {node.name: node for node in graph.node}
    done: dict[str, Any] = {}
    for start in graph.node:
        waiting = [start.name]
        open_nodes: set[str] = set()
        while waiting:
            name = waiting[-1]
            sources = map(node_of, nodes[name].input)
            missing = [each for each in sources if each in nodes and each not in done]
            if name in done or not missing or name in open_nodes:
                done.setdefault(name, nodes[name])
                waiting.pop()
                continue
            open_nodes.add(name)
            waiting += reversed(missing)
    return list(done.values())


def _sort_by_execution_order(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Puts each node behind its inputs."""
    return with_nodes(graph, _in_order(graph))


# ---- values


def _fold_constants(graph: Any, inputs: list[str], outputs: list[str], arguments: Arguments) -> Any:
    """Computes what depends on constants alone, and leaves what the outputs need."""
    ignores = one(arguments, "ignore_errors", "false").lower() in ("true", "1")
    part = extract_sub_graph(graph, outputs)
    known: set[str] = set()
    for node in _in_order(part):
        sources = [node_of(name) for name in node.input]
        if (
            node.name in inputs
            or _is_stateful(node)
            or _is_control_flow(node)
            or any(name.startswith("^") for name in node.input)
        ):
            continue
        if node.op == "Const" or (sources and all(name in known for name in sources)):
            known.add(node.name)
    taken = {node_of(name) for node in part.node if node.name not in known for name in node.input}
    wanted = [
        node.name
        for node in part.node
        if node.name in known and node.op != "Const" and (node.name in taken or node.name in outputs)
    ]
    values = _values(part, wanted, ignores)
    nodes = []
    for node in part.node:
        if node.name in values:
            made = tf.NodeDef(name=node.name, op="Const", device=node.device)
            made.attr["dtype"].type = tf.as_dtype(values[node.name].dtype).as_datatype_enum
            made.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(values[node.name]))
            nodes.append(made)
        else:
            nodes.append(node)
    return extract_sub_graph(with_nodes(part, nodes), outputs)


def _values(graph: Any, names: Sequence[str], ignores: bool) -> dict[str, Any]:
    """The values of nodes with one output, by their names."""
    with tf.Graph().as_default() as whole, tf.Session() as session:
        tf.import_graph_def(graph, name="")
        found = {}
        for name in names:
            operation = whole.get_operation_by_name(name)
            if len(operation.outputs) != 1:
                continue
            try:
                found[name] = session.run(operation.outputs[0])
            except tf.errors.OpError:
                if not ignores:
                    raise
    return found


def _fold_batch_norms(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Multiplies a scale behind a convolution or product into its weights, where both are constant."""
    folded = fold_batch_norms(graph)
    nodes = {node.name: node for node in folded.node}
    uses: dict[str, int] = {}
    for node in folded.node:
        for name in node.input:
            uses[node_of(name)] = uses.get(node_of(name), 0) + 1
    for node in list(folded.node):
        if node.op == "Mul" and len(node.input) == 2:
            _fold_scale(node, nodes, uses, outputs)
    return with_nodes(folded, [node for node in folded.node if node.name in nodes])


def _fold_scale(node: Any, nodes: dict[str, Any], uses: dict[str, int], outputs: list[str]) -> None:
    product, scale = (nodes.get(node_of(name)) for name in node.input)
    if product is None or scale is None or scale.op != "Const" or product.name in outputs:
        return
    weights = nodes.get(node_of(product.input[1])) if product.op in ("Conv2D", "MatMul") else None
    if weights is None or weights.op != "Const" or uses.get(product.name) != 1 or uses.get(weights.name) != 1:
        return
    factors = tf.make_ndarray(scale.attr["value"].tensor)
    values = tf.make_ndarray(weights.attr["value"].tensor)
    if factors.ndim != 1 or factors.shape[0] != values.shape[-1] or product.attr["transpose_b"].b:
        return
    weights.attr["value"].tensor.CopyFrom(tf.make_tensor_proto((values * factors).astype(values.dtype)))
    name = node.name
    node.CopyFrom(product)
    node.name = name
    del nodes[product.name]
    if uses.get(scale.name) == 1:
        del nodes[scale.name]


# ---- attributes, devices, names


def _changed(change: Callable[[Any, Arguments], None]) -> Callable[..., Any]:
    """A transform that changes each node by itself."""

    def transform(graph: Any, inputs: list[str], outputs: list[str], arguments: Arguments) -> Any:
        made = with_nodes(graph, list(graph.node))
        for node in made.node:
            change(node, arguments)
        return made

    transform.__doc__ = change.__doc__
    return transform


def _fits(node: Any, arguments: Arguments) -> bool:
    return fnmatch.fnmatchcase(node.op, one(arguments, "op_name", "*"))


def _remove_attribute(node: Any, arguments: Arguments) -> None:
    """Takes the attribute `attribute_name` from nodes of type `op_name`, by default all."""
    name = one(arguments, "attribute_name")
    if _fits(node, arguments) and name in node.attr:
        del node.attr[name]


def _rename_attribute(node: Any, arguments: Arguments) -> None:
    """Gives an attribute another name: `old_attribute_name`, `new_attribute_name`, `op_name`."""
    old, new = one(arguments, "old_attribute_name"), one(arguments, "new_attribute_name")
    if _fits(node, arguments) and old in node.attr:
        node.attr[new].CopyFrom(node.attr[old])
        del node.attr[old]


def _rename_op(node: Any, arguments: Arguments) -> None:
    """Gives nodes of the type `old_op_name` the type `new_op_name`."""
    if node.op == one(arguments, "old_op_name"):
        node.op = one(arguments, "new_op_name")


def _remove_device(node: Any, arguments: Arguments) -> None:
    """Forgets where nodes are to run."""
    node.device = ""


def _set_device(node: Any, arguments: Arguments) -> None:
    """Says where nodes run: on `device`; with `if_default` only those that say nothing."""
    if not node.device or one(arguments, "if_default", "false").lower() not in ("true", "1"):
        node.device = one(arguments, "device")


def _remove_control_dependencies(node: Any, arguments: Arguments) -> None:
    """Takes all control inputs away."""
    own = [name for name in node.input if not name.startswith("^")]
    del node.input[:]
    node.input.extend(own)


def _rename_node(graph: Any, inputs: list[str], outputs: list[str], arguments: Arguments) -> Any:
    """Gives the node `old_node_name` the name `new_node_name`."""
    old, new = one(arguments, "old_node_name"), one(arguments, "new_node_name")
    if any(node.name == new for node in graph.node):
        raise invalid(f"A node named {new} is in the graph already.")
    nodes = []
    for node in graph.node:
        made = rewired(node, lambda name: name if node_of(name) != old else name.replace(old, new, 1))
        made.name = new if node.name == old else node.name
        nodes.append(made)
    return with_nodes(graph, nodes)


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "add_default_attributes": add_default_attributes,
    "backport_concatv2": backport_concatv2,
    "backport_tensor_array_v3": backport_tensor_array_v3,
    "flatten_atrous_conv": flatten_atrous_conv,
    "fold_batch_norms": _fold_batch_norms,
    "fold_constants": _fold_constants,
    "fold_old_batch_norms": _fold_batch_norms,
    "fuse_pad_and_conv": fuse_pad_and_conv,
    "fuse_resize_and_conv": fuse_resize_and_conv,
    "fuse_resize_pad_and_conv": fuse_resize_pad_and_conv,
    "insert_logging": insert_logging,
    "merge_duplicate_nodes": _merge_duplicate_nodes,
    "obfuscate_names": obfuscate_names,
    "quantize_weights": quantize_weights,
    "remove_attribute": _changed(_remove_attribute),
    "remove_control_dependencies": _changed(_remove_control_dependencies),
    "remove_device": _changed(_remove_device),
    "remove_nodes": _remove_nodes,
    "rename_attribute": _changed(_rename_attribute),
    "rename_node": _rename_node,
    "rename_op": _changed(_rename_op),
    "round_weights": round_weights,
    "set_device": _changed(_set_device),
    "sort_by_execution_order": _sort_by_execution_order,
    "strip_unused_nodes": _strip_unused_nodes,
}
"""The transforms by name: functions of the graph, its inputs and outputs, and the arguments."""
