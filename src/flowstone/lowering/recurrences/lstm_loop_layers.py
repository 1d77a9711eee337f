"""Layers of LSTM cells in a loop, and their gradients in the loop of its gradient: which they are.

A loop is a chain of layers if in its body there is nothing else: a cell reads x from a TensorArray at the
loop's counter or takes the output of the layer below, its output and state are loop variables, and outputs
may be written to arrays at the counter:

    x ← read(array, t);  h, c ← cell(x, h, c);  write(outputs, t, h);  t ← t + 1,  while t < T

The gradient's loop may have nothing but the gradients of the cells, reads of arrays at its counter, writes to
them, and sums over all iterations of the gradients by weights and bias.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowstone.framework import machine
from flowstone.framework.shape import num_elements
from flowstone.framework.subgraph import PlanNode, PlanOutput
from flowstone.lowering.recurrences.lstm_cells import SUMS, Cell, CellGradient, find_cell, find_gradient
from flowstone.rewriting.analyses.counted_loops import (
    PUSH,
    READ,
    WRITE,
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
)
from flowstone.rewriting.analyses.loop_variables import LoopVariable, Takers, entered


class Layer(NamedTuple):
    """A cell in its loop: the variables that are its output and its state, and, if there is a gradient, that
    with its variables, and what is added up of gradients by the output from elsewhere."""

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
    pops = pops_of(loop, loops.takers)
    if pops is None:
        return None
    known: dict[PlanOutput, PlanOutput] = {}
    copies = copied(loop.nodes, known)
    backward = None
    if pops:
        frames = {loops.frames.of[pop] for pop in pops}
        backward = loops.by_frame.get(frames.pop())  # type: ignore[arg-type]
        if frames or backward is None or backward is loop or not is_complete(backward, loops):
            return None
        known.update((pop.outputs[0], known.get(x, x)) for pop, x in pops.items())
        known.update(same_constants(loop.nodes, backward.nodes))
        copies += copied(backward.nodes, known)
    takers: dict[PlanOutput, list[PlanNode]] = {}
    for copy in copies:
        for x in copy.inputs:
            takers.setdefault(x, []).append(copy)
    layers = _layers(loop, steps, copies, takers, known)
    if layers is None:
        return None
    explained: set[PlanNode] = {node for layer in layers for node in layer.cell.nodes}
    explained |= {known[x].op for x in arithmetic(loop)}
    if backward is not None:
        with_gradients = _with_gradients(layers, loop, backward, takers, known, explained)
        if with_gradients is None:
            return None
        layers = with_gradients
    if not explained.issuperset(copies):
        return None
    handles: list[Any] = [entered(node.inputs[0]) for node in loop.nodes if node.type == PUSH]
    stacks = [x.op for x in handles if x.op.type == "StackV2"]
    return Match(steps, layers, loop, backward, known, stacks)


def _layers(
    loop: Loop, steps: int, copies: list[PlanNode], takers: Takers, known: dict[PlanOutput, PlanOutput]
) -> list[Layer] | None:
    """The layers from the lowest on, if all variables are theirs, counters or the flows of arrays."""
    pays = machine.current().runs_layers
    cells = [cell for copy in copies if (cell := find_cell(copy, takers)) is not None]
    counters = loop.counters()
    indices = {each.value for each in counters}
    variables = {each.value: each for each in loop.variables}
    reads = {node.outputs[0] for node in loop.nodes if node.type == READ and _is_at(node, indices)}
    outputs: set[PlanOutput] = set()
    layers = []
    for cell in cells:
        h, c = variables.pop(cell.h, None), variables.pop(cell.c, None)
        if h is None or c is None or cell.x not in reads | outputs:
            return None
        if known.get(h.next_value) is not cell.output or known.get(c.next_value) is not cell.state:
            return None
        size = num_elements(cell.weights.dims) or 0
        if entered(cell.weights) is None or entered(cell.bias) is None or not pays(steps, size):
            return None
        outputs.add(cell.output)
        layers.append(Layer(cell, h, c))
    for each in counters:
        variables.pop(each.value)
    writes = [node for node in loop.nodes if node.type == WRITE]
    written = {known.get(node.inputs[2]) for node in writes}
    if not layers or not written <= outputs or not all(_is_at(node, indices) for node in writes):
        return None
    return layers if _are_flows(variables, writes) and len(reads) == _count(loop, READ) else None


def _count(loop: Loop, op_type: str) -> int:
    return sum(node.type == op_type for node in loop.nodes)


def _is_at(node: PlanNode, indices: set[PlanOutput]) -> bool:
    """Whether a read or write of an array from outside is at one of these indices."""
    at_index = node.inputs[1] in indices and entered(node.inputs[0]) is not None
    return at_index and (node.type == WRITE or entered(node.inputs[2]) is not None)


def _are_flows(variables: dict[PlanOutput, LoopVariable], writes: list[PlanNode]) -> bool:
    """Whether each of these variables is handed on by one of these writes, and each of them hands one on."""
    flows = {variables[node.inputs[3]] for node in writes if node.inputs[3] in variables}
    return len(flows) == len(variables) == len(writes) and all(
        variables[node.inputs[3]].next_value is node.outputs[0] for node in writes
    )


# ---- the loop of gradients


def _with_gradients(
    layers: list[Layer],
    forward: Loop,
    backward: Loop,
    takers: Takers,
    known: dict[PlanOutput, PlanOutput],
    explained: set[PlanNode],
) -> list[Layer] | None:
    """The layers with their gradients, whose nodes become `explained`; None if there is more in the loop."""
    variables = {each.value: each for each in backward.variables}
    countdown = countdown_of(forward, backward)
    if countdown is None:
        return None
    variables.pop(countdown.value)
    compared = [node.outputs[0] for node in conditions(backward)]
    explained |= {known[x].op for x in (countdown.next_value, *compared)}
    reads = {node.outputs[0] for node in backward.nodes if node.type == READ}
    indices = {countdown.next_value}
    arrays = [node for node in backward.nodes if node.type in (READ, WRITE)]
    if not all(_is_at(node, indices) for node in arrays):
        return None
    found: list[Layer] = []
    slopes: dict[PlanOutput, set[PlanOutput | None]] = {}  # by the output of the layer below
    by_x: set[PlanOutput | None] = set()
    for layer in reversed(layers):
        gradient = find_gradient(layer.cell, takers)
        if gradient is not None:
            from_above = slopes.get(layer.cell.output, set())
            complete = _with_gradient(layer, gradient, variables, known, reads | from_above, explained)
            if complete is None or not from_above <= {None, *complete.dy}:
                return None
            slopes.setdefault(layer.cell.x, set()).add(gradient.dx)
            by_x.add(gradient.dx)
            layer = complete
        found.append(layer)
    taken = [x for layer in found for x in layer.dy]
    writes = [node for node in arrays if node.type == WRITE]
    if not reads <= set(taken) or not {known.get(node.inputs[2]) for node in writes} <= by_x - {None}:
        return None
    return found[::-1] if _are_flows(variables, writes) else None


def _with_gradient(
    layer: Layer,
    gradient: CellGradient,
    variables: dict[PlanOutput, LoopVariable],
    known: dict[PlanOutput, PlanOutput],
    elsewhere: set[Any],
    explained: set[PlanNode],
) -> Layer | None:
    """The layer with this gradient, whose variables are taken from `variables`; None if it is not whole."""
    nodes = list(gradient.nodes)
    dh = _continued(variables, known, gradient.dh)
    dc = _continued(variables, known, gradient.before)
    if dh is None or dc is None or gradient.dc is gradient.through:
        return None
    if sorted(map(id, gradient.dc.op.inputs)) != sorted(map(id, [dc.value, gradient.through])):
        return None
    terms: list[PlanOutput] = [gradient.dy]
    if gradient.dy is not dh.value and gradient.dy.op.type in SUMS:
        terms = list(gradient.dy.op.inputs)
        nodes.append(gradient.dy.op)
    if terms.count(dh.value) != 1:
        return None
    terms.remove(dh.value)
    if not set(terms) <= elsewhere or len(set(terms)) != len(terms):
        return None
    if any(x.dims not in (None, layer.cell.h.dims) for x in terms):
        return None  # one number for several elements
    sums: dict[str, Any] = {}
    for name in ("weights", "bias"):
        term = getattr(gradient, name)
        if term is None:
            continue
        total = next((v for v in variables.values() if _adds(v, term, known)), None)
        if total is None:
            return None
        sums[name] = total
        nodes.append(known[total.next_value].op)
        del variables[total.value]
    explained.update(nodes)
    return layer._replace(gradient=gradient, dh=dh, dc=dc, dy=tuple(terms), **sums)


def _continued(
    variables: dict[PlanOutput, LoopVariable], known: dict[PlanOutput, PlanOutput], x: PlanOutput | None
) -> LoopVariable | None:
    """The variable that is `x` in the next iteration, which is no longer among `variables` then."""
    for value, each in variables.items():
        if x is not None and known.get(each.next_value) is x:
            return variables.pop(value)
    return None


def _adds(variable: LoopVariable, term: PlanOutput, known: dict[PlanOutput, PlanOutput]) -> bool:
    """Whether the variable is the sum of this term over all iterations."""
    total = known.get(variable.next_value)
    if total is None or total.op.type not in SUMS:
        return False
    return sorted(map(id, total.op.inputs)) == sorted(map(id, [variable.value, term]))
