"""Transforms of nodes' names, attributes and of what they print: see `graph_transforms.py`."""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Iterator
from typing import Any

import flowstone as tf
from flowstone.framework.declarations.registry import registry
from flowstone.framework.graphs.graph_def import op_def
from flowstone.framework.graphs.later_attributes import LATER_ATTRIBUTES
from flowstone.tools.transform_parts import Arguments, node_of, one, rewired, with_nodes

__all__ = [
    "add_default_attributes",
    "backport_concatv2",
    "backport_tensor_array_v3",
    "insert_logging",
    "obfuscate_names",
]

_FLOW = "replacement_flow_node"
_DIGITS = string.digits + string.ascii_lowercase + string.ascii_uppercase


def obfuscate_names(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Gives all nodes but the inputs and outputs short names: numbers to the base of 62."""
    kept = {*inputs, *outputs}
    free = (name for name in map(_short, itertools.count()) if name not in kept)
    names = {node.name: node.name if node.name in kept else next(free) for node in graph.node}
    return _with_sources(graph, lambda name: name.replace(node_of(name), names[node_of(name)], 1), names)


def _short(number: int) -> str:
    text = ""
    while number or not text:
        number, digit = divmod(number, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text


def _with_sources(graph: Any, source: Callable[[str], str], names: dict[str, str]) -> Any:
    made = [rewired(node, source) for node in graph.node]
    for node in made:
        node.name = names.get(node.name, node.name)
    return with_nodes(graph, made)


def add_default_attributes(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Says the default of every attribute of TensorFlow 1.15 that a node says nothing of."""
    made = with_nodes(graph, list(graph.node))
    for node in made.node:
        declared, known = registry.get(node.op), {*node.attr, *LATER_ATTRIBUTES.get(node.op, ())}
        for attribute in () if declared is None else op_def(declared).attr:
            if attribute.HasField("default_value") and attribute.name not in known:
                node.attr[attribute.name].CopyFrom(attribute.default_value)
    return made


def backport_concatv2(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Makes ConcatV2 the older Concat, whose axis comes first."""
    made = with_nodes(graph, list(graph.node))
    for node in made.node:
        if node.op == "ConcatV2":
            node.op = "Concat"
            own = [name for name in node.input if not name.startswith("^")]
            rest = [name for name in node.input if name.startswith("^")]
            del node.input[:]
            node.input.extend([own[-1], *own[:-1], *rest])
            del node.attr["Tidx"]
    return made


def backport_tensor_array_v3(graph: Any, inputs: list[str], outputs: list[str], _: Arguments) -> Any:
    """Makes the ops of TensorArrays those of version two; the first flow of an array becomes a constant."""
    flows = {f"{node.name}:1": f"{node.name}/{_FLOW}" for node in graph.node if node.op == "TensorArrayV3"}
    nodes = []
    for node in graph.node:
        made = rewired(node, lambda name: flows.get(name, name))
        nodes.append(made)
        if node.op.startswith("TensorArray") and node.op.endswith("V3"):
            made.op = f"{node.op[:-1]}2"
        if node.op == "TensorArrayV3":
            flow = tf.NodeDef(name=f"{node.name}/{_FLOW}", op="Const", device=node.device)
            flow.attr["dtype"].type = tf.float32.as_datatype_enum
            flow.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(0.0))
            nodes.append(flow)
    return with_nodes(graph, nodes)


def insert_logging(graph: Any, inputs: list[str], outputs: list[str], arguments: Arguments) -> Any:
    """Has nodes print their value whenever it is computed: those of the types `op` whose names begin with
    one of `prefix`, by default all that another node takes.

    `message` comes before the value, with `show_op` and `show_name` also type and name; `first_n`: how often
    (-1: always); `summarize`: how many elements (1024).
    """
    taken = {name for node in graph.node for name in node.input if not name.startswith("^")}
    printed: dict[str, Any] = {}
    types = _first_types(graph)
    for node in graph.node:
        if _is_meant(node, arguments) and (node.name in taken or f"{node.name}:0" in taken):
            printed[node.name] = _printing(node, arguments, types[node.name])

    def source(name: str) -> str:
        base = node_of(name)
        is_first = not name.startswith("^") and name in (base, f"{base}:0")
        return f"{printed[base].name}:0" if is_first and base in printed else name

    def nodes() -> Iterator[Any]:
        for node in graph.node:
            yield rewired(node, source)
            if node.name in printed:
                yield printed[node.name]

    return with_nodes(graph, list(nodes()))


def _is_meant(node: Any, arguments: Arguments) -> bool:
    types, prefixes = arguments.get("op"), arguments.get("prefix")
    return (not types or node.op in types) and (
        not prefixes or any(node.name.startswith(prefix) for prefix in prefixes)
    )


def _first_types(graph: Any) -> dict[str, int]:
    """The type of the first output of each node that has one, as a number of DataType."""
    with tf.Graph().as_default() as whole:
        tf.import_graph_def(graph, name="")
    found = {op.name: op.outputs[0].dtype.base_dtype for op in whole.get_operations() if op.outputs}
    return {name: dtype.as_datatype_enum for name, dtype in found.items()}


def _printing(node: Any, arguments: Arguments, kind: int) -> Any:
    """The node that prints the first output of `node`."""
    made = tf.NodeDef(name=f"{node.name}__print__", op="Print", device=node.device)
    made.input.extend([f"{node.name}:0"] * 2)
    message = ""
    if _is_true(arguments, "show_op"):
        message += f";{node.op};"
    if _is_true(arguments, "show_name"):
        message += f";{made.name};"
    made.attr["message"].s = (message + one(arguments, "message", "")).encode()
    made.attr["first_n"].i = int(one(arguments, "first_n", "-1"))
    made.attr["summarize"].i = int(one(arguments, "summarize", "1024"))
    made.attr["T"].type = kind
    made.attr["U"].list.type.append(kind)
    return made


def _is_true(arguments: Arguments, name: str) -> bool:
    return one(arguments, name, "false").lower() in ("true", "1")
