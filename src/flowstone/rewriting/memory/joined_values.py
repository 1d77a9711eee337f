"""Reads activations from the concatenation that holds them, so that its operands can be freed.

The gradient of an activation takes the activation's result. Where that is an operand of a concatenation
which is held for a gradient, too, both wait. The gradient of the activation then takes its part of the
concatenation, a view:

    %1 = Relu(%0)                          %1 = Relu(%0)
    %3 = ConcatV2(%1, %2, 1)               %3 = ConcatV2(%1, %2, 1)
    …                              becomes …
    %9 = ReluGrad(%8, %1)                  %9, … = SplitV(%3, (2, 3), 1)
                                           %10 = ReluGrad(%8, %9)

That is done where the concatenation is held for at least half of the time in any case, by its other uses, and
where the operands are large. Steps with loops or conditionals are left alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.memory_estimate import size_of
from flowstone.rewriting.analyses.state_access import input_positions
from flowstone.rewriting.patterns import substitute

WORTHWHILE = 1 << 20  # bytes of operands that are freed

Uses = dict[int, list[PlanNode]]


class _Walk(NamedTuple):
    """`place` of each node in the order, and who takes each value."""

    place: dict[PlanNode, int]
    consumers: Consumers


class _Parts(NamedTuple):
    """What is `made` before which node, and the parts that nodes take, by input position."""

    made: dict[PlanNode, list[PlanNode]]
    taken: dict[PlanNode, dict[int, PlanOutput]]


def read_joined_values(subgraph: Subgraph) -> None:
    """Lets gradients of activations read the parts of concatenations that hold the same values."""
    joins = [node for node in subgraph.nodes if node.type == "ConcatV2"]
    if not joins or not subgraph.analysis(Liveness).trivial:
        return
    walk = _Walk({node: i for i, node in enumerate(subgraph.nodes)}, subgraph.consumers())
    parts = _Parts({}, {})
    for join in joins:
        uses = _gradients(subgraph, join, walk)
        if uses and _pays(join, uses, walk):
            _read(subgraph, join, uses, walk, parts)
    places: dict[PlanNode, list[PlanNode]] = {node: [*new, node] for node, new in parts.made.items()}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for node, taken in parts.taken.items():
        inputs = [taken.get(i, x) for i, x in enumerate(node.inputs)]
        new = subgraph.new_node(node.declaration, inputs, node.attributes, node, node.group_sizes)
        new.control_inputs = list(node.control_inputs)
        places[node] = [*parts.made.get(node, ()), new]
        replaced.update(zip(node.outputs, new.outputs))
    substitute(subgraph, places, replaced)


def _gradients(subgraph: Subgraph, join: PlanNode, walk: _Walk) -> Uses:
    """Of the operands that only `join` and gradients of activations take: these gradients, by position."""
    operands = join.inputs[:-1]
    axis = join.constant(len(operands))
    if axis is None or any(x.dims is None or None in x.dims for x in operands):
        return {}
    found: Uses = {}
    for i, x in enumerate(operands):
        others = [node for node in walk.consumers[x] if node is not join]
        fits = all(_position(node, x) is not None for node in others)
        here = all(node.device == join.device for node in (x.op, *others))
        later = all(walk.place[node] > walk.place[join] for node in others)
        if others and fits and here and later and operands.count(x) == 1 and x not in subgraph.fetches:
            found[i] = others
    return found


def _position(node: PlanNode, x: PlanOutput) -> int | None:
    """Where the gradient of an activation takes `x` as its result; None if it takes it otherwise, too."""
    argument = node.declaration.takes_result
    positions = [] if argument is None else input_positions(node, (argument,))
    found = [i for i, taken in enumerate(node.inputs) if taken is x]
    return found[0] if len(found) == 1 and found[0] in positions else None


def _pays(join: PlanNode, uses: Uses, walk: _Walk) -> bool:
    start = walk.place[join]
    first = min(walk.place[node] for nodes in uses.values() for node in nodes)
    last = max([walk.place[node] for node in walk.consumers.get(join.outputs[0], [])], default=start)
    return 2 * (last - start) >= first - start and sum(size_of(join.inputs[i]) for i in uses) >= WORTHWHILE


def _read(subgraph: Subgraph, join: PlanNode, uses: Uses, walk: _Walk, parts: _Parts) -> None:
    """Puts a split of the joined value before the first of the gradients."""
    operands, whole = join.inputs[:-1], join.outputs[0]
    axis = int(np.asarray(join.constant(len(operands)))) % len(whole.dims or ())
    first = min([node for nodes in uses.values() for node in nodes], key=walk.place.__getitem__)
    constants = [
        subgraph.new_constant(np.array([(x.dims or ())[axis] for x in operands], np.int64), first, "sizes"),
        subgraph.new_constant(np.array(axis, np.int32), first, "axis"),
    ]
    attributes = {"T": whole.dtype.base_dtype, "Tlen": dtypes.int64, "num_split": len(operands)}
    inputs = [whole, *[constant.outputs[0] for constant in constants]]
    split = subgraph.new_node(registry["SplitV"], inputs, attributes, first, name=f"{join.name}/parts")
    parts.made.setdefault(first, []).extend([*constants, split])
    for i, nodes in uses.items():
        for node in nodes:
            at = _position(node, operands[i])
            assert at is not None
            parts.taken.setdefault(node, {})[at] = split.outputs[i]
            subgraph.log.append(
                ("read_joined_values", node.name, f"is read from the concatenation {join.name}")
            )
