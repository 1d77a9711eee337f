"""What describes a step of a plan: a trace of it, and the graph of each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.graphs.graph_def import node_def
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.framework.types.tensor_proto import messages
from flowstone.runtime.code.tracing import Trace
from flowstone.runtime.plans.plan import Plan
from flowstone.runtime.process.device import Device


def start_trace(plan: Plan, devices: Sequence[Device]) -> Trace:
    """A trace for a step of the plan."""
    used = plan.parts
    return Trace({d.name: d.torch for d in devices if d.name in used and d.torch.type == "cuda"})


def with_feeds(plan: Plan, trace: Trace) -> Callable[..., Any]:
    """The plan's function, wrapped to record the feeds as well."""
    function, names = plan.function, [x.op.name for x in plan.subgraph.feeds]

    def run(step: Any, *values: Any) -> Any:
        trace.restart()
        fed = dict(zip(names, values))
        for device, part in plan.parts.items():
            for x in part.feeds:
                trace.record_constant(device, x.op, [fed[x.op.name]])
        return function(step, *values)

    return run


def partition_graph(part: Subgraph, device: str) -> Any:
    """The nodes that one device runs, as a GraphDef."""
    message = messages("graph_pb2").GraphDef()
    for node in part.nodes:
        definition = message.node.add()
        definition.CopyFrom(node_def(node))  # type: ignore[arg-type]
        definition.device = device
    return message
