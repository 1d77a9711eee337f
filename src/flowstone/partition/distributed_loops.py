"""Loops across devices: each device gets its own control loop (white paper 4.4).

A Receive inside a loop must run once in every iteration, but only one device computes the loop's predicate
and so knows whether there is another iteration. So every device that takes part in a frame gets a small loop
of its own in the same frame:

    Enter(a constant) -> Merge -> Switch(LoopCond(the predicate, received)) -> pivot -> NextIteration

A Receive of a value from before the predicate waits for that Merge. A Receive of a value of the body waits
for the pivot, and is dead if the pivot is. An inner frame is entered once in each iteration of the outer one,
so the constant of its control loop waits for the Merge or pivot of the outer control loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.frames import ENTERS, EXITS, Frame, Frames, is_head, is_loop_switch


class _ControlLoop:
    """A frame's control nodes on one device: the `merge` at its head, the LoopCond that is `asked`, and the
    body's `pivot`."""

    def __init__(self, merge: PlanNode, asked: PlanNode, pivot: PlanNode) -> None:
        self.merge, self.asked, self.pivot = merge, asked, pivot


class ControlLoops:
    """The control loops of a subgraph whose nodes are in frame order.

    `add` makes them for all frames that lie on several devices and returns the new nodes, which join
    `device_of` and `frames`; `trigger` says what a Receive of a value of a frame must wait for. First it
    moves the Enter, NextIteration and Exit of each loop variable to the devices of its Merge and Switch.
    """

    def __init__(self, subgraph: Subgraph, frames: Frames, device_of: dict[PlanNode, Any]) -> None:
        self._subgraph, self._frames, self._device_of = subgraph, frames, device_of
        self._position = {node: i for i, node in enumerate(subgraph.nodes)}
        self._loops: dict[tuple[Frame, Any], _ControlLoop] = {}
        self._predicates: dict[Frame, PlanNode] = {}
        self._enters: dict[Frame, PlanNode] = {}
        self._made: list[PlanNode] = []
        for node in subgraph.nodes:
            frame = frames.home(node)
            if frame is not None and node.declaration.role == "loop_condition":
                self._predicates[frame] = node
            elif frame is not None and node.type in ENTERS:
                self._enters.setdefault(frame, node)

    def add(self) -> list[PlanNode]:
        """Makes a control loop on every device of each frame that lies on more than one."""
        self._gather_variables()
        devices: dict[Frame, dict[Any, None]] = {}
        for node in self._subgraph.nodes:
            frame = self._frames.home(node)
            while frame is not None:
                devices.setdefault(frame, {})[self._device_of[node]] = None
                frame = frame.parent
        for frame, those in devices.items():
            if len(those) > 1 and frame in self._predicates:
                for device in those:
                    self._loop(frame, device)
        for node in self._subgraph.nodes:
            frame = self._frames.of[node]
            if is_loop_switch(node) and (frame, self._device_of[node]) in self._loops:
                node.inputs[1] = self._loops[frame, self._device_of[node]].asked.outputs[0]  # type: ignore[index]
        return self._made

    def _gather_variables(self) -> None:
        """Moves Enters, NextIterations and Exits to the devices of their variables' Merges and Switches.
        Their values do not exist in every iteration, so they cannot be received in a loop."""
        device_of = self._device_of
        taken: set[PlanNode] = set()  # Enters and NextIterations that have been moved
        for node in list(self._subgraph.nodes):
            if is_head(node):
                for i, x in enumerate(node.inputs):
                    if x.op in taken and device_of[x.op] is not device_of[node]:
                        node.inputs[i] = self._repeated(x.op, device_of[node]).outputs[0]
                    else:
                        taken.add(x.op)
                        device_of[x.op] = device_of[node]
            elif node.type in EXITS:
                device_of[node] = device_of[node.inputs[0].op]

    def _repeated(self, node: PlanNode, device: Any) -> PlanNode:
        """A copy, on another device, of an Enter or NextIteration that two variables share."""
        copy = self._subgraph.new_node(node.declaration, list(node.inputs), node.attributes, node)
        copy.control_inputs = list(node.control_inputs)
        self._device_of[copy] = device
        self._frames.of[copy] = self._frames.of[node]
        self.stand_beside(copy, node)
        self._made.append(copy)
        return copy

    def stand_beside(self, node: PlanNode, other: PlanNode) -> None:
        """Gives a new node the position of `other`, beside which it runs."""
        self._position[node] = self._position.get(other, -1)

    def trigger(self, frame: Frame, source: PlanNode, device: Any) -> PlanNode:
        """The node on `device` that is alive exactly where `source`, of this frame, may run elsewhere."""
        loop = self._loop(frame, device)
        is_in_body = self._position.get(source, -1) > self._position[self._predicates[frame]]
        return loop.pivot if is_in_body else loop.merge

    def _loop(self, frame: Frame, device: Any) -> _ControlLoop:
        found = self._loops.get((frame, device))
        if found is None:
            found = self._loops[frame, device] = self._make(frame, device)
        return found

    def _make(self, frame: Frame, device: Any) -> _ControlLoop:
        enter_like = self._enters[frame]
        nothing = {"value": np.zeros((), np.float32), "dtype": dtypes.float32}
        start = self._node("Const", [], nothing, frame, device)
        self._frames.of[start] = frame.parent
        if frame.parent is not None:
            start.control_inputs = [self.trigger(frame.parent, enter_like, device)]
        attributes = {**enter_like.attributes, "T": dtypes.float32, "is_constant": False}
        enter = self._node("Enter", [start.outputs[0]], attributes, frame, device)
        value = enter.outputs[0]
        merge = self._node("Merge", [value, value], {"T": dtypes.float32, "N": 2}, frame, device, (2,))
        predicate = self._predicates[frame]
        asked = self._node("LoopCond", [predicate.inputs[0]], {}, frame, device)
        switch = self._node(
            "Switch", [merge.outputs[0], asked.outputs[0]], {"T": dtypes.float32}, frame, device
        )
        pivot = self._node("Identity", [switch.outputs[1]], {"T": dtypes.float32}, frame, device)
        following = self._node("NextIteration", [pivot.outputs[0]], {"T": dtypes.float32}, frame, device)
        merge.inputs[1] = following.outputs[0]
        return _ControlLoop(merge, asked, pivot)

    def _node(
        self,
        op_type: str,
        inputs: list[Any],
        attributes: dict[str, Any],
        frame: Frame,
        device: Any,
        group_sizes: tuple[int, ...] | None = None,
    ) -> PlanNode:
        like = self._predicates[frame]
        name = f"{frame.name}/control/{op_type}"
        node = self._subgraph.new_node(registry[op_type], inputs, attributes, like, group_sizes, name)
        self._device_of[node] = device
        self._frames.of[node] = frame
        self._made.append(node)
        return node
