"""`ClusterPlan`: what a master and its workers did with one kind of step, for people to read.

The master tells the rewritten graph, where each node runs, which tensors cross tasks and what each task gets
of the client; each worker tells of its part what `Plan.explain` tells in one process. All of it travels as
JSON (`to_bytes`, `from_bytes`), since TensorFlow's messages have no place for it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from flowstone.distributed.task_names import task_of
from flowstone.framework import errors
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.types.shape import format_dims
from flowstone.partition.send_receive import RECEIVES
from flowstone.partition.subgraphs import Part
from flowstone.placement.operation_cost import tensor_size
from flowstone.runtime.plans.plan import Plan
from flowstone.runtime.quantities import aligned, bytes_text

__all__ = [
    "ClusterPlan", "Placed", "TaskPlan", "Transfer", "WorkerPlan", "placement_of", "read_worker_plan",
    "transfers_of", "worker_plan",
]  # fmt: skip

_ORDER = "/ran:0"  # the end of the name of a constant that says that a node ran, as `partition` makes it


class WorkerPlan(NamedTuple):
    """What a worker did with its part: the `machine` profile by which it chose kernels, the rewrites (pass,
    node, reason), the graph after them, and the generated code."""

    machine: str
    log: list[tuple[str, str, str]]
    graph: str
    code: str


class TaskPlan(NamedTuple):
    """The part of `task`: how many `nodes` the master gave it, Sends and Receives included; which `feeds` it
    gets of the client and which `fetches` it gives; what its worker told (None: it cannot tell)."""

    task: str
    nodes: int
    feeds: list[str]
    fetches: list[str]
    plan: WorkerPlan | None


class Placed(NamedTuple):
    """A node after the master's rewriting, its op, and the device that it was placed on."""

    node: str
    op: str
    device: str


class Transfer(NamedTuple):
    """A tensor that goes from task to task once a step (once an iteration, in a loop): its type with its
    shape, its bytes (None: not known before the step), and whether it only says that a node ran."""

    tensor: str
    type: str
    size: int | None
    source: str
    target: str
    is_order: bool


class ClusterPlan(NamedTuple):
    """A kind of step: the master's rewrites and graph, the placement, the tasks' parts, and the transfers
    between them."""

    log: list[tuple[str, str, str]]
    graph: str
    placement: list[Placed]
    tasks: list[TaskPlan]
    transfers: list[Transfer]

    # ---- text

    def text(self) -> str:
        """All of it, the master's half first."""
        blocks = [
            self.outline(),
            _joined("rewrites by the master", [": ".join(each) for each in self.log]),
            f"graph after these\n{self.graph}",
            _joined("placement", aligned([("node", "op", "device"), *self.placement], left=3)),
            *[_task_text(each) for each in self.tasks],
        ]
        return "\n\n".join(blocks)

    def outline(self) -> str:
        """The tasks with their numbers of nodes, and the transfers between them."""
        rows: list[Sequence[str]] = [("task", "nodes", "fed", "gives")]
        rows += [(each.task, str(each.nodes), *map(_some, (each.feeds, each.fetches))) for each in self.tasks]
        lines = ["tasks", *aligned(rows, left=1)]
        tensors = [each for each in self.transfers if not each.is_order]
        lines += ["", f"transfers between tasks: {len(tensors)}"]
        if tensors:
            lines += aligned(
                [
                    ("tensor", "type", "bytes", "from", "to"),
                    *[
                        (each.tensor, each.type, "?" if each.size is None else bytes_text(each.size),
                         each.source, each.target)
                        for each in tensors
                    ],
                ],
                left=5,
            )  # fmt: skip
        order = Counter((each.source, each.target) for each in self.transfers if each.is_order)
        for (source, target), count in sorted(order.items()):
            lines.append(f"  and for order alone {count}: {source} to {target}")
        return "\n".join(lines)

    # ---- messages

    def to_bytes(self) -> bytes:
        """As JSON, which `from_bytes` reads."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ClusterPlan:
        """DataLossError for bytes that `to_bytes` did not write."""
        try:
            told = json.loads(data)
            return cls(
                [_rewrite(each) for each in told["log"]],
                str(told["graph"]),
                [Placed(*map(str, each)) for each in told["placement"]],
                [_task(*each) for each in told["tasks"]],
                [Transfer(*each) for each in told["transfers"]],
            )
        except (ValueError, TypeError, KeyError) as error:
            raise errors.DataLossError(None, None, f"This is no plan of a cluster: {error}") from None


def _rewrite(each: Any) -> tuple[str, str, str]:
    name, node, reason = each
    return str(name), str(node), str(reason)


def _task(task: str, nodes: int, feeds: list[str], fetches: list[str], plan: Any) -> TaskPlan:
    return TaskPlan(task, nodes, feeds, fetches, None if plan is None else read_worker_plan(plan))


def read_worker_plan(told: Any) -> WorkerPlan:
    """Of what JSON has of one. ValueError or TypeError for anything else."""
    machine, log, graph, code = told
    return WorkerPlan(str(machine), [_rewrite(each) for each in log], str(graph), str(code))


def _joined(head: str, lines: Sequence[str]) -> str:
    return "\n".join([head if lines else f"{head}: none", *lines])


def _some(names: Sequence[str]) -> str:
    shown = [name.removesuffix(":0") for name in names[:3]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f", … ({more} more)" if more else "") or "-"


def _task_text(each: TaskPlan) -> str:
    if each.plan is None:
        return f"# {each.task}\nits worker does not tell what it made of its part"
    machine, log, graph, code = each.plan
    lines = "\n".join(": ".join(rewrite) for rewrite in log)
    return f"# {each.task}\nkernels by the profile {machine}\n{lines}\n\n{graph}\n\n{code}".rstrip()


# ---- what is told


def worker_plan(plan: Plan, machine: str) -> WorkerPlan:
    """Of a worker's plan for its part."""
    return WorkerPlan(machine, list(plan.subgraph.log), plan.graph_text, plan.program.source)


def placement_of(subgraph: Subgraph, chosen: dict[PlanNode, Any]) -> list[Placed]:
    """The nodes in their order."""
    return [Placed(node.name, node.type, chosen[node].name) for node in subgraph.nodes]


def transfers_of(parts: Sequence[Part]) -> list[Transfer]:
    """What goes between the parts, in the order of the receivers."""
    found = []
    for part in parts:
        for node in part.subgraph.nodes:
            if node.declaration.role not in RECEIVES or node.attributes.get("client_terminated"):
                continue
            x, name = node.outputs[0], node.attributes["tensor_name"]
            known = x.dims is not None and None not in x.dims and x.dtype.base_dtype.size
            kind = f"{x.dtype.base_dtype.name}{format_dims(x.dims).replace(' ', '')}"
            source, target = (task_of(node.attributes[way]) for way in ("send_device", "recv_device"))
            size = tensor_size(x) if known else None
            found.append(Transfer(name, kind, size, source, target, name.endswith(_ORDER)))
    return found
