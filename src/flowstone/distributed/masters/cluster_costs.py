"""What a master measures of its steps: the costs of nodes on every task, and the links between tasks.

The traces of all workers are what is measured (white paper 3.2.1, 9.2). They enter the `CostModel` by which
the session's later plans are placed; `cost_graph` tells them as TensorFlow's CostGraphDef.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from flowstone.distributed.workers.transfers import RECV_TENSOR, seen_transfers
from flowstone.framework.declarations.operation import registry
from flowstone.framework.types.tensor_proto import messages
from flowstone.placement.cost_model import CostModel

__all__ = ["cost_graph", "record"]

_KERNELS = "/stream:all"
_OP = re.compile(r"\S+ = ([^\s(]+)\(")


def record(costs: CostModel, step_stats: Any) -> None:
    """Adds the times of the nodes and of the transfers of one traced step. Nodes that wait for others, and
    those whose values were there before the step, are left out."""
    kernels = _kernel_times(step_stats)
    for device in step_stats.dev_stats:
        if device.device.endswith(_KERNELS):
            continue
        for run in device.node_stats:
            if run.node_name == RECV_TENSOR or not run.all_end_rel_nanos or _waits(run.timeline_label):
                continue
            time_us = kernels.get((device.device, run.node_name), run.all_end_rel_nanos / 1e3)
            costs.record(run.node_name, device.device, time_us, _sizes(run))
    for seen in seen_transfers(step_stats):
        if seen.end > seen.start:
            costs.links.record(seen.source, seen.target, seen.size, (seen.end - seen.start) / 1e3)


def _kernel_times(step_stats: Any) -> dict[tuple[str, str], float]:
    """Microseconds of the kernels on GPUs, by device and node."""
    return {
        (device.device.removesuffix(_KERNELS), run.node_name.rpartition(":")[0]): run.all_end_rel_nanos / 1e3
        for device in step_stats.dev_stats
        if device.device.endswith(_KERNELS)
        for run in device.node_stats
    }


def _waits(label: str) -> bool:
    op = _OP.match(label)
    return op is not None and op[1] in registry and registry[op[1]].asynchronous


def _sizes(run: Any) -> dict[int, int]:
    return {
        output.slot: output.tensor_description.allocation_description.requested_bytes for output in run.output
    }


def cost_graph(costs: CostModel, graphs: Iterable[Any]) -> Any:
    """A CostGraphDef of the nodes of all devices' GraphDefs, with what was measured of them; entries without
    a measurement are marked `inaccurate`, and cost nothing."""
    message = messages("cost_graph_pb2").CostGraphDef()
    for graph in graphs:
        number = {node.name: len(message.node) + i for i, node in enumerate(graph.node)}
        for node in graph.node:
            entry = message.node.add(name=node.name, device=node.device, id=number[node.name])
            measured = costs.measured_us(node.name, node.device)
            entry.inaccurate = measured is None
            entry.compute_cost = round(measured or 0.0)
            for port, size in sorted(costs.measured_sizes(node.name).items()):
                while len(entry.output_info) <= port:
                    entry.output_info.add(size=-1, alias_input_port=-1)
                entry.output_info[port].size = size
            for text in node.input:
                name, _, port_text = text.removeprefix("^").partition(":")
                if name not in number:
                    continue
                if text.startswith("^"):
                    entry.control_input.append(number[name])
                else:
                    entry.input_info.add(preceding_node=number[name], preceding_port=int(port_text or 0))
    return message
