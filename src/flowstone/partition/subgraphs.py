"""Partition: splits a placed subgraph into one subgraph for each device (white paper 3.2.2).

An edge from one device to another becomes a Send here and a Receive there, one pair for each tensor and
destination, however many consumers it has; a variable that changes is sent again for a reader that waits for
the change. A control edge becomes such a pair for a constant that waits for
its source. Constants are repeated on every device that uses them. So are fed values on CPUs; other devices
receive them from the host. In a loop, a Receive must run once in each iteration, so it waits for the loop's
control nodes on its device (`distributed_loops.py`). Values that only steer control flow, and inputs that a
GPU's kernel reads on the host, are received in host memory (``_HostRecv``). Receives that copy are delayed
until shortly before their values are needed (`receive_scheduling.py`).

With `compresses`, 32-bit floats are sent as their upper 16 bits (white paper 5.5): a conversion node before
the Send cuts off the lower bits of the mantissa, and one after the Receive fills them with zeros.

`show` prints the parts as text, as the tests and `Plan.explain` do.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.partition.distributed_loops import ControlLoops
from flowstone.partition.receive_scheduling import delay_receives
from flowstone.rewriting.analyses.branches import ALIVE_AT_TIMES, SWITCHES, TRUE, Liveness
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS, Frames, order_by_frames


class Part(NamedTuple):
    """What one device runs: its `subgraph`; which of the whole subgraph's feeds it takes, and which of the
    fetches it computes, by position."""

    device: Any
    subgraph: Subgraph
    feeds: list[int]
    fetches: list[int]


def partition(
    subgraph: Subgraph,
    device_of: Mapping[PlanNode, Any],
    host: Any = None,
    compresses: bool = False,
    delays: bool = True,
) -> list[Part]:
    """The parts, in the order of the devices' names. They take over the nodes of `subgraph`, and change them.

    `host`: the device through which devices that do not share its memory get feeds and give fetches (the
    first CPU in use if None). `compresses`: floats are sent in 16 bits. `delays`: Receives that copy wait
    until they are needed.

    Raises InvalidArgumentError for a reference or a handle that would leave its device.
    """
    return _Partitioner(subgraph, device_of, host, compresses).parts(delays)


def show(parts: Sequence[Part]) -> str:
    """The parts as text, each under its device's name."""
    return "\n\n".join(f"# {part.device.name}\n{part.subgraph}" for part in parts)


class _Partitioner:
    def __init__(
        self, subgraph: Subgraph, device_of: Mapping[PlanNode, Any], host: Any, compresses: bool
    ) -> None:
        self.subgraph, self.compresses = subgraph, compresses
        self.device_of: dict[PlanNode, Any] = dict(device_of)
        if host is None:
            host = next((d for d in self.device_of.values() if d.device_type == CPU), None)
        self.host = host
        for x in subgraph.feeds:
            if host is not None and self.device_of[x.op].device_type != CPU:
                self.device_of[x.op] = host
        self.frames = order_by_frames(subgraph).copy()
        self.liveness = subgraph.analysis(Liveness)
        self.alive_at_times: set[PlanOutput] = set()
        if not self.liveness.trivial:
            outputs = [x for node in subgraph.nodes for x in node.outputs]
            self.alive_at_times.update(x for x in outputs if self.liveness.output(x) != TRUE)
        self.rank: dict[Any, int] = {}  # each node's position, also by its `order` for nodes made beside it
        for i, node in enumerate(subgraph.nodes):
            self.rank[node] = i
            self.rank.setdefault(node.order, i)
        self.nodes: dict[Any, dict[PlanNode, None]] = {}
        self.repeated: dict[tuple[PlanNode, Any], PlanNode] = {}
        self.received: dict[tuple[Any, Any, bool, tuple[PlanNode, ...]], PlanOutput] = {}
        self.named: dict[str, dict[Any, int]] = {}  # outputs that are sent, numbered, by name
        self.loops = ControlLoops(subgraph, self.frames, self.device_of) if self.frames.exist else None

    def parts(self, delays: bool) -> list[Part]:
        subgraph = self.subgraph
        nodes = list(subgraph.nodes)
        steady = _steady(subgraph, self.frames) if delays else frozenset()
        if self.loops is not None:
            nodes += self.loops.add()
        for node in nodes:
            self.nodes.setdefault(self.device_of[node], {})[node] = None
        for node in nodes:
            self._connect(node)
        subgraph.fetches = [self._fetched(x) for x in subgraph.fetches]
        subgraph.invalidate()
        if delays:
            delay_receives(self.nodes, steady)
        devices = sorted(self.nodes, key=lambda device: device.name)
        return [self._part(device) for device in devices]

    # ---- edges

    def _connect(self, node: PlanNode) -> None:
        """Replaces inputs and control inputs from other devices by what is received on the node's own."""
        device = self.device_of[node]
        for i, x in enumerate(node.inputs):
            if self.device_of[x.op] is not device:
                node.inputs[i] = self._brought(x, device, node, i)
            elif (
                device.device_type not in (CPU, GPU)
                and _steers(node, i)
                and x.op.declaration.role != "loop_condition"
            ):
                node.inputs[i] = self._received(x, device, True)
        for i, control in enumerate(node.control_inputs):
            if self.device_of[control] is not device:
                node.control_inputs[i] = self._awaited(control, device)

    def _fetched(self, x: PlanOutput) -> PlanOutput:
        """The output that the session fetches for `x`: in memory that it can read."""
        if self.device_of[x.op].device_type in (CPU, GPU) or self.host is None:
            return x
        if _is_plain_constant(x.op):
            return self._repeat(x.op, self.host).outputs[0]
        return self._received(x, self.host, False)

    def _brought(self, x: PlanOutput, device: Any, consumer: PlanNode, place: int) -> PlanOutput:
        """The value of `x` on `device`, for input `place` of `consumer`."""
        source = x.op
        if _is_plain_constant(source) or (source.is_feed and device.device_type == CPU):
            return self._repeat(source, device).outputs[x.value_index]
        if x.dtype is dtypes.resource or (x.dtype.is_ref and consumer.input_argument(place).is_ref):
            raise errors.InvalidArgumentError(
                lambda: consumer.origin.node_def,
                consumer.origin,
                f"{consumer.name} on {device.name} takes a reference or handle of {source.name}, which is on "
                f"{self.device_of[source].name}; they must be on one device",
            )
        wants_host = (
            device.device_type == GPU and consumer.input_argument(place).name in consumer.declaration.host
        )
        in_host_memory = wants_host or (_steers(consumer, place) and device.device_type != CPU)
        return self._received(x, device, in_host_memory, self._before_reading(x, consumer))

    def _before_reading(self, x: PlanOutput, reader: PlanNode) -> tuple[PlanNode, ...]:
        """What `reader` waits for before it reads the variable `x`, as changes of it: so must the Send."""
        return tuple(reader.control_inputs) if x.dtype.is_ref else ()

    def _received(
        self, x: PlanOutput, device: Any, in_host_memory: bool, after: tuple[PlanNode, ...] = ()
    ) -> PlanOutput:
        key = (x, device, in_host_memory, after)
        if key not in self.received:
            self.received[key] = self._transfer(x, device, in_host_memory, after)
        return self.received[key]

    def _awaited(self, control: PlanNode, device: Any) -> PlanNode:
        """A node on `device` that runs after `control` does elsewhere."""
        if _is_plain_constant(control) or (control.is_feed and device.device_type == CPU):
            return self._repeat(control, device)
        signal = self._signal(control).outputs[0]
        return self._received(signal, device, False).op

    def _signal(self, control: PlanNode) -> PlanNode:
        """A constant on the device of `control` that waits for it; one for all devices."""
        key = (control, None, False, ())
        if key not in self.received:
            node = self.subgraph.new_constant(np.zeros((), np.float32), control, "ran")
            node.control_inputs = [control]
            self._add(node, self.device_of[control])
            if control in self.rank and self.liveness.node(control) != TRUE:
                self.alive_at_times.add(node.outputs[0])
            self.frames.of[node] = self.frames.of.get(control)
            if self.loops is not None:
                self.loops.stand_beside(node, control)
            self.received[key] = node.outputs[0]
        return self.received[key].op

    def _transfer(
        self, x: PlanOutput, device: Any, in_host_memory: bool, after: tuple[PlanNode, ...]
    ) -> PlanOutput:
        source, here = x.op, self.device_of[x.op]
        dims, is_float = x.dims, x.dtype.base_dtype is dtypes.float32
        compressed = self.compresses and is_float and x.dims != () and _can_convert(here, device)
        name = self._name_of(x, after)
        if compressed:
            cut = self._conversion(x, dtypes.bfloat16, source, here, "truncate")
            x = cut
        attributes = {
            "tensor_name": f"{name}/host" if in_host_memory else name,
            "send_device": here.name,
            "send_device_incarnation": 0,
            "recv_device": device.name,
            "client_terminated": False,
        }
        dtype = x.dtype.base_dtype
        kinds = ("_HostSend", "_HostRecv") if in_host_memory else ("_Send", "_Recv")
        send = self.subgraph.new_node(
            registry[kinds[0]], [x], {**attributes, "T": dtype}, like=source, name=f"{source.name}/send"
        )
        send.control_inputs = [c if self.device_of[c] is here else self._awaited(c, here) for c in after]
        self._add(send, here)
        attributes["tensor_type"] = dtype
        if x in self.alive_at_times or any(self.liveness.node(c) != TRUE for c in after):
            attributes[ALIVE_AT_TIMES] = True
        receive = self.subgraph.new_node(
            registry[kinds[1]], [], attributes, like=source, name=f"{source.name}/receive"
        )
        received: PlanOutput = receive.outputs[0]
        received.dims = dims
        self._add(receive, device)
        frame = self.frames.of.get(source)
        if frame is not None and self.loops is not None:
            self.frames.of[receive] = frame
            receive.control_inputs = [self.loops.trigger(frame, source, device)]
        return self._conversion(received, dtypes.float32, source, device, "fill") if compressed else received

    def _name_of(self, x: PlanOutput, after: tuple[PlanNode, ...]) -> str:
        """The name that the value is sent under, made unique: nodes that rewriting made may share a name."""
        named = self.named.setdefault(x.name, {})
        number = named.setdefault((x, after), len(named))
        return f"{x.name}/{number}" if number else x.name

    def _conversion(
        self, x: PlanOutput, dtype: dtypes.DType, like: PlanNode, device: Any, word: str
    ) -> PlanOutput:
        """A node that cuts off the lower half of a 32-bit float, or fills it with zeros."""
        attributes = {"SrcT": x.dtype.base_dtype, "DstT": dtype, "Truncate": True}
        node = self.subgraph.new_node(
            registry["Cast"], [x], attributes, like=like, name=f"{like.name}/{word}"
        )
        self._add(node, device)
        if x in self.alive_at_times:
            self.alive_at_times.add(node.outputs[0])
        self.frames.of[node] = self.frames.of.get(like)
        if self.loops is not None:
            self.loops.stand_beside(node, like)
        return node.outputs[0]

    def _repeat(self, node: PlanNode, device: Any) -> PlanNode:
        """A copy of a constant or fed value on another device."""
        key = (node, device)
        if key not in self.repeated:
            copy = PlanNode(node.declaration, node.name, [], node.attributes, (), [], "", node.order)
            copy.origin = node.origin
            for x in node.outputs:
                copy.add_output(x.dtype, x.dims)
            self._add(copy, device)
            self.repeated[key] = copy
        return self.repeated[key]

    def _add(self, node: PlanNode, device: Any) -> None:
        self.device_of[node] = device
        self.nodes.setdefault(device, {})[node] = None

    # ---- parts

    def _part(self, device: Any) -> Part:
        nodes = list(self.nodes[device])
        members = set(nodes)
        whole = self.subgraph
        feeds: list[int] = []
        outputs: list[PlanOutput] = []
        for i, x in enumerate(whole.feeds):
            node = x.op if x.op in members else self.repeated.get((x.op, device))
            if node is None or node not in members:
                continue
            if not _is_used(node, nodes, whole):
                members.discard(node)
                continue
            node.attributes = {**node.attributes, "index": len(feeds)}
            feeds.append(i)
            outputs.append(node.outputs[0])
        ordered = _in_order([node for node in nodes if node in members], self.rank)
        fetches = [i for i, x in enumerate(whole.fetches) if x.op in members]
        part = Subgraph(
            ordered, outputs, [whole.fetches[i] for i in fetches], [t for t in whole.targets if t in members]
        )
        return Part(device, part, feeds, fetches)


def _is_plain_constant(node: PlanNode) -> bool:
    return node.is_constant and not node.control_inputs


def _steers(node: PlanNode, place: int) -> bool:
    """Whether the executor asks for the value of this input."""
    return node.declaration.role == "loop_condition" or (node.type in SWITCHES and place == 1)


def _can_convert(source: Any, target: Any) -> bool:
    kernels = registry["Cast"].kernels
    return source.device_type in kernels and target.device_type in kernels


def _steady(subgraph: Subgraph, frames: Frames) -> frozenset[PlanNode]:
    """The nodes that run exactly once in every step, before any loop that they depend on has begun.

    What comes after a loop is left out: a Receive that waits for it might be wanted inside that loop.
    """
    liveness = subgraph.analysis(Liveness)
    after_loops: set[PlanNode] = set()
    found = []
    for node in subgraph.nodes:
        sources = node.sources()
        if frames.of.get(node) is not None or any(source in after_loops for source in sources):
            after_loops.add(node)
        elif liveness.trivial or liveness.node(node) == TRUE:
            found.append(node)
    return frozenset(found)


def _is_used(node: PlanNode, nodes: list[PlanNode], whole: Subgraph) -> bool:
    x = node.outputs[0]
    return x in whole.fetches or any(x in other.inputs or node in other.control_inputs for other in nodes)


def _in_order(nodes: list[PlanNode], rank: Mapping[Any, int]) -> list[PlanNode]:
    """The nodes in topological order, otherwise in that of the whole subgraph. Edges from NextIteration lead
    back and do not count."""

    def key(node: PlanNode) -> tuple[int, int, PlanNode]:
        return rank[node] if node in rank else rank.get(node.order, 0), place[node], node

    members = set(nodes)
    place = {node: i for i, node in enumerate(nodes)}
    waiting: dict[PlanNode, int] = {}
    dependants: dict[PlanNode, list[PlanNode]] = {}
    for node in nodes:
        sources = {x.op for x in node.inputs if x.op.type not in NEXT_ITERATIONS}
        sources |= {*node.control_inputs}
        sources &= members
        waiting[node] = len(sources)
        for source in sources:
            dependants.setdefault(source, []).append(node)
    ready = [key(node) for node in nodes if not waiting[node]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        node = heapq.heappop(ready)[2]
        ordered.append(node)
        for dependant in dependants.get(node, ()):
            waiting[dependant] -= 1
            if not waiting[dependant]:
                heapq.heappush(ready, key(dependant))
    assert len(ordered) == len(nodes), "a part of a partition contains a cycle"
    return ordered
