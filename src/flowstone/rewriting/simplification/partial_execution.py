"""Pruning: the part of the user's graph that a step needs (white paper 4.2).

Backwards from the fetches and targets along data and control edges, cutting at the feeds: a fed tensor
becomes the output of an ``_Arg`` node, and what only served to compute it is left out. The result is a
private copy in topological order; nodes that nothing orders stay in creation order, but reads of
variables stand before their changes (`unordered_reads.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.operation import op
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph, requested_device
from flowstone.framework.tensors.node import UNKNOWN
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS
from flowstone.rewriting.simplification.unordered_reads import put_reads_first

argument = op("_Arg", "-> output: T", "index: int >= 0", T=None, free=True, role="feed")
argument.infer(lambda node: None)
argument.not_differentiable()


def prune(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[Tensor],
    feed_dims: Sequence[Dims] | None = None,
) -> Subgraph:
    """The subgraph that computes `fetches` and runs `targets` when `feeds` are given.

    `feed_dims`: the shapes of the fed values, in part or all known, where the plan shall be for these alone.
    Raises InvalidArgumentError, naming the nodes, if what is needed contains a cycle.
    """
    fed = set(feeds)
    needed = needed_operations(fetches, targets, fed)
    copies: dict[Operation, PlanNode] = {}
    outputs: dict[Tensor, PlanOutput] = {}
    nodes: list[PlanNode] = []
    for index, tensor in enumerate(feeds):
        node = PlanNode(
            argument, tensor.op.name, [], {"T": tensor.dtype.base_dtype, "index": index}, (), [], "", 0
        )
        node.origin = tensor.op
        outputs[tensor] = node.add_output(
            tensor.dtype.base_dtype, feed_dims[index] if feed_dims else tensor.dims
        )
        nodes.append(node)
    heads: list[tuple[PlanNode, Operation]] = []
    for operation in _in_order(needed, fed):
        copies[operation] = copy = _copy(operation, outputs, copies)
        for tensor, output in zip(operation.outputs, copy.outputs):
            outputs.setdefault(tensor, output)
        nodes.append(copy)
        if UNKNOWN in copy.inputs:
            heads.append((copy, operation))
    for copy, operation in heads:
        inputs = [outputs[tensor] for tensor in operation.inputs]
        if _closes_a_loop(operation.inputs[0]) and not operation.outputs[1].consumers():
            inputs.reverse()  # as programs that edit graphs leave it; the value from outside comes first here
        copy.inputs[:] = inputs
    subgraph = Subgraph(
        nodes,
        [outputs[t] for t in feeds],
        [outputs[t] for t in fetches],
        [copies[operation] for operation in targets],
    )
    put_reads_first(subgraph)
    return subgraph


def needed_operations(
    fetches: Sequence[Tensor], targets: Sequence[Operation], fed: set[Tensor]
) -> set[Operation]:
    """The operations that a step runs to compute `fetches` and to run `targets` where `fed` are given."""
    needed: set[Operation] = set()
    stack = [tensor.op for tensor in fetches if tensor not in fed]
    stack.extend(targets)
    while stack:
        operation: Any = stack.pop()
        if operation in needed:
            continue
        needed.add(operation)
        for tensor in operation.inputs:
            if tensor not in fed and tensor.op not in needed:
                stack.append(tensor.op)
        for control in operation.control_inputs:
            if control not in needed and not _is_fed_away(control, fed):
                stack.append(control)
    return needed


def _is_fed_away(operation: Operation, fed: set[Tensor]) -> bool:
    """A placeholder that is fed need not run for those who only wait for it."""
    return bool(operation.outputs) and not operation.inputs and all(t in fed for t in operation.outputs)


def _in_order(needed: set[Operation], fed: set[Tensor]) -> list[Operation]:
    ordered = sorted(needed, key=lambda operation: operation.order)
    done: set[Operation] = set()
    for operation in ordered:
        for tensor in operation.inputs:
            if tensor.op not in done and tensor not in fed and not _closes_a_loop(tensor):
                return _topological(ordered, needed, fed)
        for control in operation.control_inputs:
            if control in needed and control not in done:
                return _topological(ordered, needed, fed)
        done.add(operation)
    return ordered


def _closes_a_loop(tensor: Tensor) -> bool:
    """Whether this is what a loop's next iteration begins with; the one kind of edge that leads back."""
    return tensor.op.declaration.name in NEXT_ITERATIONS


def _topological(ordered: list[Operation], needed: set[Operation], fed: set[Tensor]) -> list[Operation]:
    """Creation order is not topological (inputs were changed later): Kahn's algorithm, earliest created
    first.
    """
    waiting: dict[Operation, int] = {}
    dependants: dict[Operation, list[Operation]] = {}
    for operation in ordered:
        sources = {t.op for t in operation.inputs if t not in fed and not _closes_a_loop(t)}
        sources.update(c for c in operation.control_inputs if c in needed)
        waiting[operation] = len(sources)
        for source in sources:
            dependants.setdefault(source, []).append(operation)
    ready = [(operation.order, operation) for operation in ordered if not waiting[operation]]
    heapq.heapify(ready)
    result = []
    while ready:
        operation = heapq.heappop(ready)[1]
        result.append(operation)
        for dependant in dependants.get(operation, ()):
            waiting[dependant] -= 1
            if not waiting[dependant]:
                heapq.heappush(ready, (dependant.order, dependant))
    if len(result) < len(ordered):
        stuck = [operation.name for operation in ordered if waiting[operation]]
        names = ", ".join(stuck[:5]) + (" …" if len(stuck) > 5 else "")
        raise errors.InvalidArgumentError(
            None, None, f"The graph contains a cycle through the nodes: {names}"
        )
    return result


def _copy(
    operation: Operation, outputs: dict[Tensor, PlanOutput], copies: dict[Operation, PlanNode]
) -> PlanNode:
    copy = PlanNode(
        operation.declaration,
        operation.name,
        [outputs.get(tensor, UNKNOWN) for tensor in operation.inputs],
        operation.attributes,
        operation.group_sizes,
        [copies[control] for control in operation.control_inputs if control in copies],
        requested_device(operation),
        operation.order,
    )
    copy.origin = operation
    add = copy.outputs.append
    for tensor in operation.outputs:
        add(PlanOutput(copy, tensor.value_index, tensor.dtype, tensor.dims))
    return copy
