"""Removes needless stacks between a loop and its gradient (`ops/lists/stacks.py`).

A loop's gradient counts its iterations down: where its counter is s the value on top of each stack is the one
that the loop pushed when it had made s iterations. So the loop's own counter, `first + step s`, need not be
pushed: it may be a Python number then (`runtime/code/numbers.py`), and so is what is computed in its place.

    forward:   Enter(0) → Merge → Switch → Add(·, 1) → NextIteration;  Switch:0 → Exit
    gradient:  Enter(that Exit) → Merge → Switch → s = Sub(·, 1) → NextIteration, while GreaterEqual(Merge, 1)

A value that every iteration pushes the same, because it comes from outside, is brought into the gradient's
loop instead: a weight that the loop multiplies by.

A stack from which nothing is popped that anything uses goes as well, with what is computed from it and only
waited for: the gradient with respect to a number that a loop divides by, say, which comes with that by the
dividend.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES, TRUE, Liveness
from flowstone.rewriting.analyses.frames import ENTERS, EXITS, LOOP_TYPES, Frames, order_by_frames
from flowstone.rewriting.analyses.loop_variables import LoopVariable, constant_of, entered, loop_variables
from flowstone.rewriting.patterns import substitute

_INTEGERS = (dtypes.int32, dtypes.int64)


class Stack(NamedTuple):
    """A stack of any length, which nothing but these pushes to and pops from."""

    creation: PlanNode
    enters: list[PlanNode]
    pushes: list[PlanNode]
    pops: list[PlanNode]


class _Countdown(NamedTuple):
    """The counter of a loop's iterations, and that of its gradient, which is `left` in the body."""

    forward: LoopVariable
    backward: LoopVariable
    left: PlanOutput


def drop_stacks(subgraph: Subgraph) -> None:
    """Takes counters off stacks, and drops stacks that nobody reads."""
    creations = [node for node in subgraph.nodes if node.type == "StackV2"]
    if not creations:
        return
    consumers = subgraph.consumers()
    stacks = [stack for node in creations if (stack := find_stack(node, consumers)) is not None]
    _Counters(subgraph, consumers).take_off(stacks)
    _bring_in_constants(subgraph, stacks)
    _drop_idle(subgraph, {stack.pops[0] for stack in stacks if len(stack.pops) == 1})
    used = {*subgraph.consumers(), *subgraph.fetches}
    _drop(subgraph, [stack for stack in stacks if not any(pop.outputs[0] in used for pop in stack.pops)])


def find_stack(creation: PlanNode, consumers: Consumers) -> Stack | None:
    """The stack that this node makes; None if it is bounded, or others than pushes and pops take it."""
    if (constant_of(creation.inputs[0]) or 0) >= 0:
        return None
    found = Stack(creation, [], [], [])
    waiting = list(consumers.get(creation.outputs[0], ()))
    while waiting:
        node = waiting.pop()
        if node.type in ENTERS and node.attributes["is_constant"]:
            found.enters.append(node)
            waiting += consumers.get(node.outputs[0], ())
        elif node.type == "StackPushV2" and node.outputs[0] not in consumers:
            found.pushes.append(node)
        elif node.type == "StackPopV2" and node.control_inputs:
            found.pops.append(node)
        else:
            return None
    return found


def _bring_in_constants(subgraph: Subgraph, stacks: list[Stack]) -> None:
    """Has the gradient of a loop that is in no other take from outside what the loop takes from there."""
    frames, liveness = subgraph.analysis(Frames), subgraph.analysis(Liveness)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for stack in stacks:
        if len(stack.pushes) != 1:
            continue
        source = entered(stack.pushes[0].inputs[1])
        if source is None or frames.home(source.op) is not None or liveness.output(source) != TRUE:
            continue
        for pop in stack.pops:
            enter, popped = pop.inputs[0].op, pop.outputs[0]
            is_inside = enter in stack.enters and enter.inputs[0].op is stack.creation
            if is_inside and popped not in subgraph.fetches and source.dtype is popped.dtype:
                attributes = {**enter.attributes, "T": source.dtype}
                new = subgraph.new_node(registry["Enter"], [source], attributes, enter)
                places[pop], replaced[popped] = [new, pop], new.outputs[0]
                reason = "the same in every iteration, brought in instead of popped"
                subgraph.log.append(("drop_stacks", stack.creation.name, reason))
    substitute(subgraph, places, replaced, {})
    if places:
        order_by_frames(subgraph)


def _drop(subgraph: Subgraph, stacks: list[Stack]) -> None:
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    replacements: dict[PlanNode, list[PlanNode]] = {}
    for stack in stacks:
        places.update({node: [] for node in (stack.creation, *stack.enters, *stack.pushes, *stack.pops)})
        for push in stack.pushes:
            value = push.inputs[1]
            replaced[push.outputs[0]] = value
            replacements[push] = list(push.control_inputs)
            if value.op.type not in SWITCHES:  # which runs when its iteration, or branch, does not
                replacements[push].append(value.op)
        for pop in stack.pops:
            replacements[pop] = list(pop.control_inputs)
        subgraph.log.append(("drop_stacks", stack.creation.name, "nothing that is popped is used"))
    substitute(subgraph, places, replaced, replacements)


def _drop_idle(subgraph: Subgraph, pops: set[PlanNode]) -> None:
    """Drops nodes of loops, these pops among them, whose values nobody needs; who waits for one waits for
    what it comes after in its loop."""
    frames, liveness = subgraph.analysis(Frames), subgraph.analysis(Liveness)
    waited_for = {control for node in subgraph.nodes for control in node.control_inputs}

    def before(node: PlanNode) -> list[PlanNode]:
        sources = dict.fromkeys(node.sources())
        return [x for x in sources if x.type not in ENTERS and frames.home(x) is frames.home(node)]

    def may_go(node: PlanNode) -> bool:
        if frames.home(node) is None or not node.inputs or node.type in LOOP_TYPES | SWITCHES | MERGES:
            return False
        if not (node.declaration.is_pure or node in pops) or liveness.node(node) != TRUE:
            return False
        if node in waited_for and any(x.op.type in SWITCHES for x in node.inputs):
            return False  # a Switch also runs after the last iteration
        sources = before(node)
        return bool(sources) and all([liveness.node(source) == TRUE for source in sources])

    needed: set[Any] = set()
    stack: list[Any] = [x.op for x in subgraph.fetches] + list(subgraph.targets)
    stack += [node for node in subgraph.nodes if not may_go(node)]
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            stack += [x.op for x in node.inputs]
    if pops <= needed:
        return
    replacements: dict[PlanNode, list[PlanNode]] = {}
    for node in subgraph.nodes:
        if node not in needed:
            waits = [y for x in before(node) for y in replacements.get(x, (x,))]
            replacements[node] = list(dict.fromkeys(waits))
    substitute(subgraph, {node: [] for node in replacements}, {}, replacements)


class _Counters:
    """The counters among the loop variables of a subgraph."""

    def __init__(self, subgraph: Subgraph, consumers: Consumers) -> None:
        self._subgraph, self._consumers = subgraph, consumers
        self._fetched = set(subgraph.fetches)
        variables = loop_variables(subgraph, consumers)
        self._steps = {each.value: step for each in variables if (step := _step(each)) is not None}
        self._variables = {each.value: each for each in variables if each.value in self._steps}
        self._countdowns = self._find_countdowns()

    def _find_countdowns(self) -> list[_Countdown]:
        counts: dict[PlanNode, LoopVariable] = {}  # by the Exit with the number of iterations
        for value, variable in self._variables.items():
            if self._steps[value] == 1 and constant_of(variable.enter.outputs[0]) == 0 and variable.exit:
                counts[variable.exit] = variable
        found = []
        for value, variable in self._variables.items():
            source = variable.enter.inputs[0].op
            if self._steps[value] == -1 and source in counts and _runs_to_one(variable):
                found.append(_Countdown(counts[source], variable, variable.next_value))
        return found

    def take_off(self, stacks: list[Stack]) -> None:
        """Computes what is popped of counters that were pushed."""
        if not self._countdowns:
            return
        frames, liveness = self._subgraph.analysis(Frames), self._subgraph.analysis(Liveness)
        places: dict[PlanNode, list[PlanNode]] = {}
        replaced: dict[PlanOutput, PlanOutput] = {}
        for stack in stacks:
            if len(stack.pushes) != 1 or len(stack.pops) != 1:
                continue
            (push,), (pop,) = stack.pushes, stack.pops
            pushed, popped = self._variables.get(push.inputs[1]), pop.outputs[0]
            if pushed is None or popped in self._fetched or pushed.value.dtype is not popped.dtype:
                continue
            for each in self._countdowns:
                ends = (push, each.forward), (pop, each.backward)
                if all(is_always_in(node, loop, frames, liveness) for node, loop in ends):
                    computed = self._computed(pushed, each, pop)
                    if computed is not None:
                        places[pop] = [*computed, pop]
                        replaced[popped] = computed[-1].outputs[0] if computed else each.left
                        name, reason = stack.creation.name, "the gradient counts down instead of popping"
                        self._subgraph.log.append(("drop_stacks", name, reason))
        substitute(self._subgraph, places, replaced, {})

    def _computed(self, pushed: LoopVariable, each: _Countdown, pop: PlanNode) -> list[PlanNode] | None:
        """The nodes of ``first + step left``, the last of which has the value; none where `left` is it."""
        first, step = constant_of(pushed.enter.outputs[0]), self._steps[pushed.value]
        if first is None or each.left.dtype is not pushed.value.dtype:
            return None
        nodes: list[PlanNode] = []
        value = each.left
        for op_type, number, idle in (("Mul", step, 1), ("AddV2", first, 0)):
            if number != idle:
                constant = self._node("Const", [], pop, np.array(number, value.dtype.as_numpy_dtype))
                nodes += [constant, self._node(op_type, [value, constant.outputs[0]], pop)]
                value = nodes[-1].outputs[0]
        return nodes

    def _node(self, op_type: str, inputs: list[PlanOutput], like: PlanNode, value: object = None) -> PlanNode:
        kind = like.outputs[0].dtype
        attributes = {"T": kind} if value is None else {"dtype": kind, "value": value}
        name = f"{like.name}/{op_type}"
        return self._subgraph.new_node(registry[op_type], inputs, attributes, like, name=name)


def _step(variable: LoopVariable) -> int | None:
    """By how much an integer variable grows in each iteration, if always by the same."""
    value, add = variable.value, variable.next_value.op
    if value.dtype not in _INTEGERS or value.dims != () or add.type not in ("Add", "AddV2", "Sub"):
        return None
    a, b = add.inputs
    if b is value and add.type != "Sub":
        a, b = b, a
    step = constant_of(b) if a is value else None
    if step is None:
        return None
    return int(-step if add.type == "Sub" else step)


def _runs_to_one(variable: LoopVariable) -> bool:
    """Whether the loop goes on as long as this counter is at least one."""
    predicate = variable.switch.inputs[1].op.inputs[0].op
    if predicate.type not in ("GreaterEqual", "Greater"):
        return False
    counter, limit = predicate.inputs
    least = 1 if predicate.type == "GreaterEqual" else 0
    return counter is variable.merge.outputs[0] and constant_of(limit) == least


def is_always_in(node: PlanNode, loop: LoopVariable, frames: Frames, liveness: Liveness) -> bool:
    """Whether the node runs in every iteration of the loop of this variable."""
    if frames.of[node] is not frames.of[loop.merge]:
        return False
    return node.type not in EXITS and liveness.node(node) == liveness.node(loop.merge)
