"""The master's half of a plan: a graph divided into a part for each task, each written as a GraphDef.

`divide` prunes, rewrites, places and partitions, as `runtime/plans/plan.py` does; a part is what one *task*
runs, on whichever of its devices. Each node names its device, so the worker's placement has nothing left to
choose. What a step feeds to a part is a Receive from the client in it, and what it fetches a Send to the
client (``client_terminated``), by keys of `step_rendezvous`. `read_part` is the worker's side of the same
message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flowstone.distributed.task_names import task_of
from flowstone.distributed.workers.step_rendezvous import rendezvous_key
from flowstone.framework.graphs.graph import Graph, Operation
from flowstone.framework.graphs.graph_def import node_def, write_shape
from flowstone.framework.graphs.import_graph import extend_graph
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.tensor_proto import messages
from flowstone.partition.client_ends import connect_client
from flowstone.partition.send_receive import SENDS
from flowstone.partition.subgraphs import Part, partition
from flowstone.placement.node_placement import place, stateful_placement
from flowstone.rewriting.passes import SIMPLIFYING, run_passes
from flowstone.runtime.code.planning_costs import PlanCosts, plan_costs
from flowstone.runtime.plans.plan import pruned_subgraph
from flowstone.runtime.plans.plan_options import PlanOptions
from flowstone.runtime.process.device import Device

__all__ = ["PartGraph", "ReadPart", "cut", "divide", "placed_nodes", "read_part"]


class PartGraph(NamedTuple):
    """What `task` runs: a GraphDef; the keys of what it is fed and of what it gives, each with its position
    among the feeds or fetches of the whole; whether it sends anything to other tasks; whether its steps have
    a time limit, so that the worker looks at every node if they are to end."""

    task: str
    graph_def: Any
    feeds: list[tuple[str, int]]
    fetches: list[tuple[str, int]]
    sends: bool
    is_watched: bool = False


class ReadPart(NamedTuple):
    """A part as its worker reads it: the graph; the tensors that are fed and fetched, by key; the operations
    to run; whether it sends anything to other tasks."""

    graph: Graph
    feeds: dict[str, Tensor]
    fetches: dict[str, Tensor]
    targets: list[Operation]
    sends: bool


class _Task(NamedTuple):
    """A task as the one device that `partition` sees: values cross tasks in host memory."""

    name: str
    device_type: str = "CPU"


def divide(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    options: PlanOptions,
    home: str,
) -> tuple[list[PartGraph], dict[str, str], dict[str, str], PlanCosts]:
    """The parts, the devices of the nodes that keep state there, those of all nodes, and what the step costs.

    `options.devices`: those of all tasks; `home`: the task of nodes that name none. With `options.in_pieces`
    feeds and fetches come one by one, and meet the step at home (`partition/client_ends.py`). Raises
    InvalidArgumentError as `runtime.plan.make_plan` does.
    """
    subgraph, chosen = placed_nodes(fetches, targets, feeds, options, home)
    placement = {node.name: device.name for node, device in chosen.items()}
    costs = plan_costs(subgraph)
    parts = cut(subgraph, chosen, fetches, feeds, options, home)
    library = fetches[0].graph if fetches else (targets[0].graph if targets else None)
    incarnations = {device.name: device.incarnation for device in options.devices}
    written = [_written(part, subgraph, library, incarnations) for part in parts]
    return written, stateful_placement(chosen), placement, costs


def placed_nodes(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    options: PlanOptions,
    home: str,
) -> tuple[Subgraph, dict[PlanNode, Any]]:
    """The rewritten subgraph and the devices of its nodes; for arguments and errors see `divide`."""
    subgraph = pruned_subgraph(fetches, targets, feeds, options)
    subgraph.in_pieces = True
    run_passes(subgraph, SIMPLIFYING, options.disabled_passes)
    chosen: dict[PlanNode, Any] = dict(
        place(subgraph, options.devices, options.soft_placement, options.costs,
              assigned=options.assigned, home=home)
    )  # fmt: skip
    for node, device in chosen.items():
        node.device = device.name
    return subgraph, chosen


def cut(
    subgraph: Subgraph,
    chosen: dict[PlanNode, Any],
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor],
    options: PlanOptions,
    home: str,
) -> list[Part]:
    """The parts of the tasks, each under its first CPU's name. They take over the nodes of `subgraph`."""
    host_of = _hosts(options.devices)
    if options.in_pieces:
        connect_client(subgraph, feeds, fetches, host_of[home], chosen)
    tasks = {task: _Task(host.name) for task, host in host_of.items()}
    return partition(
        subgraph, {node: tasks[task_of(device.name)] for node, device in chosen.items()},
        tasks[home], options.compresses, delays=False,
    )  # fmt: skip


def _hosts(devices: Sequence[Device]) -> dict[str, Device]:
    """The first CPU of each task."""
    found: dict[str, Device] = {}
    for device in devices:
        if device.device_type == "CPU":
            found.setdefault(task_of(device.name), device)
    return found


# ---- writing


def _written(part: Part, whole: Subgraph, library: Any, incarnations: Mapping[str, int]) -> PartGraph:
    host = part.device.name
    message = messages("graph_pb2").GraphDef()
    names = _names(part.subgraph)
    for node in part.subgraph.nodes:
        if not node.is_feed:
            _write(node, names, message.node.add(), host, incarnations)
    feeds, fetches = [], []
    for i, x in zip(part.feeds, part.subgraph.feeds):
        name = f"feed {i}"
        _write_end(message.node.add(), "_Recv", names[x.op], name, host, incarnations[host], x)
        feeds.append((rendezvous_key(host, incarnations[host], host, name), i))
    for i, x in zip(part.fetches, part.subgraph.fetches):
        name = f"fetch {i}"
        end = message.node.add()
        _write_end(end, "_Send", f"{names[x.op]}/fetch_{i}", name, host, incarnations[host], x)
        end.input.append(_input(x, names))
        fetches.append((rendezvous_key(host, incarnations[host], host, name), i))
    if library is not None:
        library._functions.write(message.library)
        message.versions.CopyFrom(library.graph_def_versions)
    sends = any(node.declaration.role in SENDS for node in part.subgraph.nodes)
    return PartGraph(task_of(host), message, feeds, fetches, sends)


def _names(subgraph: Subgraph) -> dict[PlanNode, str]:
    """A name of its own for each node: the node's, but for those that share one, of which a node with state
    keeps it."""
    names: dict[PlanNode, str] = {}
    taken: set[str] = set()
    for node in sorted(subgraph.nodes, key=lambda node: not node.declaration.stateful):
        name, count = node.name, 0
        while name in taken:
            count += 1
            name = f"{node.name}/copy_{count}"
        taken.add(name)
        names[node] = name
    return names


def _write(
    node: PlanNode, names: Mapping[PlanNode, str], message: Any, host: str, incarnations: Mapping[str, int]
) -> None:
    message.CopyFrom(node_def(node))  # type: ignore[arg-type]
    message.name = names[node]
    is_here = task_of(node.device) == task_of(host)  # not of nodes that were made like one of another task
    message.device = node.device if is_here else host
    del message.input[:]
    message.input.extend([_input(x, names) for x in node.inputs])
    message.input.extend([f"^{names[control]}" for control in node.control_inputs])
    message.attr.pop("_class", None)  # its nodes have their devices
    sender = node.attributes.get("send_device")
    if sender is not None:
        message.device = host
        message.attr["send_device_incarnation"].i = _signed(incarnations.get(sender, 0))
        message.attr["client_terminated"].b = False  # within a worker, a client's end is as any other
        if node.outputs:
            write_shape(node.outputs[0].dims, message.attr["_output_shapes"].list.shape.add())


def _write_end(
    message: Any, op: str, name: str, tensor: str, host: str, incarnation: int, x: PlanOutput
) -> None:
    """Writes the Receive or Send whose other end is the client."""
    message.op, message.name, message.device = op, name, host
    kind = "T" if op == "_Send" else "tensor_type"
    message.attr[kind].type = x.dtype.base_dtype.as_datatype_enum
    message.attr["tensor_name"].s = tensor.encode()
    message.attr["send_device"].s = message.attr["recv_device"].s = host.encode()
    message.attr["send_device_incarnation"].i = _signed(incarnation)
    message.attr["client_terminated"].b = True
    if op == "_Recv":
        write_shape(x.dims, message.attr["_output_shapes"].list.shape.add())


def _input(x: PlanOutput, names: Mapping[PlanNode, str]) -> str:
    name = names[x.op]
    return f"{name}:{x.value_index}" if x.value_index and not x.op.is_feed else name


def _signed(incarnation: int) -> int:
    return incarnation - (1 << 64) if incarnation >= 1 << 63 else incarnation


# ---- reading


def read_part(message: Any) -> ReadPart:
    """The part of a GraphDef. ValueError for a malformed one."""
    graph = Graph()
    extend_graph(graph, message)
    feeds, fetches, ends = {}, {}, set()
    for node in message.node:
        operation = graph._by_name[node.name]
        if operation.attributes.get("client_terminated"):
            ends.add(operation)
            if operation.outputs:
                feeds[_key_of(operation)] = operation.outputs[0]
            else:
                fetches[_key_of(operation)] = operation.inputs[0]
    sends = any(op.declaration.role in SENDS for op in graph.get_operations() if op not in ends)
    return ReadPart(graph, feeds, fetches, _last(graph, ends), sends)


def _key_of(operation: Operation) -> str:
    """The key of a Receive from the client or a Send to it."""
    ways = ("send_device", "send_device_incarnation", "recv_device", "tensor_name")
    source, incarnation, target, name = (operation.attributes[way] for way in ways)
    return rendezvous_key(source, incarnation & (1 << 64) - 1, target, name)


def _last(graph: Graph, ends: set[Operation]) -> list[Operation]:
    """The operations to run, for which all others run: those that no other one takes anything from or waits
    for, and what decides of loops that give nothing to anyone here."""
    operations = [operation for operation in graph.get_operations() if operation not in ends]
    used = {source for operation in operations for source in _sources(operation)}
    last = [operation for operation in operations if operation not in used]
    reached = set(last)
    _reach(reached, [x.op for end in ends for x in end.inputs])
    _reach(reached, last)
    for operation in operations:
        if operation.declaration.role == "loop_condition" and operation not in reached:
            last.append(operation)
            _reach(reached, [operation])
    return last


def _sources(operation: Operation) -> list[Operation]:
    return [*(x.op for x in operation.inputs), *operation.control_inputs]


def _reach(reached: set[Operation], operations: list[Operation]) -> None:
    """Adds these operations, and all that they depend on."""
    pending = list(operations)
    while pending:
        operation = pending.pop()
        reached.add(operation)
        pending += [source for source in _sources(operation) if source not in reached]
