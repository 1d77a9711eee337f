"""Loops without their gradients: what a gradient pops of a loop's stacks, it takes of whole arrays instead.

A program neither takes nor gives stacks and arrays (`region_members.py`), so a loop and its gradient can only
be one program together. Where something lies between them that machine code lacks (a py_func, a CTC loss),
they can be two, if the number of iterations is known, or a small one that it does not exceed:

    StackPushV2(stack, x)  →  TensorArrayWriteV3(array, t, x); after the loop: w = TensorArrayGatherV3(array)
    StackPopV2(stack)      →  GatherV2(w, left)

where the counter `left` of the gradient's loop is t for what iteration t pushed. An array of gradients is of
an array like the loop's own, which nobody writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import fully_known
from flowstone.lowering.programs.containers import element_dims
from flowstone.lowering.programs.program_limits import NARROW
from flowstone.rewriting.analyses.counted_loops import (
    Loop,
    Loops,
    countdown_of,
    most_steps_of,
    steps_of,
)
from flowstone.rewriting.analyses.frames import ENTERS, order_by_frames
from flowstone.rewriting.loops.loop_stacks import Stack, find_stack, is_always_in
from flowstone.rewriting.patterns import substitute_in_order

__all__ = ["part_loops"]


def part_loops(
    subgraph: Subgraph, left_out: Collection[PlanNode], is_known: Callable[[PlanNode], bool]
) -> bool:
    """Parts loops from their gradients; returns whether any was. `left_out`: the Enters of loops that are
    worth it; `is_known`: whether a node may be part of a program."""
    loops = Loops(subgraph)
    parting, entries = _Parting(loops), set(left_out)

    def is_meant(loop: Loop) -> bool:
        return not entries.isdisjoint(loop.nodes) and all(map(is_known, loop.nodes))

    for forward in loops.by_frame.values():
        steps = (steps_of(forward) or most_steps_of(forward)) if is_meant(forward) else None
        for backward in loops.by_frame.values():
            if steps and backward is not forward and is_meant(backward):
                parting.part(forward, backward, steps, steps == steps_of(forward))
    return parting.end()


class _Parting:
    """The changes so far, as `substitute` takes them."""

    def __init__(self, loops: Loops) -> None:
        self._loops, self._subgraph = loops, loops.subgraph
        self._places: dict[PlanNode, list[PlanNode]] = {}
        self._replaced: dict[PlanOutput, PlanOutput] = {}
        self._replacements: dict[PlanNode, list[PlanNode]] = {}

    def end(self) -> bool:
        """Makes the changes; returns whether there are any."""
        if not self._places:
            return False

        def arranged() -> None:
            order_by_frames(self._subgraph)

        changes = self._places, self._replaced, self._replacements
        return substitute_in_order(self._subgraph, *changes, arranged, whole=True)

    def part(self, forward: Loop, backward: Loop, steps: int, are_all: bool) -> None:
        """Has the gradient's loop take nothing of the loop's containers, if it is its gradient's. There are
        so many steps, or no more."""
        countdown = countdown_of(forward, backward)
        if countdown is None:
            return
        counter = next(x for x in forward.counters() if x.exit is countdown.enter.inputs[0].op)
        inside = (set(forward.nodes), set(backward.nodes))
        stacks = list(self._stacks(*inside))
        ends = [(x, counter) for each in stacks for x in each.pushes]
        ends += [(x, countdown) for each in stacks for x in each.pops]
        frames, liveness = self._loops.frames, self._loops.liveness
        if not all([is_always_in(node, variable, frames, liveness) for node, variable in ends]):
            return
        for each in stacks:
            dims = fully_known(each.pushes[0].inputs[1].dims)
            if dims is None or each.pops[0].outputs[0] in self._subgraph.fetches:
                return
            if not are_all and steps * math.prod(dims) > NARROW.elements:
                return  # rows that are never written are zeros, which take their time
        for each in stacks:
            self._take_whole(each, steps, counter.value, counter.exit, countdown.next_value)
        for node in self._subgraph.nodes:
            if node.type == "TensorArrayV3" and not node.attributes["dynamic_size"]:
                self._part_gradients(node, inside[0])

    def _stacks(self, forward: set[PlanNode], backward: set[PlanNode]) -> Iterator[Stack]:
        """Those that the one loop pushes to, once, and the other one pops from, once."""
        for node in self._subgraph.nodes:
            found = find_stack(node, self._loops.consumers) if node.type == "StackV2" else None
            if found is None or (len(found.pushes), len(found.pops)) != (1, 1):
                continue
            if found.pushes[0] in forward and found.pops[0] in backward:
                yield found

    def _take_whole(
        self, stack: Stack, steps: int, t: PlanOutput, leaving: PlanNode | None, left: PlanOutput
    ) -> None:
        (push,), (pop,), creation = stack.pushes, stack.pops, stack.creation
        assert leaving is not None
        value, dims = push.inputs[1], push.inputs[1].dims
        kind = value.dtype.base_dtype
        size = self._constant(np.array(steps, np.int32), creation, "size")
        named = {"tensor_array_name": creation.name, "clear_after_read": False, "dynamic_size": False}
        options = {"element_shape": dims, "identical_element_shapes": True, "dtype": kind, **named}
        array = self._subgraph.new_node(registry["TensorArrayV3"], [size.outputs[0]], options, creation)
        self._places[creation] = [size, array]
        for enter in stack.enters:
            self._places[enter] = []
        enter = self._subgraph.new_node(
            push.inputs[0].op.declaration, [array.outputs[0]], push.inputs[0].op.attributes, push.inputs[0].op
        )
        flow = self._constant(np.array(0, np.float32), push, "flow")
        inputs = [enter.outputs[0], t, value, flow.outputs[0]]
        write = self._subgraph.new_node(registry["TensorArrayWriteV3"], inputs, {"T": kind}, push)
        write.control_inputs = list(push.control_inputs)
        self._put(push.inputs[0].op, [enter])
        self._put(push, [flow, write], write)
        places = self._constant(np.arange(steps, dtype=np.int32), leaving, "range")
        inputs = [array.outputs[0], places.outputs[0], array.outputs[1]]
        options = {"dtype": kind, "element_shape": dims}
        whole = self._subgraph.new_node(registry["TensorArrayGatherV3"], inputs, options, leaving)
        whole.control_inputs = [leaving]
        self._places.setdefault(leaving, [leaving]).extend([places, whole])
        old = pop.inputs[0].op
        options = {**old.attributes, "T": kind}
        taken = self._subgraph.new_node(registry["Enter"], [whole.outputs[0]], options, old)
        self._put(old, [taken])
        axis = self._constant(np.array(0, np.int32), pop, "axis")
        options = {"Tparams": kind, "Tindices": left.dtype, "Taxis": dtypes.int32, "batch_dims": 0}
        inputs = [taken.outputs[0], left, axis.outputs[0]]
        row = self._subgraph.new_node(registry["GatherV2"], inputs, options, pop)
        row.control_inputs = list(pop.control_inputs)
        self._put(pop, [axis, row], row)
        self._replaced[pop.outputs[0]] = row.outputs[0]
        self._subgraph.log.append(("join_programs", creation.name, "its gradient takes it as an array"))

    def _part_gradients(self, array: PlanNode, forward: set[PlanNode]) -> None:
        """Arrays of gradients are those of an array that is like this one, which the loop uses."""
        users = self._loops.consumers.get(array.outputs[0], ())
        gradients = [x for x in users if x.type == "TensorArrayGradV3" and x not in self._places]
        inner = [x for each in users if each.type in ENTERS for x in self._loops.consumers[each.outputs[0]]]
        found = {dims for x in (*users, *inner) if (dims := element_dims(x)) is not None}
        if not gradients or len(found) != 1 or not forward.issuperset(inner):
            return
        options = {**array.attributes, "element_shape": found.pop()}
        like = self._subgraph.new_node(array.declaration, list(array.inputs), options, gradients[0])
        self._places[gradients[0]] = [like]
        for old in gradients:
            new = self._subgraph.new_node(old.declaration, list(like.outputs), old.attributes, old)
            self._put(old, [new], new)
            self._replaced.update(zip(old.outputs, new.outputs))

    def _constant(self, value: np.ndarray[Any, Any], like: PlanNode, name: str) -> PlanNode:
        return self._subgraph.new_constant(value, like, name)

    def _put(self, old: PlanNode, new: list[PlanNode], standing: PlanNode | None = None) -> None:
        self._places[old] = [*self._places.get(old, ()), *new]
        if standing is not None:
            self._replacements[old] = [standing]
