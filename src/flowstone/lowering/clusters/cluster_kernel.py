"""``_Cluster``: element-wise nodes as one, which the native tier compiles (`element_clusters.py` makes it).

The attribute `members` says what is computed: the nodes that it stands for and the cluster that these are
(`native/clusters.py`). Their kernels compute it until the machine code is there, and for arguments that the
code is not for. `operations` names the nodes' operations for readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework import dtypes
from flowstone.framework.kernel import CPU, Call, Environment, Input, Kernel, Value
from flowstone.framework.node import Node, PlanData
from flowstone.framework.operation import Shapes, op
from flowstone.framework.subgraph import PlanNode, PlanOutput
from flowstone.native import kernels
from flowstone.native.clusters import Cluster
from flowstone.native.emitter import KINDS

__all__ = ["Members", "cluster_op"]


class Members(PlanData):
    """The `nodes` that a cluster stands for, in order; `inputs`, what they take of others; `outputs`, what
    others take of them; and the `cluster` that they are.
    """

    __slots__ = ("cluster", "inputs", "nodes", "outputs")

    def __init__(
        self,
        nodes: Sequence[PlanNode],
        inputs: Sequence[PlanOutput],
        outputs: Sequence[PlanOutput],
        cluster: Cluster,
    ) -> None:
        self.nodes, self.inputs, self.outputs, self.cluster = nodes, inputs, outputs, cluster


def _cluster_of(node: Node) -> Cluster:
    members: Members = node.attributes["members"]
    return members.cluster


def _work(node: Node) -> float:
    """The operations of a run: see `framework/work.py`."""
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
    return [cluster.dims for _ in cluster.outputs]


@cluster_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    cluster = _cluster_of(node)
    otherwise = _by_members(node.attributes["members"], env)
    words = [Input(i) for i in range(len(node.inputs))]
    call = Call(kernels.kernel_of(cluster, otherwise), *words)
    for i in kernels.overwritable(cluster):
        call.or_in_place(i, kernels.kernel_of(cluster, otherwise, i), *words)
    return call


def _by_members(members: Members, env: Environment) -> Callable[..., Any]:
    """The function of the inputs that runs the members' own kernels, one after the other."""
    places = {x: i for i, x in enumerate(members.inputs)}
    calls: list[tuple[Any, list[int]]] = []
    constants: list[Any] = []
    for node in members.nodes:
        kernel = node.declaration.kernels[CPU](node, env)
        calls.append((kernel, [places[x] for x in node.inputs]))
        places[node.outputs[0]] = len(members.inputs) + len(calls) - 1
        constants.append(kernel.value if isinstance(kernel, Value) else None)
    wanted = [places[x] for x in members.outputs]

    def run(*inputs: Any) -> Any:
        values = list(inputs)
        for (kernel, operands), constant in zip(calls, constants):
            values.append(kernel(*[values[i] for i in operands]) if constant is None else constant)
        return tuple([values[i] for i in wanted])

    return run


TYPES = frozenset(dtypes.as_dtype(name) for name in KINDS)
"""The types of arrays in clusters."""
