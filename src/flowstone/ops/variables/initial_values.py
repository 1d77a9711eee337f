"""Initial values that depend on other variables, made safe for any order of initialisation.

``b = Variable(a + 1)`` reads `a` while both are being initialised. `replace_variables` copies the nodes
between `a` and the initial value of `b`, with `a` replaced by its `initialized_value` (a conditional on
whether it is initialised).
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.graph import Graph, GraphKeys
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.tensor import Tensor

_READS_OF_STATE = {"IsVariableInitialized", "VarIsInitializedOp", "ReadVariableOp"}
_VARIABLES = {"VariableV2", "Variable", "VarHandleOp"}
_DEEPEST = 500


def replace_variables(graph: Graph, node_name: str, value: Tensor) -> Tensor:
    """`value` computed from initialised values; `value` itself where it depends on no variable, or on a loop.

    Copied nodes are named ``<original>_<node_name>``.
    """
    above = _operations_above(value.op)
    if not any(op.type in _VARIABLES for op in above):
        return value
    if any(op.type == "NextIteration" for op in above):
        return value
    by_name: dict[str, Any] = {}
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in graph.get_collection(key):
            by_name.setdefault(getattr(variable, "_handle", variable).op.name, variable)
    return _copied(graph, node_name, value, by_name, {}, 0)


def _operations_above(op: Operation) -> set[Any]:
    found, pending = set(), [op]
    while pending:
        current = pending.pop()
        if current not in found:
            found.add(current)
            if current.type not in _READS_OF_STATE:
                pending += [tensor.op for tensor in current.inputs]
    return found


def _copied(
    graph: Graph, node_name: str, value: Tensor, variables: dict[str, Any], done: dict[Any, Any], depth: int
) -> Tensor:
    op = value.op
    if op.type in _READS_OF_STATE or depth > _DEEPEST:
        return value
    if op.type in _VARIABLES:
        variable = variables.get(op.name)
        return value if variable is None else variable.initialized_value()
    if op not in done:
        inputs = [_copied(graph, node_name, tensor, variables, done, depth + 1) for tensor in op.inputs]
        done[op] = (
            op
            if all(new is old for new, old in zip(inputs, op.inputs))
            else _copy(graph, node_name, op, inputs)
        )
    return done[op].outputs[value.value_index]  # type: ignore[no-any-return]


def _copy(graph: Graph, node_name: str, op: Any, inputs: list[Tensor]) -> Any:
    declaration = op.declaration
    if op.type == "RefSwitch" and not inputs[0].dtype.is_ref:
        declaration = registry["Switch"]
    with graph.name_scope(None):
        return graph.create(
            declaration,
            inputs,
            dict(op.attributes),
            op.group_sizes,
            f"{op.name}_{node_name}",
            device=op.device,
        )
