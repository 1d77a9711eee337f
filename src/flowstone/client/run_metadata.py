"""RunMetadata of a step, and the costs that a session measures.

RunOptions ask for a trace or for the partition graphs of one step. `ConfigProto.graph_options` asks for
costs: after ``build_cost_model_after`` runs of the same fetches and feeds, every ``build_cost_model``-th one
is traced. The times of its nodes are recorded in the session's cost model, returned as
``RunMetadata.cost_graph``, and used to place later plans. A plan made before its fetches were measured is
made once more.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from flowstone.framework import errors
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.placement.cost_model import CostModel
from flowstone.placement.devices import PlacementDevice
from flowstone.runtime.code.tracing import Event, Trace
from flowstone.runtime.explaining.step_stats import is_computed, step_stats
from flowstone.runtime.explaining.traced_plans import partition_graph
from flowstone.runtime.plans.measured_runs import MeasuredRuns
from flowstone.runtime.plans.plan import Plan


def check_thread_pool(options: Any, pools: int) -> None:
    """InvalidArgumentError if the options choose a thread pool that a session with `pools` of them does not
    have."""
    pool = 0 if options is None else options.inter_op_thread_pool
    if pool >= pools:
        raise errors.InvalidArgumentError(None, None, f"Invalid inter_op_thread_pool: {pool}")


class Measurements(MeasuredRuns):
    """The costs that a session measures on this machine."""

    def add(self, key: Hashable, trace: Trace) -> bool:
        """Records the times of the nodes; returns whether these fetches were never measured before."""
        with self._lock:
            for event in trace.events:
                self._record(event, trace)
        return self.is_first(key)

    def _record(self, event: Event, trace: Trace) -> None:
        node = event.node
        if node.declaration.asynchronous or not is_computed(trace, event):  # its time is waiting, not work
            return
        start, end = event.kernels or (event.start, event.end)
        sizes = {i: buffer.size for i, buffer in enumerate(event.outputs) if buffer is not None}
        self.costs.record(node.name, event.device, (end - start) / 1e3, sizes)


def write_metadata(
    message: Any, plan: Plan, trace: Trace | None, wants_graphs: bool, costs: CostModel | None
) -> None:
    """Replaces the contents of a RunMetadata: by StepStats if there is a trace, the graph of each device if
    wanted, a CostGraphDef if there are costs.
    """
    message.Clear()
    if trace is not None:
        nodes = {device: {node.name: node for node in part.nodes} for device, part in plan.parts.items()}
        message.step_stats.CopyFrom(step_stats(trace, nodes))
    if wants_graphs:
        for device, part in plan.parts.items():
            message.partition_graphs.add().CopyFrom(partition_graph(part, device))
    if costs is not None:
        message.cost_graph.CopyFrom(_cost_graph(plan, costs))


class _Place:
    """A device of which a cost graph needs only the name."""

    memory_limit, relative_speed = None, 1.0

    def __init__(self, name: str) -> None:
        self.name = name
        self.device_type = name.rpartition("/device:")[2].partition(":")[0]


def _cost_graph(plan: Plan, costs: CostModel) -> Any:
    nodes: list[PlanNode] = []
    placement: dict[PlanNode, PlacementDevice] = {}
    for device, part in plan.parts.items():
        nodes += part.nodes
        placement.update(dict.fromkeys(part.nodes, _Place(device)))
    return costs.cost_graph(Subgraph(nodes, [], plan.subgraph.fetches, plan.subgraph.targets), placement)
