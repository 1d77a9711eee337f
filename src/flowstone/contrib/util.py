"""`tf.contrib.util`: constants in graphs, messages of tensors, and the ops that a graph uses."""

from __future__ import annotations

from typing import Any

from flowstone.contrib.package_names import package_names
from flowstone.framework.declarations.operation import registry
from flowstone.training.checkpoints import meta_graph

__all__ = ["ops_used_by_graph_def", "stripped_op_list_for_graph"]

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone": "constant_value=get_static_value make_ndarray make_tensor_proto",
    },
)


def ops_used_by_graph_def(graph_def: Any) -> list[str]:
    """The names of the ops that a GraphDef uses; for a call of one of its functions those of the body."""
    functions = {function.signature.name: function for function in graph_def.library.function}
    used: set[str] = set()
    waiting = [node.op for node in graph_def.node]
    while waiting:
        op = waiting.pop()
        if op not in used:
            used.add(op)
            if op in functions:
                waiting.extend(node.op for node in functions[op].node_def)
    return sorted(used - set(functions))


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The OpList message of the ops that a GraphDef uses, without texts; ValueError for an unknown op."""
    for op in ops_used_by_graph_def(graph_def):
        if op not in registry:
            raise ValueError(f"Op {op} is used by the graph, but is not registered")
    return meta_graph.stripped_op_list_for_graph(graph_def)
