"""References handed on: `RefIdentity` the one, `RefSelect` one of several that a number chooses."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid

ref_identity_op = op(
    "RefIdentity", "input: Ref(T) -> output: Ref(T)", T=None, aliases=[0], free=True, role="identity"
)
ref_identity_op.infer(lambda node: node.dims(0))
ref_identity_op.kernel(CPU, GPU)(lambda node, env: lambda variable: variable)


@ref_identity_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return (dy,)


ref_select_op = op(
    "RefSelect",
    "index: int32, inputs: Ref(N*T) -> output: Ref(T)",
    "N: int >= 1",
    T=None,
    aliases=[1],
    host=["index"],
)
ref_select_op.no_gradient()


@ref_select_op.infer
def _(node: Node) -> Dims:
    index = node.dims(0)
    if index:
        raise ValueError(f"Shape must be rank 0 but is rank {len(index)}")
    first = node.dims(1)
    if first is None or any(node.dims(i) != first for i in range(2, len(node.inputs))):
        return None
    return first


@ref_select_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def select(index: Any, *variables: Any) -> Any:
        if index.ndim:
            raise invalid(f"Index must be a scalar but has shape {list(index.shape)}")
        chosen = int(index)
        if not 0 <= chosen < len(variables):
            raise invalid(f"Index must be in the range [0, {len(variables)}) but got {chosen}")
        return variables[chosen]

    return select
