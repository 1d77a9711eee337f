"""Static shapes, once the feeds' shapes are known.

A plan is made when the first values are fed, so its ``_Arg`` nodes may carry those values' shapes where the
placeholders leave dimensions open. `refine_shapes` infers the shapes of everything that follows again, with
which most shape arithmetic (batch sizes, reshapes, broadcasts of gradients) becomes constant. Raises
ValueError where the shapes contradict; the plan is then made without them and the step says what is wrong.

A loop variable is believed to keep the shape that it enters with; if the body then gives it that shape again,
it has it in every iteration, by induction. A dimension that the body does not confirm goes back to what was
known of it, and all is inferred again. What a loop leaves on stacks and in arrays has the shape that it had
there (`stored_values.py`), and what it pushes of shapes is known to the pops, so that the loop of the
gradients computes no shapes either.
"""

from __future__ import annotations

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.tensors.node import UNKNOWN, static_value
from flowstone.framework.types.shape import Dims, merge
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES, decisive
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS, is_head, is_loop_switch
from flowstone.rewriting.analyses.stored_values import StoredValues, common, is_pop, is_taken

_ATTEMPTS = 8  # then nothing is believed of loop variables any more


def refine_shapes(subgraph: Subgraph) -> None:
    """Infers again the shapes of all nodes that depend on a fed value, in order."""
    for node in subgraph.nodes:
        for output in node.outputs:
            if not isinstance(output._static_value, np.ndarray):
                output._static_value = UNKNOWN  # whoever asked before knew less of the shapes
    heads = [node for node in subgraph.nodes if is_head(node)]
    if not heads:
        _infer_again(subgraph, {})
        return
    before = [(x, x.dims, x._static_value) for node in subgraph.nodes for x in node.outputs]
    known = {head: head.outputs[0].dims for head in heads}
    believed: dict[PlanNode, set[int] | None] = dict.fromkeys(heads)  # axes; None is all
    for attempt in range(_ATTEMPTS + 1):
        if attempt == _ATTEMPTS:
            believed = {head: set() for head in heads}
        try:
            _infer_again(subgraph, believed)
        except ValueError:
            if not any(axes is None or axes for axes in believed.values()):
                raise
            believed = {head: set() for head in heads}
        else:
            if all([_confirm(head, known[head], believed) for head in heads]):
                return
        for output, dims, value in before:
            output.dims, output._static_value = dims, value


def _infer_again(subgraph: Subgraph, believed: dict[PlanNode, set[int] | None]) -> None:
    refined: set[PlanOutput] = set(subgraph.feeds)
    empty: set[PlanOutput] = set()  # which never have a value
    stored = StoredValues(subgraph) if any([is_taken(node) for node in subgraph.nodes]) else None
    for node in subgraph.nodes:
        infer = node.declaration.infer_function
        is_stored = stored is not None and is_taken(node)
        if infer is None or not node.outputs or not (is_stored or any([x in refined for x in node.inputs])):
            continue
        if node.type in SWITCHES:
            empty.update(_untaken(node))
        inferred: Dims | list[Dims]
        if empty.isdisjoint(node.inputs):
            try:
                inferred = infer(node)
            except (TypeError, IndexError) as error:  # a rank that the function did not expect
                raise ValueError(f"{node.name}: {error}") from error
        elif (merged_dims := _merged(node, empty)) is not None:
            inferred = merged_dims
        else:
            empty.update(node.outputs)
            refined.update(node.outputs)
            continue
        if node in believed:
            inferred = [_entering(node, believed[node]), ()]
        elif is_stored and stored is not None and not isinstance(inferred, list):
            inferred = merge(inferred, stored.dims_for(node))
            constant = stored.constant_for(node) if is_pop(node) else None
            if constant is not None:
                node.outputs[0]._static_value = constant
        for output, dims in zip(node.outputs, inferred if isinstance(inferred, list) else [inferred]):
            if dims != output.dims:
                merged = merge(output.dims, dims)
                if merged != output.dims:
                    output.dims = merged
            refined.add(output)


def _untaken(switch: PlanNode) -> list[PlanOutput]:
    """The output of a conditional's Switch that has no value, if the predicate is known."""
    if is_loop_switch(switch):
        return []
    predicate, negated = decisive(switch.inputs[1])
    value = static_value(predicate)
    return [switch.outputs[bool(np.all(value)) == negated]] if isinstance(value, np.ndarray) else []


def _merged(node: PlanNode, empty: set[PlanOutput]) -> list[Dims] | None:
    """The shapes of a node some of whose inputs never have a value; None if it never runs."""
    alive = [x.dims for x in node.inputs if x not in empty]
    if node.type not in MERGES or not alive or is_head(node):
        return None
    return [common(alive), ()]


def _entering(head: PlanNode, axes: set[int] | None) -> Dims:
    """The shape that a loop variable enters with, along these axes."""
    first: Dims = next(x.dims for x in head.inputs if x.op.type not in NEXT_ITERATIONS)
    if axes is None or first is None:
        return first
    return tuple([n if i in axes else None for i, n in enumerate(first)]) if axes else None


def _confirm(head: PlanNode, known: Dims, believed: dict[PlanNode, set[int] | None]) -> bool:
    """Whether each iteration gives a loop variable the shape that it is believed to have; what it does not
    give is believed no more."""
    dims = head.outputs[0].dims
    if dims == known or dims is None:
        return True
    following = next(x for x in head.inputs if x.op.type in NEXT_ITERATIONS).dims
    same_rank = following is not None and len(following) == len(dims)
    pairs = enumerate(zip(dims, following or ()))
    confirmed = {i for i, (n, m) in pairs if same_rank and n is not None and n == m}
    doubtful = [i for i, n in enumerate(dims) if n is not None and i not in confirmed]
    if same_rank and all([known is not None and known[i] is not None for i in doubtful]):
        return True
    believed[head] = confirmed
    return False
