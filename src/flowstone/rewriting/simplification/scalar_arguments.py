"""Arguments that have to be scalars: where a plan does not know that they are, a node finds out in the step.

    ArgMax(x, axis)    becomes    ArgMax(x, _Scalar(axis))    where the rank of `axis` is unknown, or not 0

A vector of one element would otherwise pass for its element in many kernels. The node has the name of the one
that takes the argument, runs when that one runs, and raises InvalidArgumentError.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.rewriting.analyses.branches import SWITCHES
from flowstone.rewriting.analyses.state_access import input_positions

__all__ = ["check_scalars"]


def _declared(name: str, **traits: Any) -> OpDeclaration:
    declaration = op(name, "input: T -> output: T", "argument: string", T=None, aliases=[0], **traits)
    declaration.infer(lambda node: ())
    declaration.kernel(CPU, GPU)(_kernel)
    return declaration.not_differentiable()


def _kernel(node: Node, env: Environment) -> Kernel:
    argument = node.attributes["argument"]

    def scalar(x: Any) -> Any:
        if x.ndim:
            raise invalid(f"{argument} must be a scalar, got shape {list(x.shape)}")
        return x

    return scalar


_scalar, _host_scalar = _declared("_Scalar"), _declared("_HostScalar", host=["input", "output"])


def check_scalars(subgraph: Subgraph) -> None:
    """Puts a node before each argument that has to be a scalar and may be something else."""
    asking = [node for node in subgraph.nodes if node.declaration.scalars]
    has_branches = bool(asking) and any(node.type in SWITCHES for node in subgraph.nodes)
    before: dict[PlanNode, list[PlanNode]] = {}
    for node in asking:
        for i in input_positions(node, node.declaration.scalars):
            x = node.inputs[i]
            if x.dims != () and not x.dtype.is_ref:
                before.setdefault(node, []).append(_check(subgraph, node, i, has_branches))
    if before:
        subgraph.nodes = [each for node in subgraph.nodes for each in (*before.get(node, ()), node)]


def _check(subgraph: Subgraph, node: PlanNode, i: int, has_branches: bool) -> PlanNode:
    """A new node that checks input `i` of a node, which takes its result from now on."""
    x, argument = node.inputs[i], node.input_argument(i)
    declaration = _host_scalar if argument.name in node.declaration.host else _scalar
    check = subgraph.new_node(declaration, [x], {"T": x.dtype, "argument": argument.name}, node)
    waits = dict.fromkeys(node.control_inputs)
    if has_branches:  # another input may be dead, and then the node is
        waits.update(dict.fromkeys(each.op for each in node.inputs if each is not x))
    check.control_inputs = list(waits)
    node.inputs[i] = check.outputs[0]
    return check
