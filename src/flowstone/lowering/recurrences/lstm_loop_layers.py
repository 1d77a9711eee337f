"""Finds layers of LSTM cells in a loop, and their gradients in the loop of its gradient.

A loop is a chain of layers if in its body there is nothing else: a cell reads x from a TensorArray at the
loop's counter or takes the output of the layer below, its output and state are loop variables, and outputs
may be written to arrays at the counter:

    x ← read(array, t);  h, c ← cell(x, h, c);  write(outputs, t, h);  t ← t + 1,  while t < T

The gradient's loop may have nothing but the gradients of the cells, reads of arrays at its counter, writes to
them, and sums over all iterations of the gradients with respect to weights and bias.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.machine import machine
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.recurrences.lstm_cells import SUMS, Cell, CellGradient, find_cells, find_gradient
from flowstone.rewriting.analyses.counted_loops import (
    Loop,
    Loops,
    arithmetic,
    conditions,
    copied,
    countdown_of,
    is_complete,
    pops_of,
    same_constants,
    steps_of,
    storing,
)
from flowstone.rewriting.analyses.loop_variables import LoopVariable, entered
from flowstone.rewriting.matching import Op, Pattern, Value


class Layer(NamedTuple):
    """A cell in its loop: the variables that are its output and its state, and, if there is a gradient, that
    with its variables, and what is added up of gradients with respect to the output from elsewhere."""

    cell: Cell
    h: LoopVariable
    c: LoopVariable
    gradient: CellGradient | None = None
    dh: LoopVariable | None = None
    dc: LoopVariable | None = None
    dy: tuple[PlanOutput, ...] = ()
    weights: LoopVariable | None = None
    bias: LoopVariable | None = None


class Match(NamedTuple):
    """A loop of LSTM cells and, maybe, that of their gradients; `known` tells what each value of both is in
    the one iteration in which the cells were found. `stacks` are those that have no other use."""

    steps: int
    layers: list[Layer]
    forward: Loop
    backward: Loop | None
    known: dict[PlanOutput, PlanOutput]
    stacks: list[PlanNode]


def find_layers(loop: Loop, loops: Loops) -> Match | None:
    """The layers of a loop that runs often enough, all there is in it and in its gradient's loop; or None."""
    steps = steps_of(loop)
    if steps is None or not is_complete(loop, loops):
        return None
    pops = pops_of(loop, loops.consumers)
    if pops is None:
        return None
    backward = _gradient_loop(loop, loops, pops)
    if pops and backward is None:
        return None
    iteration = _Iteration(loop, backward, pops)
    layers = _layers(loop, steps, iteration)
    if layers is not None and backward is not None:
        layers = _Gradients(loop, backward, iteration).of(layers)
    if layers is None or not iteration.explained.issuperset(iteration.copies):
        return None
    handles: list[Any] = [entered(node.inputs[0]) for node in loop.nodes if storing(node) == "push"]
    stacks = [x.op for x in handles if x.op.declaration.container == "stack"]
    return Match(steps, layers, loop, backward, iteration.known, stacks)


def _gradient_loop(loop: Loop, loops: Loops, pops: dict[PlanNode, PlanOutput]) -> Loop | None:
    """The one loop that pops what a loop pushes."""
    frames = {loops.frames.of[pop] for pop in pops}
    backward = loops.by_frame.get(frames.pop()) if len(frames) == 1 else None  # type: ignore[arg-type]
    if backward is None or backward is loop or not is_complete(backward, loops):
        return None
    return backward


class _Iteration:
    """One iteration of a loop and that of its gradient, without stacks: `copies` of the nodes that compute,
    what each value of the loops is in them (`known`), `consumers` among them, and which are `explained`.
    """

    def __init__(self, forward: Loop, backward: Loop | None, pops: dict[PlanNode, PlanOutput]) -> None:
        known = self.known = dict[PlanOutput, PlanOutput]()
        self.copies = copied(forward.nodes, known)
        if backward is not None:
            known.update((pop.outputs[0], known.get(x, x)) for pop, x in pops.items())
            known.update(same_constants(forward.nodes, backward.nodes))
            self.copies += copied(backward.nodes, known)
        self.consumers: dict[PlanOutput, list[PlanNode]] = {}
        for copy in self.copies:
            for x in copy.inputs:
                self.consumers.setdefault(x, []).append(copy)
        self.explained = {known[x].op for x in arithmetic(forward)}


def _layers(loop: Loop, steps: int, iteration: _Iteration) -> list[Layer] | None:
    """The layers from the lowest on, if all variables are theirs, counters or the flows of arrays."""
    known, counters = iteration.known, loop.counters()
    indices = {each.value for each in counters}
    variables = {each.value: each for each in loop.variables}
    reads = {node.outputs[0] for node in loop.nodes if storing(node) == "read" and _is_at(node, indices)}
    outputs: set[PlanOutput] = set()
    layers = []
    for cell in find_cells(iteration.copies, iteration.consumers):
        layer = _layer(cell, steps, variables, known)
        if layer is None or cell.x not in reads | outputs:
            return None
        outputs.add(cell.output)
        layers.append(layer)
        iteration.explained.update(cell.nodes)
    for each in counters:
        variables.pop(each.value)
    writes = [node for node in loop.nodes if storing(node) == "write"]
    written = {known.get(node.inputs[2]) for node in writes}
    if not layers or not written <= outputs or not all(_is_at(node, indices) for node in writes):
        return None
    return layers if _are_flows(variables, writes) and len(reads) == _reads(loop) else None


def _layer(
    cell: Cell,
    steps: int,
    variables: dict[PlanOutput, LoopVariable],
    known: dict[PlanOutput, PlanOutput],
) -> Layer | None:
    """The layer of a cell that hands its output and state on, which are no longer among `variables` then."""
    h, c = variables.pop(cell.h, None), variables.pop(cell.c, None)
    if h is None or c is None:
        return None
    if known.get(h.next_value) is not cell.output or known.get(c.next_value) is not cell.state:
        return None
    pays = machine.current().runs_layers(steps, num_elements(cell.weights.dims) or 0)
    if entered(cell.weights) is None or entered(cell.bias) is None or not pays:
        return None
    return Layer(cell, h, c)


def _reads(loop: Loop) -> int:
    return sum(storing(node) == "read" for node in loop.nodes)


def _is_at(node: PlanNode, indices: set[PlanOutput]) -> bool:
    """Whether a read or write of an array from outside is at one of these indices."""
    at_index = node.inputs[1] in indices and entered(node.inputs[0]) is not None
    return at_index and (storing(node) == "write" or entered(node.inputs[2]) is not None)


def _are_flows(variables: dict[PlanOutput, LoopVariable], writes: list[PlanNode]) -> bool:
    """Whether each of these variables is handed on by one of these writes, and each of them hands one on."""
    flows = {variables[node.inputs[3]] for node in writes if node.inputs[3] in variables}
    return len(flows) == len(variables) == len(writes) and all(
        variables[node.inputs[3]].next_value is node.outputs[0] for node in writes
    )


# ---- the loop of gradients


class _Gradients:
    """Finds the gradients of layers in the loop that counts the iterations down; what is found is explained,
    and its variables are no longer among `variables`.
    """

    def __init__(self, forward: Loop, backward: Loop, iteration: _Iteration) -> None:
        self.forward, self.backward, self.iteration = forward, backward, iteration
        self.variables = {each.value: each for each in backward.variables}
        self.reads = {node.outputs[0] for node in backward.nodes if storing(node) == "read"}
        self.slopes: dict[PlanOutput, set[PlanOutput | None]] = {}  # by the output of the layer below
        self.by_x: set[PlanOutput | None] = set()

    def of(self, layers: list[Layer]) -> list[Layer] | None:
        """The layers with their gradients; None if there is more in the loop."""
        known = self.iteration.known
        countdown = countdown_of(self.forward, self.backward)
        if countdown is None:
            return None
        self.variables.pop(countdown.value)
        counting = [countdown.next_value, *(node.outputs[0] for node in conditions(self.backward))]
        self.iteration.explained |= {known[x].op for x in counting}
        arrays = [node for node in self.backward.nodes if storing(node) in ("read", "write")]
        if not all(_is_at(node, {countdown.next_value}) for node in arrays):
            return None
        found: list[Layer] = []
        for layer in reversed(layers):
            complete = self._complete(layer)
            if complete is None:
                return None
            found.append(complete)
        taken = {x for layer in found for x in layer.dy}
        writes = [node for node in arrays if storing(node) == "write"]
        if not self.reads <= taken or not {known.get(x.inputs[2]) for x in writes} <= self.by_x - {None}:
            return None
        return found[::-1] if _are_flows(self.variables, writes) else None

    def _complete(self, layer: Layer) -> Layer | None:
        """The layer with its gradient, if it has one; None if that is not whole."""
        gradient = find_gradient(layer.cell, self.iteration.consumers)
        if gradient is None:
            return layer
        from_above = self.slopes.get(layer.cell.output, set())
        complete = self._with_gradient(layer, gradient, self.reads | from_above)
        if complete is None or not from_above <= {None, *complete.dy}:
            return None
        self.slopes.setdefault(layer.cell.x, set()).add(gradient.dx)
        self.by_x.add(gradient.dx)
        return complete

    def _with_gradient(self, layer: Layer, gradient: CellGradient, elsewhere: set[Any]) -> Layer | None:
        known = self.iteration.known
        dh = _continued(self.variables, known, gradient.dh)
        dc = _continued(self.variables, known, gradient.before)
        if dh is None or dc is None or gradient.dc is gradient.through:
            return None
        if not _are_terms(gradient.dc, dc.value, gradient.through):
            return None
        is_sum = gradient.dy is not dh.value and gradient.dy.op.type in SUMS
        terms = list(gradient.dy.op.inputs) if is_sum else [gradient.dy]
        if terms.count(dh.value) != 1:
            return None
        terms.remove(dh.value)
        if not set(terms) <= elsewhere or len(set(terms)) != len(terms):
            return None
        if any(x.dims not in (None, layer.cell.h.dims) for x in terms):
            return None  # one number for several elements
        sums = self._sums(gradient)
        if sums is None:
            return None
        added = [gradient.dy.op] if is_sum else []
        self.iteration.explained.update([*gradient.nodes, *added])
        return layer._replace(gradient=gradient, dh=dh, dc=dc, dy=tuple(terms), **sums)

    def _sums(self, gradient: CellGradient) -> dict[str, Any] | None:
        """The variables that add up the gradients with respect to weights and bias, as far as these are
        wanted."""
        known, sums = self.iteration.known, dict[str, Any]()
        for name in ("weights", "bias"):
            term = getattr(gradient, name)
            if term is None:
                continue
            totals = ((each, known.get(each.next_value)) for each in self.variables.values())
            found = [each for each, x in totals if x is not None and _are_terms(x, each.value, term)]
            if not found:
                return None
            sums[name] = found[0]
            self.iteration.explained.add(known[found[0].next_value].op)
            del self.variables[found[0].value]
        return sums


def _continued(
    variables: dict[PlanOutput, LoopVariable], known: dict[PlanOutput, PlanOutput], x: PlanOutput | None
) -> LoopVariable | None:
    """The variable that is `x` in the next iteration, which is no longer among `variables` then."""
    for value, each in variables.items():
        if x is not None and known.get(each.next_value) is x:
            return variables.pop(value)
    return None


class _Terms(NamedTuple):
    """Of a sum of two."""

    x: PlanOutput
    y: PlanOutput


_SUM = Pattern(Op("Add|AddN|AddV2", Value("x"), Value("y")), _Terms)


def _are_terms(total: PlanOutput, x: PlanOutput, y: PlanOutput) -> bool:
    """Whether `total` is the sum of these two."""
    return _SUM.match(total.op, x=x, y=y) is not None
