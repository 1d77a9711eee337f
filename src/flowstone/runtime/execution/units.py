"""Units: cuts a subgraph at its boundary nodes into the units that an executor runs.

Boundary nodes are those with an asynchronous kernel and, where one of these is in a loop or a branch, the
primitives of control flow as well; elsewhere loops and branches stay inside segments. All other nodes are
grouped by their *frontier*, the boundary outputs that they reach backwards: such nodes become ready together
and are dead or alive together, so each group is one segment. Two groups never wait for each other, since
along an edge frontiers only grow. On a CPU, a Send of a value that a segment computes is a line of that
segment, so that the value is on its way while the segment goes on; but not if control flow is the executor's.

Constants, variables and handles are the same object in every step; segments refer to them by name, and no
unit waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment, Value
from flowstone.framework.declarations.operation import CONTROL_FLOW
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.partition.send_receive import RECEIVES, SENDS
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES, TRUE, Liveness
from flowstone.rewriting.analyses.frames import (
    ENTERS,
    EXITS,
    NEXT_ITERATIONS,
    Frame,
    is_head,
    order_by_frames,
)
from flowstone.runtime.code.aliasing import Aliasing
from flowstone.runtime.code.kernels import make_kernel
from flowstone.runtime.code.segments import compile_segment
from flowstone.runtime.execution.executor import (
    ASYNCHRONOUS,
    ENTER,
    EXIT,
    HEAD,
    MERGE,
    NEXT,
    RECEIVE,
    SEGMENT,
    SEND,
    SWITCH,
    TRIGGER,
    Unit,
    UnitGraph,
)
from flowstone.runtime.execution.primitives import primitive_call
from flowstone.runtime.execution.segment_copies import SegmentCopies
from flowstone.runtime.execution.transfers import Move

_CONTROL_FLOW = (CONTROL_FLOW | {"trigger"}) - {"loop_condition"}  # roles
Frontier = frozenset  # of boundary outputs and of boundary nodes that are only waited for


def needs_units(subgraph: Subgraph) -> bool:
    """Whether the subgraph needs more than one segment, because it has an asynchronous kernel."""
    return any(node.declaration.asynchronous for node in subgraph.nodes)


def cut(
    subgraph: Subgraph,
    environment: Environment,
    watched: bool = False,
    dynamic: bool = False,
    traced_device: str = "",
    move_of: Callable[[PlanNode], Move | None] | None = None,
) -> tuple[UnitGraph, list[bool]]:
    """The units, compiled for `environment`, and which fetches must be copied before a user gets them.

    `dynamic`: all control flow shall be the executor's, even if segments could contain it. `move_of`: returns
    the function that moves the value of a Send or Receive (None if nothing has to). Raises
    InvalidArgumentError where a kernel is missing.
    """
    return _Cutter(subgraph, environment, watched, dynamic, traced_device, move_of).cut()


class _Cutter:
    def __init__(
        self,
        subgraph: Subgraph,
        environment: Environment,
        watched: bool,
        dynamic: bool,
        traced_device: str,
        move_of: Callable[[PlanNode], Move | None] | None,
    ) -> None:
        self.subgraph, self.environment, self.move_of = subgraph, environment, move_of
        self.watched, self.traced_device = watched, traced_device
        self.frames = order_by_frames(subgraph)
        self.constants: dict[PlanOutput, Any] = {}
        self.endpoints: dict[Any, int] = {}
        for node in subgraph.nodes:
            self._look_for_constant(node)
        self.aliasing = Aliasing(subgraph, self.constants, self.frames, in_pieces=True)
        self.boundary: frozenset[str] = frozenset()
        self.sends_inside = False
        self.frontiers: dict[PlanNode, Frontier[Any]] = {}
        if dynamic or not self._group(dynamic=False):
            self._group(dynamic=True)

    def _look_for_constant(self, node: PlanNode) -> None:
        """Notes an output that is the same object in every step."""
        if node.inputs or node.is_feed or not node.outputs or node.declaration.asynchronous:
            return
        if self.environment.device_type not in node.declaration.kernels:
            return
        kernel = make_kernel(node, self.environment)
        if isinstance(kernel, Value):
            self.constants[node.outputs[0]] = kernel.value

    # ---- grouping

    def _is_boundary(self, node: PlanNode) -> bool:
        if self.sends_inside and node.declaration.role == "send":
            source = node.inputs[0].op
            return source.is_feed or self._is_boundary(source)
        return node.declaration.asynchronous or node.declaration.role in self.boundary

    def _is_free(self, node: PlanNode) -> bool:
        """Whether no unit has to wait for this node: its outputs are constants, alive everywhere."""
        return bool(node.outputs) and node.outputs[0] in self.constants and not node.control_inputs

    def _group(self, dynamic: bool) -> bool:
        """Computes the frontiers. Without `dynamic`, keeps control flow in segments; returns False if it
        cannot."""
        self.boundary = _CONTROL_FLOW if dynamic else frozenset()
        self.sends_inside = not dynamic and self.environment.device_type == CPU
        self.frontiers = {}
        if dynamic or not self.frames.exist:
            for node in self.subgraph.nodes:
                self.frontiers[node] = self._frontier((node,))
        elif not self._group_loops():
            return False
        return dynamic or self._keeps_conditions_inside()

    def _frontier(self, nodes: Collection[PlanNode]) -> Frontier[Any]:
        """The boundary outputs that these nodes, taken together, reach backwards."""
        inside = set(nodes)
        found: set[Any] = set()
        for node in nodes:
            for x in node.inputs:
                source = x.op
                if self._is_boundary(source):
                    found.add(x)
                elif source not in inside and not source.is_feed:
                    found |= self.frontiers[source]
            for control in node.control_inputs:
                if self._is_boundary(control):
                    found.add(control)
                elif control not in inside:
                    found |= self.frontiers[control]
        return frozenset(found)

    def _group_loops(self) -> bool:
        """Gives all nodes of an outermost loop one frontier; returns False if one of them is asynchronous."""
        members: dict[Frame, list[PlanNode]] = {}
        for node in self.subgraph.nodes:
            loop = _outermost(self.frames.home(node))
            if loop is not None:
                members.setdefault(loop, []).append(node)
        for node in self.subgraph.nodes:
            loop = _outermost(self.frames.home(node))
            if loop is None:
                self.frontiers[node] = self._frontier((node,))
            elif node.declaration.asynchronous:
                return False
            elif node not in self.frontiers:
                self.frontiers.update(dict.fromkeys(members[loop], self._frontier(members[loop])))
        return True

    def _keeps_conditions_inside(self) -> bool:
        """Whether no asynchronous node, and no value that one unit passes to another, is in a branch."""
        liveness = self.subgraph.analysis(Liveness)
        if liveness.trivial:
            return True
        for node in self.subgraph.nodes:
            if node.declaration.asynchronous and liveness.node(node) != TRUE:
                return False
            for x in node.inputs:
                if liveness.output(x) != TRUE and self._are_apart(node, x.op):
                    return False
            for control in node.control_inputs:
                if liveness.node(control) != TRUE and self._are_apart(node, control):
                    return False
        return True

    def _are_apart(self, node: PlanNode, source: PlanNode) -> bool:
        if self._is_boundary(node) or self._is_boundary(source):
            return True
        return not self._is_free(source) and self.frontiers[node] != self.frontiers[source]

    # ---- units

    def cut(self) -> tuple[UnitGraph, list[bool]]:
        subgraph = self.subgraph
        groups: dict[Frontier[Any], list[PlanNode]] = {}
        for node in subgraph.nodes:
            if not (self._is_boundary(node) or self._is_free(node) or node.is_feed):
                groups.setdefault(self.frontiers[node], []).append(node)
        self.consumers = subgraph.consumers()
        self.group_of = {node: frontier for frontier, nodes in groups.items() for node in nodes}
        wanted = self._wanted_elsewhere()
        copied: dict[PlanOutput, bool] = {}
        self.units: list[Unit] = []
        for node in subgraph.nodes:
            if self._is_boundary(node):
                self.units.append(self._boundary_unit(node))
        for frontier, nodes in groups.items():
            self.units.append(self._segment_unit(frontier, nodes, wanted.get(frontier, []), copied))
        fetches = [self._endpoint_of(x) for x in subgraph.fetches]
        feeds = [self._endpoint(x) for x in subgraph.feeds]
        must_copy = self.aliasing.copied_fetches(subgraph.fetches)
        flags = [copied.get(x, True) or own for x, own in zip(subgraph.fetches, must_copy, strict=True)]
        graph = UnitGraph(self.units, len(self.endpoints), feeds, fetches)
        for unit in self.units:
            if SEGMENT < unit.kind < ASYNCHRONOUS:
                unit.call = primitive_call(unit)
        return graph, flags

    def _endpoint(self, key: Any) -> int:
        """The number of the endpoint for an output's value, or for the fact that a group or node has run."""
        return self.endpoints.setdefault(key, len(self.endpoints))

    def _endpoint_of(self, x: PlanOutput) -> int:
        """The endpoint of a value; a constant, which no unit computes, gets a unit that returns it."""
        if not self._is_free(x.op):
            return self._endpoint(x)
        endpoint = self._endpoint(x)
        if not any(endpoint in unit.outputs for unit in self.units):
            unit = Unit(SEGMENT, x.op.name)
            value = self.constants[x]
            unit.call = lambda step: (value,)
            unit.node = x.op
            unit.outputs = [endpoint]
            self.units.append(unit)
        return endpoint

    def _wanted_elsewhere(self) -> dict[Any, list[PlanOutput]]:
        """By group, the outputs that other units take or that are fetched."""
        wanted: dict[Any, dict[PlanOutput, None]] = {}

        def want(x: PlanOutput) -> None:
            source = x.op
            if source in self.group_of:
                wanted.setdefault(self.group_of[source], {})[x] = None

        for node in self.subgraph.nodes:
            for x in node.inputs:
                if self._is_boundary(node) or self.group_of.get(node) != self.group_of.get(x.op):
                    want(x)
        for x in self.subgraph.fetches:
            want(x)
        return {group: list(outputs) for group, outputs in wanted.items()}

    def _is_only_asked(self, x: PlanOutput) -> bool:
        """Whether only the executor's Switches take this value, as their predicate."""
        consumers = self.consumers.get(x, ())
        if x in self.subgraph.fetches or not self.boundary:
            return False
        return bool(consumers) and all(t.type in SWITCHES and t.inputs[0] is not x for t in consumers)

    def _waits(self, nodes: list[PlanNode], group: Any) -> list[int]:
        """Endpoints of the units outside the group that these nodes wait for by control edges."""
        found: dict[int, None] = {}
        for node in nodes:
            for control in node.control_inputs:
                if self._is_free(control) or control.is_feed:
                    continue
                if self._is_boundary(control):
                    only_output = (
                        control.type in ENTERS or control.type in EXITS or control.type in NEXT_ITERATIONS
                    )
                    found[self._endpoint(control.outputs[0] if only_output else control)] = None
                elif group is None or self.group_of[control] != group:
                    found[self._endpoint(self.group_of[control])] = None
        return list(found)

    def _boundary_unit(self, node: PlanNode) -> Unit:
        unit = Unit(_kind(node), node.name)
        unit.node = node
        for i, x in enumerate(node.inputs):
            if self._is_free(x.op) and unit.kind not in (MERGE, HEAD):
                unit.fixed.append((i, self.constants[x]))
            else:
                unit.inputs.append(self._endpoint_of(x))
            place = 0 if unit.kind in (MERGE, HEAD) else i
            if x.dtype.is_ref and not node.input_argument(i).is_ref:
                unit.buffers.append(place)
            if self._must_copy(node, i):
                unit.copies.append(place)
        unit.waits_for = [e for e in self._waits([node], None) if e not in unit.inputs]
        unit.outputs = [self._endpoint(x) for x in node.outputs]
        if unit.kind in (ENTER, EXIT, NEXT):
            unit.done = -1  # their output signals it
        else:
            unit.done = self._endpoint(node)
        if unit.kind == ENTER:
            unit.frame = node.attributes["frame_name"]
            unit.is_constant = node.attributes["is_constant"]
            unit.parallel_iterations = max(1, node.attributes["parallel_iterations"])
        if unit.kind in (SEND, RECEIVE):
            attributes = node.attributes
            unit.way = (attributes["tensor_name"], attributes["send_device"], attributes["recv_device"])
            unit.call = None if self.move_of is None else self.move_of(node)
        elif unit.kind == ASYNCHRONOUS:
            kernel = self._asynchronous_kernel(node)
            unit.call, unit.at_once = kernel.function, kernel.at_once
        return unit

    def _must_copy(self, node: PlanNode, i: int) -> bool:
        """Whether the op keeps this input, whose memory may change."""
        if self.environment.memory is not None:  # buffers of registered types do not change
            return False
        return self.aliasing.must_copy_kept(node, i)

    def _asynchronous_kernel(self, node: PlanNode) -> AsyncCall:
        kernel = make_kernel(node, self.environment, fallback=CPU)
        assert isinstance(kernel, AsyncCall), f"the kernel of {node.type} is not asynchronous"
        return kernel

    def _segment_unit(
        self, group: Any, nodes: list[PlanNode], wanted: list[PlanOutput], copied: dict[PlanOutput, bool]
    ) -> Unit:
        """The nodes of one group as a compiled segment, fed with what comes from other units."""
        unit = Unit(SEGMENT, nodes[0].name)
        unit.waits_for = self._waits(nodes, group)
        unit.done = self._endpoint(group)
        copies = SegmentCopies(nodes, bool(self.boundary))
        for node in nodes:
            for x in node.inputs:
                if x.op not in copies.of_node and x not in copies.of_output:
                    if self._is_free(x.op):
                        copies.share(x.op)
                    else:
                        copies.add_argument(x)
        for node in nodes:
            copies.add(node)
        unit.inputs = [self._endpoint(x) for x in copies.taken]
        unit.waits_for = [e for e in unit.waits_for if e not in unit.inputs]
        unit.outputs = [self._endpoint(x) for x in wanted]
        part = copies.subgraph(wanted)
        others = {copy for copy, x in zip(part.fetches, wanted) if not self._is_only_asked(x)}
        unit.segment = compile_segment(
            part,
            self.environment,
            self.watched,
            returns_references=True,
            traced_device=self.traced_device,
            asked=frozenset(part.fetches) - others,
            shown={copies.of_output[x]: self.aliasing.states_shown(x) for x in copies.taken},
            changed_elsewhere=self.aliasing.changed_states(),
        )
        unit.call = unit.segment.function
        outlasting = [i for i, x in enumerate(wanted) if self.aliasing.outlives_change(x)]
        if outlasting:
            unit.call = _copying(unit.segment.function, outlasting)
        for x, must_copy in zip(wanted, unit.segment.copied_fetches):
            copied[x] = must_copy
        return unit


def _copying(function: Callable[..., Any], places: list[int]) -> Callable[..., Any]:
    """Wraps a segment's function to copy its results at `places`: values of state that other units change
    before all consumers have used them."""

    def call(step: Any, *arguments: Any) -> list[Any]:
        results = list(function(step, *arguments))
        for i in places:
            results[i] = results[i].clone()
        return results

    return call


def _kind(node: PlanNode) -> int:
    if node.declaration.asynchronous:
        role = node.declaration.role
        return SEND if role in SENDS else RECEIVE if role in RECEIVES else ASYNCHRONOUS
    if node.type in MERGES:
        return HEAD if is_head(node) else MERGE
    if node.type in SWITCHES:
        return SWITCH
    if node.declaration.role == "trigger":
        return TRIGGER
    return ENTER if node.type in ENTERS else EXIT if node.type in EXITS else NEXT


def _outermost(frame: Frame | None) -> Frame | None:
    while frame is not None and frame.parent is not None:
        frame = frame.parent
    return frame
