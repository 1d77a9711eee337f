"""From nodes to a program: `translated` turns a region of a subgraph into what the native tier compiles.

A Switch and what hangs on it becomes statements with guards, a Merge sets one value where either input is
alive (`rewriting/analyses/branches.py`), and the nodes of a frame become a `Loop` over its variables. Stacks
and arrays that the region makes become containers of the program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.lowering.programs.container_statements import CONTAINERS
from flowstone.lowering.programs.containers import HANDING_ON
from flowstone.lowering.programs.loop_sums import LoopSums
from flowstone.lowering.programs.node_statements import STATEMENTS
from flowstone.lowering.programs.program_limits import (
    NARROW,
    Limits,
    TooMuch,
    Untranslatable,
    check_size,
    kind_of,
    static_dims,
)
from flowstone.lowering.programs.program_members import Packed
from flowstone.lowering.programs.random_statements import DRAWS
from flowstone.lowering.programs.statement_parts import spread
from flowstone.lowering.programs.translation import Translation
from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.programs.open_sizes import Undecided, is_open, typical
from flowstone.native.programs.program_kernels import program_texts
from flowstone.native.programs.program_memory import arranged, needs_padding, open_places, own_bytes
from flowstone.native.programs.programs import Guard, Loop, Program, Statement
from flowstone.native.programs.row_parts import in_parts, largest_product, products
from flowstone.rewriting.analyses.branches import FALSE, TRUE, Condition
from flowstone.rewriting.analyses.frames import Frame, is_head
from flowstone.rewriting.analyses.loop_variables import ConditionVariable, LoopVariable, condition_variables

__all__ = ["RegionTranslation", "drawing_nodes", "has_no_value", "is_part_of_code", "translated"]

_Variable = LoopVariable | ConditionVariable
_FEW = 16  # numbers of a constant that is part of the code
_IDLE = frozenset({"no_op", "trigger"})  # roles of nodes that only wait


def translated(
    subgraph: Subgraph,
    nodes: Sequence[PlanNode],
    inputs: Sequence[PlanOutput],
    outputs: Sequence[PlanOutput],
    packed_inputs: Sequence[Packed] = (),
    packed_outputs: Sequence[Packed] = (),
    limits: Limits = NARROW,
    frame: Frame | None = None,
) -> Program:
    """The program that computes `outputs`, and packs, from `inputs`, and packs, by these nodes of a frame,
    which are in an order in which loops are blocks. A stream for each that draws is the last of both. Raises
    Untranslatable for the first node that cannot be part of it.
    """
    translation, drawing = RegionTranslation(subgraph, nodes, inputs, limits), drawing_nodes(nodes)
    if packed_inputs:
        translation.unpack(packed_inputs)
    translation.begin_streams(drawing)
    try:
        translation.block(nodes, frame)
    except Undecided as error:
        raise Untranslatable(nodes[0], str(error)) from None
    results = [translation.of(x) for x in outputs] + [translation.packed(each) for each in packed_outputs]
    results += [translation.stream(node) for node in drawing]
    program = translation.builder.program(len(inputs) + len(packed_inputs) + len(drawing), results)
    machine = subgraph.machine
    program = in_parts(program, machine.loop_threads(), machine.profile.loop_team)
    loops = [each for each in program.body if isinstance(each, Loop)]
    for node, loop in zip(translation.loops, loops):
        if largest_product(program, loop) > limits.looped_terms:
            raise Untranslatable(node, "its products are large")
    if program.is_open:
        program = _bounded(program, loops, limits)
    if _is_much(program, limits):
        raise TooMuch(nodes[0], "its values take much memory")
    if program.is_open:
        try:
            program_texts(program)
        except (Undecided, TypeError) as error:
            raise Untranslatable(translation.loops[0] if loops else nodes[0], str(error)) from None
    return program


def _bounded(program: Program, loops: Sequence[Loop], limits: Limits) -> Program:
    """The program that gives up in steps in which products in its loops turn out to be large."""
    sizes = dict.fromkeys([n for loop in loops for n in products(program, loop) if is_open(n)])
    bounds = [Statement("AtMost", (), (), (("most", limits.looped_terms), ("size", size))) for size in sizes]
    return program._replace(body=(*bounds, *program.body))


def _is_much(program: Program, limits: Limits) -> bool:
    """Whether the values take more memory than they may, those that are too large for loops apart."""
    if program.is_open:
        return sum(map(typical, open_places(program, needs_padding(program))[1])) > limits.memory
    if own_bytes(program) <= limits.in_loops:
        return False
    size = arranged(program, needs_padding(program))[1]
    own = [x for i, x in enumerate(program.values) if x.memory == i and x.size > NARROW.elements]
    return size > limits.memory or size - sum(x.size * SIZES[x.dtype] for x in own) > limits.in_loops


def drawing_nodes(nodes: Sequence[PlanNode]) -> list[PlanNode]:
    """Those that draw random numbers."""
    return [node for node in nodes if node.type in DRAWS]


def is_part_of_code(node: PlanNode) -> bool:
    """Whether the node is a constant of few numbers, or the same one everywhere."""
    if not node.is_constant:
        return False
    value = np.asarray(node.attributes["value"])
    if value.dtype.kind not in "fiub":
        return False
    return value.size <= _FEW or not any(value.strides) or bool((value == value.flat[0]).all())


def has_no_value(node: PlanNode) -> bool:
    """Whether the node is a constant that is no value of programs: a report's text, the shape of a scalar."""
    if not node.is_constant:
        return False
    return node.outputs[0].dtype.base_dtype.name not in KINDS or not np.size(node.attributes["value"])


class RegionTranslation(Translation):
    """A translation of nodes in order, with their branches and loops."""

    def __init__(
        self,
        subgraph: Subgraph,
        nodes: Sequence[PlanNode],
        inputs: Sequence[PlanOutput],
        limits: Limits = NARROW,
    ) -> None:
        super().__init__(subgraph, nodes, inputs, limits)
        self._around: list[Guard] = []  # what holds inside of each loop
        self.loops: list[PlanNode] = []  # the first nodes of those that are in no other
        self._sums = LoopSums(self, subgraph, nodes)

    def block(self, nodes: Sequence[PlanNode], frame: Frame | None) -> None:
        """Translates nodes of a frame, with the frames inside it."""
        i = 0
        while i < len(nodes):
            inner = self._child(self.frames.home(nodes[i]), frame)
            if inner is None:
                self._node(nodes[i])
                i += 1
                continue
            end = i
            while end < len(nodes) and self._child(self.frames.home(nodes[end]), frame) is inner:
                end += 1
            self._loop(nodes[i:end], inner)
            i = end

    def _child(self, home: Frame | None, frame: Frame | None) -> Frame | None:
        """The frame directly inside of `frame` that `home` is, or lies in."""
        while home is not None and home is not frame:
            if home.parent is frame:
                return home
            home = home.parent
        return None

    def _node(self, node: PlanNode) -> None:
        if node.declaration.role in _IDLE:
            return
        self._guard = self._guard_of(node, self.liveness.node(node))
        if self._sums.write(node):
            return
        if node.declaration.role in HANDING_ON and self.containers.knows(node.inputs[0]):
            for x in node.outputs:
                self.containers.hand_on(node.inputs[0], x)
            return
        if node.is_constant:
            if has_no_value(node) or node in self._sums.zeros:
                return
            results = [self._constant(node)]
        else:
            write = (
                _CONTROL.get(node.declaration.role) or CONTAINERS.get(node.type) or STATEMENTS.get(node.type)
            )
            if write is None:
                raise Untranslatable(node, f"machine code has no {node.type}")
            for x in node.outputs:
                check_size(node, x.dims, self.limits_of(node))
            try:
                results = write(self, node)
            except (errors.InvalidArgumentError, ValueError, IndexError) as error:  # as its kernel says
                raise Untranslatable(node, str(error)) from None
        for x, value in zip(node.outputs, results):
            if value >= 0:
                self._of[x] = value

    def _constant(self, node: PlanNode) -> int:
        value = np.asarray(node.attributes["value"])
        dims, dtype = static_dims(node, tuple(value.shape)), kind_of(node, node.outputs[0])
        if not is_part_of_code(node):
            raise Untranslatable(node, "a constant of many numbers is made inside of a loop")
        if value.size <= _FEW:
            return self.builder.constant(dtype, dims, value.ravel().tolist())
        number = self.builder.constant(dtype, (), [value.flat[0].item()])
        return spread(self, number, dims)

    def _guard_of(self, node: PlanNode, condition: Condition[Any]) -> Guard:
        """When the node runs, beside what holds wherever its loop runs."""
        if condition == TRUE:
            return ()
        if condition == FALSE:
            raise Untranslatable(node, "it never runs")
        terms = [
            tuple(sorted((self.of(predicate), wanted) for predicate, wanted in term)) for term in condition
        ]
        guard = tuple(sorted(terms))
        if self._around and len(self._around[-1]) == 1:
            known = set(self._around[-1][0])
            guard = tuple(tuple(each for each in term if each not in known) for term in guard)
            if any(not term for term in guard):
                return ()
        return guard

    # ---- control flow

    def switch(self, node: PlanNode) -> list[int]:
        """Both outputs are the input."""
        value = self.of(node.inputs[0])
        return [value] * len(node.outputs)

    def merge(self, node: PlanNode) -> list[int]:
        """A value that is set where either input is alive, and which of them it was."""
        x = node.outputs[0]
        result = self.builder.value(kind_of(node, x), static_dims(node, x.dims))
        which = node.outputs[1]
        is_asked = which in self._subgraph.fetches or self._subgraph.consumers().get(which)
        index = self.builder.value("int32", ()) if is_asked else -1
        for i, source in enumerate(node.inputs):
            condition = self.liveness.output(source)
            if condition == FALSE:
                continue
            self._guard = self._guard_of(node, condition)
            self.add("Set", [self.of(source)], None, into=result)
            if index >= 0:
                self.add("Set", [self.builder.constant("int32", (), [i])], None, into=index)
        return [result, index]

    @functools.cached_property
    def _variables(self) -> dict[PlanNode, _Variable]:
        """The variables of loops by their heads."""
        asked = condition_variables(self._subgraph, self._subgraph.consumers())
        return {**self._sums.variables, **{each.merge: each for each in asked}}

    def _loop(self, nodes: Sequence[PlanNode], frame: Frame) -> None:
        here = [node for node in nodes if self.frames.home(node) is frame]
        heads = [node for node in here if is_head(node)]
        variables = [self._variables.get(head) for head in heads]
        enters = [node for node in here if node.declaration.role == "enter"]
        if not heads or not enters or None in variables:
            raise Untranslatable(nodes[0], "the loop is not of the usual form")
        whole = self._when(here, enters)
        guard = self._guard_of(nodes[0], whole)
        if any(self.liveness.node(enter) not in (whole, TRUE) for enter in enters):
            raise Untranslatable(nodes[0], "the loop's variables begin in different branches")
        own = [each for each in variables if each is not None]
        for enter in enters:
            if enter not in self._sums.zeros:
                self._take(enter)
        if not self._around:
            self.loops.append(enters[0])
        self._guard = guard
        of_sums = self._sums.found
        sums = {each: of_sums[each] for each in own if isinstance(each, LoopVariable) and each in of_sums}
        states: dict[_Variable, int] = {each: self._sums.begin(found) for each, found in sums.items()}
        self.builder.begin_loop()
        self._around.append(self._joined(guard))
        for each in own:
            states[each] = self._begin(each, states.get(each))
        predicate = self._body([node for node in nodes if node not in heads and node not in enters], frame)
        self._around.pop()
        ends = []
        for each, state in states.items():
            if state >= 0 and each not in sums:
                ends.append((self.of(each.enter.inputs[0]), state, self.of(each.next_value)))
        self.builder.end_loop(ends, predicate, guard)
        self._guard = guard
        for found in sums.values():
            self._sums.end(found)
        for each, state in states.items():
            if state >= 0:
                self.builder.leave(state)
                if each.exit is not None:
                    self._of[each.exit.outputs[0]] = state

    def _when(self, nodes: Sequence[PlanNode], enters: Sequence[PlanNode]) -> Condition[Any]:
        """When a loop of these nodes runs: where what its condition takes does. Constants begin anywhere."""
        asked = [node for node in nodes if node.declaration.role == "loop_condition"]
        return self.liveness.node(asked[0] if asked else enters[0])

    def _joined(self, guard: Guard) -> Guard:
        """What holds inside: the guard, and that of the loop around."""
        outer = self._around[-1] if self._around else ()
        if len(outer) == 1 and len(guard) <= 1:
            return (tuple({*outer[0], *(guard[0] if guard else ())}),)
        return guard

    def _take(self, enter: PlanNode) -> None:
        value = self._of.get(enter.inputs[0])
        self.containers.hand_on(enter.inputs[0], enter.outputs[0])
        if value is not None:
            self._of[enter.outputs[0]] = value
        elif not self.containers.knows(enter.outputs[0]):
            raise Untranslatable(enter, "it takes what is no value of the program")

    def _begin(self, each: _Variable, state: int | None) -> int:
        """The variable's value in an iteration, which a sum has already."""
        if state is None:
            state = self.builder.value(*self._state_of(each))
        for output in each.names:
            self._of[output] = state
        return state

    def _state_of(self, each: _Variable) -> tuple[str, tuple[int, ...]]:
        x = each.merge.outputs[0]
        if x.dtype.name == "resource":  # a sum of products
            first = self.builder.values[self.of(each.enter.inputs[0])]
            return first.dtype, first.dims
        dims = x.dims if x.dims is not None and None not in x.dims else each.enter.outputs[0].dims
        if each.next_value.dims != dims:
            raise Untranslatable(each.merge, "a loop variable's shape is not known before the step")
        return kind_of(each.merge, x), static_dims(each.merge, dims)

    def _body(self, nodes: Sequence[PlanNode], frame: Frame) -> int:
        """The nodes of an iteration; returns the predicate."""
        predicate = -1
        start = 0
        for i, node in enumerate(nodes):
            if node.declaration.role == "loop_condition" and self.frames.home(node) is frame:
                self.block(nodes[:i], frame)
                predicate = self._of[node.outputs[0]] = self.of(node.inputs[0])
                self.builder.begin_body()
                start = i + 1
        if predicate < 0:
            raise Untranslatable(nodes[0], "the loop has no condition")
        rest = [node for node in nodes[start:] if not self._is_border(node, frame)]
        self.block(rest, frame)
        return predicate

    def _is_border(self, node: PlanNode, frame: Frame) -> bool:
        if self.frames.home(node) is not frame:
            return False
        role = node.declaration.role
        is_own = role == "switch" and node.inputs[1].op.declaration.role == "loop_condition"
        return is_own or role in ("next_iteration", "exit")


_CONTROL: dict[str, Callable[[RegionTranslation, PlanNode], list[int]]] = {
    "switch": RegionTranslation.switch,
    "merge": RegionTranslation.merge,
}
"""Control flow outside of a loop's own."""
