"""Parts of a GraphDef: the nodes that some need, constants for variables, no nodes for training alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from flowstone.framework.graphs.graph import Graph
from flowstone.framework.process import logging
from flowstone.framework.types.dtypes import as_dtype
from flowstone.framework.types.shape import TensorShape
from flowstone.framework.types.tensor_proto import make_tensor_proto, messages

__all__ = [
    "convert_variables_to_constants",
    "extract_sub_graph",
    "must_run_on_cpu",
    "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]

_INT32, _STRING = 3, 7
_HOST_TYPES = {
    "Const": ("dtype", {_INT32, _STRING}),
    "DynamicStitch": ("T", {_INT32}),
    "Cast": ("SrcT", {_INT32}),
}
_VARIABLE_OPS = frozenset({"Assign", "AssignAdd", "AssignSub", "Variable", "VariableV2"})
_VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2"})
_READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd"})
_CHECKS = frozenset({"CheckNumerics", "Identity"})


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether an operation, or a NodeDef, has values that lie in the host's memory: constants of texts and
    int32, joins and casts of int32; with `pin_variables_on_cpu` also variables and their assignments."""
    message = getattr(node, "node_def", node)
    if pin_variables_on_cpu and message.op in _VARIABLE_OPS:
        return True
    attribute, types = _HOST_TYPES.get(message.op, ("", ()))
    return bool(attribute) and message.attr[attribute].type in types


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """The static shape of a tensor of `graph` that a NodeDef's input names. KeyError for a name that is not
    there."""
    name = input_name if ":" in input_name else f"{input_name}:0"
    return graph.get_tensor_by_name(name).get_shape()


# ---- extraction


def _node_of(input_name: str) -> str:
    return input_name.lstrip("^").partition(":")[0]


def _checked(graph_def: Any) -> Any:
    if getattr(getattr(graph_def, "DESCRIPTOR", None), "name", "") != "GraphDef":
        raise TypeError("graph_def must be a graph_pb2.GraphDef proto.")
    return graph_def


def _with_nodes(graph_def: Any, nodes: Iterable[Any]) -> Any:
    """A GraphDef of these nodes, with the functions and versions of `graph_def`."""
    part = messages("graph_pb2").GraphDef()
    part.node.extend(nodes)
    part.library.CopyFrom(graph_def.library)
    part.versions.CopyFrom(graph_def.versions)
    return part


def extract_sub_graph(graph_def: Any, dest_nodes: Sequence[str]) -> Any:
    """The GraphDef of the named nodes and all that they need, in the order of `graph_def`.

    TypeError for what is no GraphDef and for a text in place of a list, AssertionError for a name that is not
    there.
    """
    graph_def = _checked(graph_def)
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be a list.")
    nodes = {node.name: node for node in graph_def.node}
    for name in dest_nodes:
        if name not in nodes:
            raise AssertionError(f"{name} is not in graph")
    needed: set[str] = set()
    waiting = list(dest_nodes)
    while waiting:
        name = waiting.pop()
        if name not in needed and name in nodes:
            needed.add(name)
            waiting += [_node_of(each) for each in nodes[name].input]
    return _with_nodes(graph_def, (node for node in graph_def.node if node.name in needed))


# ---- freezing


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Sequence[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> Any:
    """The GraphDef of what the outputs need, with a constant of its value in place of each variable.

    Args:
        sess: a session that has the variables' values.
        input_graph_def: the GraphDef, of the session's graph.
        output_node_names: the names of the nodes to keep, with all that they need.
        variable_names_whitelist: only these variables become constants.
        variable_names_blacklist: these variables stay.

    Raises AssertionError for an output that is not there, FailedPreconditionError for a variable without a
    value, ValueError where an operation takes a variable's handle that no constant can stand for.
    """
    part = extract_sub_graph(input_graph_def, output_node_names)
    nodes = {node.name: node for node in part.node}
    chosen = [
        node.name
        for node in part.node
        if node.op in _VARIABLES
        and (variable_names_whitelist is None or node.name in variable_names_whitelist)
        and (variable_names_blacklist is None or node.name not in variable_names_blacklist)
    ]
    values = dict(
        zip(chosen, sess.run([_value_tensor(sess.graph, nodes[name]) for name in chosen]), strict=True)
    )
    handles = _handles(part, [name for name in chosen if nodes[name].op == "VarHandleOp"])
    frozen = [_frozen(node, values, handles) for node in part.node]
    logging.info(f"Converted {len(chosen)} variables to const ops.")
    return _with_nodes(part, frozen)


def _value_tensor(graph: Graph, node: Any) -> Any:
    if node.op != "VarHandleOp":
        return graph.get_tensor_by_name(f"{node.name}:0")
    for op in graph.get_operation_by_name(node.name).outputs[0].consumers():
        if op.type == "ReadVariableOp" and op._control_flow_context is None:
            return op.outputs[0]
    raise ValueError(f"No ReadVariableOp reads the variable '{node.name}'.")


def _handles(part: Any, variables: Iterable[str]) -> dict[str, str]:
    """The nodes that hand on a variable's handle, with the variable's name. ValueError for a node that would
    need the handle itself."""
    handles = {name: name for name in variables}
    for node in _in_order(part):
        held = [handles[_node_of(name)] for name in node.input if _node_of(name) in handles]
        if not held or node.name in handles:
            continue
        if node.op in ("Enter", "Identity", "Switch"):
            handles[node.name] = held[0]
        elif node.op not in _READS:
            raise ValueError(f"Node '{node.name}' ({node.op}) needs the variable '{held[0]}', not its value.")
    return handles


def _in_order(part: Any) -> list[Any]:
    """The nodes, those that hand on a value after those that they take it from, as far as the order goes."""
    nodes = {node.name: node for node in part.node}
    order: list[Any] = []
    seen: set[str] = set()
    for first in part.node:
        stack = [(first.name, False)]
        while stack:
            name, ready = stack.pop()
            if ready:
                order.append(nodes[name])
            elif name in nodes and name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack += [(_node_of(each), False) for each in nodes[name].input]
    return order


def _frozen(node: Any, values: dict[str, Any], handles: dict[str, str]) -> Any:
    """The node in a graph without the variables that have `values`."""
    new = messages("node_def_pb2").NodeDef(name=node.name, device=node.device)
    if node.name in values:
        new.op = "Const"
        dtype = node.attr["dtype"].type
        new.attr["dtype"].type = dtype
        new.attr["value"].tensor.CopyFrom(make_tensor_proto(values[node.name], dtype=as_dtype(dtype)))
        return new
    if node.op in _READS and _node_of(node.input[0]) in handles:
        return _frozen_read(node, new)
    new.CopyFrom(node)
    if node.name in handles:
        new.attr["T"].type = make_tensor_proto(values[handles[node.name]]).dtype
    return new


def _frozen_read(node: Any, new: Any) -> Any:
    new.input.extend(node.input)
    if node.op == "ReadVariableOp":
        new.op = "Identity"
        new.attr["T"].CopyFrom(node.attr["dtype"])
        return new
    new.attr["Tparams"].CopyFrom(node.attr["dtype"])
    new.attr["Tindices"].CopyFrom(node.attr["Tindices"])
    if node.op == "ResourceGatherNd":
        new.op = "GatherNd"
        return new
    new.op = "Gather"
    new.attr["validate_indices"].CopyFrom(node.attr["validate_indices"])
    return new


# ---- training


def remove_training_nodes(input_graph: Any, protected_nodes: Collection[str] | None = None) -> Any:
    """The GraphDef without nodes that only hand on or check values (Identity, CheckNumerics).

    Nodes that wait, for which others wait, and `protected_nodes` stay.
    """
    protected = set(protected_nodes or ())
    waited_for = {name[1:] for node in input_graph.node for name in node.input if name.startswith("^")}
    inputs: dict[str, str] = {}
    for node in input_graph.node:
        removable = node.op in _CHECKS and node.name not in protected and node.name not in waited_for
        if removable and len(node.input) == 1:
            inputs[node.name] = node.input[0]
    kept = []
    for node in input_graph.node:
        if node.name in inputs:
            continue
        new = messages("node_def_pb2").NodeDef()
        new.CopyFrom(node)
        new.input[:] = [_past(name, inputs) for name in node.input]
        kept.append(new)
    return _with_nodes(input_graph, kept)


def _past(name: str, inputs: dict[str, str]) -> str:
    """The input beyond nodes that are left out."""
    while not name.startswith("^") and name in inputs:
        name = inputs[name]
    return name
