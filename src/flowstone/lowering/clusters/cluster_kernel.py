"""``_Cluster``: element-wise nodes as one, which the native tier compiles (`element_clusters.py` makes it).

The attribute `members` says what is computed: the nodes that it stands for and the cluster that these are
(`native/clusters/clusters.py`). Their kernels compute it until the machine code is there, and for arguments
that the code is not for. `operations` names the nodes' operations for readers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, Call, Environment, Input, Kernel, Value
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.tensors.node import Node
from flowstone.lowering.clusters.members import Members
from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import OPEN, Cluster
from flowstone.rewriting.analyses.state_access import input_positions

__all__ = ["by_members", "cluster_op"]


def _cluster_of(node: Node) -> Cluster:
    members: Members = node.attributes["members"]
    return members.cluster


def _work(node: Node) -> float:
    """The operations of a run: see `framework/declarations/work.py`."""
    return float(_cluster_of(node).work)


cluster_op = op(
    "_Cluster",
    "inputs: *Tin -> outputs: *Tout",
    "operations: string ; Tin: list(type) >= 1 ; Tout: list(type) >= 1",
    by_element=True,
    overwriting=0,
    cost=_work,
)
cluster_op.not_differentiable()


@cluster_op.infer
def _(node: Node) -> Shapes:
    cluster = _cluster_of(node)
    results = [each.dims for each in cluster.given()]
    whole = [(*cluster.lead, *dims[1:]) if dims[:1] == (OPEN,) else dims for dims in results]
    return [tuple([None if n == OPEN else n for n in dims]) for dims in whole]


@cluster_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    cluster = _cluster_of(node)
    otherwise = by_members(node.attributes["members"], env)
    words = [Input(i) for i in range(len(node.inputs))]
    call = Call(kernels.kernel_of(cluster, otherwise), *words)
    for i in kernels.overwritable(cluster):
        call.or_in_place(i, kernels.kernel_of(cluster, otherwise, i), *words)
    return call


def by_members(members: Members, env: Environment) -> Callable[..., Any]:
    """The function of the inputs that runs the members' own kernels, one after the other.

    An exception of it holds the member that failed and the values that it was given, as `failed_node`.
    """
    constants = [_value(x.op, env) for x in members.constants]
    start = len(members.inputs) + len(constants)
    places = {x: i for i, x in enumerate([*members.inputs, *members.constants])}
    calls: list[tuple[Any, list[int], bool]] = []
    firsts = {}
    for node in members.nodes:
        firsts[start] = node
        is_one = len(node.outputs) == 1
        calls.append((_function(node, env), [places[x] for x in node.inputs], is_one))
        for i, x in enumerate(node.outputs):
            places[x] = start + i
        start += len(node.outputs)
    wanted = [places[x] for x in members.outputs]
    shared = [places[x] for x in _shared(members)]

    def run(*inputs: Any) -> Any:
        values = [*inputs, *constants]
        try:
            for function, operands, is_one in calls:
                result = function(*[values[i] for i in operands])
                values += (result,) if is_one else result
        except Exception as error:
            failed = firsts[len(values)]
            error.failed_node = failed, [values[places[x]] for x in failed.inputs]  # type: ignore[attr-defined]
            raise
        for i in shared:
            values[i] = values[i].clone(memory_format=torch.contiguous_format)
        return tuple([values[i] for i in wanted])

    return run


def _shared(members: Members) -> list[PlanOutput]:
    """The outputs that need memory of their own, as the machine code gives each: those that the kernels
    leave in an input's, a constant's or another output's memory, or that overlap themselves."""
    owners: dict[PlanOutput, frozenset[PlanOutput]] = {}
    overlap: set[PlanOutput] = set()
    for node in members.nodes:
        sources = [node.inputs[i] for i in input_positions(node, node.declaration.aliases)]
        found = frozenset().union(*[owners.get(x, {x}) for x in sources])
        if node.declaration.overlapping or not overlap.isdisjoint(sources):
            overlap.update(node.outputs)
        owners.update((x, found or frozenset((x,))) for x in node.outputs)
    copied, taken = [], {*members.inputs, *members.constants}
    for x in members.outputs:
        memory = owners.get(x, frozenset((x,)))
        if x in overlap or not taken.isdisjoint(memory):
            copied.append(x)
        taken |= memory
    return copied


def _value(node: PlanNode, env: Environment) -> Any:
    kernel = node.declaration.kernels[CPU](node, env)
    assert isinstance(kernel, Value)
    return kernel.value


def _function(node: PlanNode, env: Environment) -> Callable[..., Any]:
    """A node's kernel as a function of its inputs."""
    kernel = node.declaration.kernels[CPU](node, env)
    if not isinstance(kernel, Value):
        return kernel  # type: ignore[return-value]
    value = kernel.value
    return lambda *inputs: value
