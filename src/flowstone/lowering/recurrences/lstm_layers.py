"""Layers of LSTM cells, unrolled over time, as one kernel, and their gradients as another.

Cells that hand output and state to each other and have the same weights are a layer, if what they take
besides is there before the first of them runs: a layer above another is, a decoder that is fed what it said
is not. Their gradients become one if all steps, up to the last that has one, are in them. oneDNN makes a
layer in a third to half of the time that its cells' many small products and activations take one by one
(`lstm_kernels.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.lowering.recurrences.cell_patterns import layers_without_kernel
from flowstone.lowering.recurrences.lstm_cells import SUMS, Cell, CellGradient, find_cells, find_gradient
from flowstone.rewriting.analyses.frames import is_head
from flowstone.rewriting.patterns import in_order, remove_unneeded, substitute_in_order


def join_lstm_layers(subgraph: Subgraph) -> None:
    """Replaces layers of cells, and their gradients; the log also has layers of cells that no kernel runs."""
    if any(node.type == "Split" for node in subgraph.nodes) and subgraph.machine.has_onednn:
        if not any(is_head(node) or node.declaration.role == "switch" for node in subgraph.nodes):
            _join_layers(subgraph)
    for name, cells in layers_without_kernel(subgraph.nodes, subgraph.machine.runs_layers):
        subgraph.log.append(("join_lstm_layers", name, f"{cells} stay: no kernel runs a layer of them"))


def _join_layers(subgraph: Subgraph) -> None:
    tried: set[PlanNode] = set()
    while True:
        consumers = subgraph.consumers()
        found = find_cells(subgraph.nodes, consumers)
        chains = (cells for cells in _chains(found) if cells[0].rows.op not in tried)
        layer = None
        while layer is None:
            cells = next(chains, None)
            if cells is None:
                return
            tried.add(cells[0].rows.op)
            layer = _layer(subgraph, cells, consumers)
        _replace(subgraph, layer)
        reason = f"{len(cells)} cells in one kernel" + ", and their gradients" * bool(layer.gradients)  # type: ignore[arg-type]
        subgraph.log.append(("join_lstm_layers", cells[0].product.op.name, reason))  # type: ignore[index]


def _chains(cells: list[Cell]) -> Iterator[list[Cell]]:
    """The cells of layers, from the first step to the last."""
    following = {(cell.kind, cell.h, cell.c): cell for cell in cells}
    continued = {(cell.kind, cell.output, cell.state) for cell in cells}
    for first in cells:
        if (first.kind, first.h, first.c) in continued:
            continue
        chain, after = [first], following.get((first.kind, first.output, first.state))
        while after is not None:
            chain.append(after)
            after = following.get((after.kind, after.output, after.state))
        weights: Any = first.weights.dims
        if machine.current().runs_layers(len(chain), weights[0] * weights[1]):
            yield chain


class _Layer(NamedTuple):
    """The cells of a layer and their gradients, as far as they have some; the sums of the gradients by
    weights and bias, and the gradients with respect to outputs that come from outside, with their steps (the
    number of steps for those by the last state)."""

    cells: list[Cell]
    gradients: list[CellGradient]
    sums: list[tuple[int, PlanNode, list[PlanOutput]]]  # which result; the sum; its terms
    given: list[tuple[int, PlanOutput]]
    forward: list[PlanNode]
    backward: list[PlanNode]


def _layer(subgraph: Subgraph, cells: list[Cell], consumers: Consumers) -> _Layer | None:
    gradients: list[CellGradient] = []
    for cell in cells:
        found = find_gradient(cell, consumers)
        if found is None:
            break
        gradients.append(found)
    forward = list(dict.fromkeys(node for cell in cells for node in cell.nodes))
    backward = [node for each in gradients for node in each.nodes]
    given = _given(cells, gradients, consumers, backward)
    if given is None:
        return None
    sums = _sums(gradients, consumers)
    if sums is None:
        return None
    backward += [node for _, node, terms in sums if len(terms) == len(node.inputs)]
    layer = _Layer(cells, gradients, sums, given, forward, list(dict.fromkeys(backward)))
    return layer if _is_closed(subgraph, layer, consumers) and _comes_first(subgraph, layer) else None


def _given(
    cells: list[Cell], gradients: list[CellGradient], consumers: Consumers, nodes: list[PlanNode]
) -> list[tuple[int, PlanOutput]] | None:
    """The gradients that come from outside, None if those between the cells are not what they should be."""
    given: list[tuple[int, PlanOutput]] = []
    for step, each in enumerate(gradients):
        inside: list[PlanOutput] = []
        if step + 1 < len(gradients):
            after = gradients[step + 1]
            if after.dh is None or after.before is None:
                return None
            inside = [after.dh]
            if sorted(map(id, each.dc.op.inputs)) != sorted(map(id, [each.through, after.before])):
                return None
        elif each.dc is not each.through:
            rest = _without(each.dc.op.inputs, [each.through])
            if rest is None or step + 1 < len(cells):
                return None
            given += [(len(cells), x) for x in rest]
        terms: Iterable[PlanOutput] = [each.dy]
        if inside and each.dy is not inside[0]:
            if each.dy.op.type not in SUMS:
                return None
            nodes.append(each.dy.op)
            terms = each.dy.op.inputs
        rest = _without(terms, inside)
        if rest is None:
            return None
        given += [(step, x) for x in rest]
    return given if all(x.dims == cells[0].h.dims for _, x in given) else None


def _without(terms: Iterable[PlanOutput], some: list[PlanOutput]) -> list[PlanOutput] | None:
    """The terms that are not among `some`, each of which must be there once."""
    rest = [x for x in terms if x not in some]
    return rest if len(list(terms)) == len(rest) + len(some) else None


def _sums(
    gradients: list[CellGradient], consumers: Consumers
) -> list[tuple[int, PlanNode, list[PlanOutput]]] | None:
    """What adds up the gradients with respect to the weights (0), and by the bias (1), and the terms of
    each."""
    found = []
    for which, name in enumerate(("weights", "bias")):
        terms = [getattr(each, name) for each in gradients]
        if all(x is None for x in terms):
            continue
        after = [consumers.get(x, []) for x in terms]
        if any(len(nodes) != 1 or nodes != after[0] or nodes[0].type not in SUMS for nodes in after):
            return None
        if any(x.dims != terms[0].dims for x in after[0][0].inputs):
            return None  # it repeats a term
        found.append((which, after[0][0], terms))
    return found


def _exposed(layer: _Layer) -> set[PlanOutput | None]:
    """What others may take of a layer."""
    values: list[PlanOutput | None] = [cell.output for cell in layer.cells]
    values.append(layer.cells[-1].state)
    for _, node, terms in layer.sums:
        values += node.outputs if len(terms) == len(node.inputs) else terms
    if layer.gradients:
        values += [*(each.dx for each in layer.gradients), layer.gradients[0].dh, layer.gradients[0].before]
    return set(values)


def _is_closed(subgraph: Subgraph, layer: _Layer, consumers: Consumers) -> bool:
    inner = {*layer.forward, *layer.backward}
    exposed, fetched = _exposed(layer), set(subgraph.fetches)
    if inner.intersection(subgraph.targets):
        return False
    return all(
        x in exposed or (x not in fetched and inner.issuperset(consumers.get(x, ())))
        for node in inner
        for x in node.outputs
    )


def _comes_first(subgraph: Subgraph, layer: _Layer) -> bool:
    """Whether all that a layer, and its gradient, takes is there before any of it runs."""
    for nodes in (layer.forward, layer.backward):
        inner = set(nodes)
        reached = set(nodes)
        for node in subgraph.nodes:
            if not reached.isdisjoint(node.sources()):
                reached.add(node)
        outside = reached - inner
        if not all(outside.isdisjoint(node.sources()) for node in nodes):
            return False
    return True


# ---- the new nodes


def _replace(subgraph: Subgraph, layer: _Layer) -> None:
    cells = layer.cells
    first, count = cells[0], len(cells)
    attributes = {"N": count, "gates": first.order, "forget_bias": first.forget_bias, "T": first.x.dtype}
    inputs = [*(cell.x for cell in cells), first.h, first.c, first.weights, first.bias]
    kernel = subgraph.new_node(
        registry["_LSTMLayer"],
        inputs,
        {**attributes, "training": bool(layer.gradients)},
        first.product.op,
        (count, 1, 1, 1, 1),
    )
    kernel.control_inputs = _waits(layer.forward)
    replaced = {cell.output: y for cell, y in zip(cells, kernel.outputs)}
    replaced[cells[-1].state] = kernel.outputs[count]
    places: dict[PlanNode, list[PlanNode]] = {node: [] for node in (*layer.forward, *layer.backward)}
    places[first.rows.op] = [kernel]
    replacements = {node: [kernel] for node in layer.forward}
    if layer.gradients:
        gradient = _gradient(subgraph, layer, kernel, attributes)
        replacements.update({node: [gradient] for node in layer.backward})
        places[layer.gradients[-1].first.op] = [gradient]
        totals = _totals(subgraph, layer, gradient, replaced)
        places.update(totals)
        replacements.update(totals)

    def arrange() -> None:
        subgraph.nodes = in_order(subgraph.nodes)

    substitute_in_order(subgraph, places, replaced, replacements, arrange)
    remove_unneeded(subgraph)


def _gradient(subgraph: Subgraph, layer: _Layer, kernel: PlanNode, attributes: dict[str, Any]) -> PlanNode:
    cells, count = layer.cells, len(layer.cells)
    first: Any = cells[0]
    last = layer.gradients[-1].first.op
    sizes = {"units": first.h.dims[1], "size": first.x.dims[1]}
    given = [x for _, x in layer.given]
    gradient = subgraph.new_node(
        registry["_LSTMLayerGradient"],
        [*kernel.outputs[: count + 1], first.h, first.c, kernel.outputs[-1], first.weights, *given],
        {**attributes, **sizes, "M": len(given), "steps": tuple(step for step, _ in layer.given)},
        last,
        (count, 1, 1, 1, 1, 1, len(given)),
        f"{kernel.name}/gradient",
    )
    gradient.control_inputs = _waits(layer.backward)
    return gradient


def _totals(
    subgraph: Subgraph, layer: _Layer, gradient: PlanNode, replaced: dict[PlanOutput, PlanOutput]
) -> dict[PlanNode, list[PlanNode]]:
    """Says what stands for the gradients; returns the sums of some with terms from elsewhere, and of which
    nodes they take the places."""
    dh, dc, *by_parameters = gradient.outputs[len(layer.cells) :]
    for each, dx in zip(layer.gradients, gradient.outputs):
        if each.dx is not None:
            replaced[each.dx] = dx
    for old, new in ((layer.gradients[0].dh, dh), (layer.gradients[0].before, dc)):
        if old is not None:
            replaced[old] = new
    totals: dict[PlanNode, list[PlanNode]] = {}
    for which, node, terms in layer.sums:
        rest = [x for x in node.inputs if x not in terms]
        result = by_parameters[which]
        if rest:
            attributes = {"N": len(rest) + 1, "T": result.dtype}
            total = subgraph.new_node(registry["AddN"], [result, *rest], attributes, node, (len(rest) + 1,))
            total.control_inputs = list(node.control_inputs)
            totals[node] = [total]
            result = total.outputs[0]
        replaced[node.outputs[0]] = result
    return totals


def _waits(nodes: list[PlanNode]) -> list[PlanNode]:
    inner = set(nodes)
    return list(dict.fromkeys(c for node in nodes for c in node.control_inputs if c not in inner))
