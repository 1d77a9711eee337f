"""Effects in the order of the program, by control edges: a body reads as Python does.

A traced function returns tensors, but also assigns, prints and checks. `order_effects` looks at the
operations of a body in the order of their creation. What writes a resource waits for what read or wrote it
before; what reads it, for what wrote it; what has another effect (printing, a Python call), for the one
before. Results wait for all that must happen.

A conditional or a loop is one thing for what is around it: what comes later waits for its Merges or Exits,
its inside waits for what came before. Its place is that of its first effect: the loop of a gradient has its
counters before there is what it starts with. A branch's results wait for the branch's effects, an
iteration's end for the iteration's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowstone.framework.declarations.operation import CONTROL_FLOW, F
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes

__all__ = ["order_effects"]

_OTHER = "effects without a resource"
_UNORDERED = frozenset({"Assert"})  # must run, whenever
# Nothing waits for these: assignments leave a shape as it is, and a gradient asks for that of the variable on
# the branch that is not taken.
_NOT_AWAITED = frozenset({"VariableShape"})
_WITHOUT_EFFECT = CONTROL_FLOW | {"placeholder", "identity"}  # roles


def order_effects(operations: Sequence[Operation], level: Any = None) -> list[Operation]:
    """Adds control edges among these operations; returns what must run, as operations of `level`.

    `level`: the control-flow context whose operations are ordered, None outside of conditionals and loops.
    """
    members: dict[Any, list[Operation]] = {}
    for op in operations:
        key = _part(op, level)
        if key is not None:
            members.setdefault(key, []).append(op)
    order = _Order()
    seen: set[Any] = set()
    for op in operations:
        key = _part(op, level)
        if key is None:
            order.visit(op)
        elif key not in seen and any(_accesses(op)):
            seen.add(key)
            order.visit_compound(_Compound(members[key], operations, level))
    for key in members:
        if key not in seen:
            order.visit_compound(_Compound(members[key], operations, level))
    return list(order.must_run)


def _part(op: Operation, level: Any) -> Any:
    """What of a level an operation is part of: a conditional's predicate, a loop's context; None: it is
    itself there.
    """
    context = op._control_flow_context
    if context is level or context is None:
        return None
    while context.outer_context is not level:
        context = context.outer_context
        if context is None:
            return None
    return context if context.loop is context else context.pred


class _Order:
    """Who wrote and read each resource last, while operations are visited."""

    def __init__(self) -> None:
        self.writers: dict[Any, list[Operation]] = {}
        self.readers: dict[Any, list[Operation]] = {}
        self.must_run: dict[Operation, None] = {}

    def before(self, writes: Iterable[Any], reads: Iterable[Any]) -> dict[Operation, None]:
        """What something that writes and reads these must wait for."""
        found: dict[Operation, None] = {}
        for key in writes:
            found.update(dict.fromkeys(self.readers.get(key) or self.writers.get(key, [])))
        for key in reads:
            found.update(dict.fromkeys(self.writers.get(key, [])))
        return found

    def done(self, writes: Iterable[Any], reads: Iterable[Any], ends: list[Operation]) -> None:
        """Notes that `ends` have written and read these."""
        for key in writes:
            self.writers[key], self.readers[key] = ends, []
        for key in reads:
            self.readers.setdefault(key, []).extend(ends)

    def visit(self, op: Operation) -> None:
        """Orders one operation."""
        writes, reads = _accesses(op)
        if not writes and not reads:
            if op.type in _UNORDERED:
                self.must_run[op] = None
            return
        op._add_control_inputs(each for each in self.before(writes, reads) if each is not op)
        if op.type not in _NOT_AWAITED:
            self.done(writes, reads, [op])
        if writes:
            self.must_run[op] = None

    def visit_compound(self, part: _Compound) -> None:
        """Orders a conditional or a loop as a whole."""
        if not part.must_run and not part.reads:
            return
        for start in part.starts:
            start._add_control_inputs(self.before(part.writes, part.reads))
        if part.ends:
            self.done(part.writes, part.reads, part.ends)
            if part.must_run:
                self.must_run.update(dict.fromkeys(part.ends))


class _Compound:
    """A conditional or a loop. `starts` and `ends`: the operations that wait for others, and those to wait
    for.
    """

    def __init__(self, inside: list[Operation], around: Sequence[Operation], level: Any) -> None:
        self.writes: dict[Any, None] = {}
        self.reads: dict[Any, None] = {}
        accessing = []
        for op in inside:
            writes, reads = _accesses(op)
            self.writes.update(dict.fromkeys(writes))
            self.reads.update(dict.fromkeys(reads))
            if writes or reads:
                accessing.append(op)
        members = set(inside)
        self.contexts: dict[Any, list[Operation]] = {}
        for op in inside:
            self.contexts.setdefault(_child(op, level), []).append(op)
        is_loop = any(context.loop is context for context in self.contexts)
        ends = [op for op in around if op._control_flow_context is level]
        ends = [op for op in ends if op.declaration.role in ("merge", "exit")]
        self.ends = [op for op in ends if any(x.op in members for x in op.inputs)]
        effects = {context: order_effects(ops, context) for context, ops in self.contexts.items()}
        self.must_run = any(effects.values())
        if is_loop:
            self._close_iterations(effects)
            self.starts = [op for op in inside if op.declaration.role == "enter" and _outermost(op, level)]
        else:
            self._close_branches(effects)
            self.starts = [op for op in accessing if op._control_flow_context in self.contexts]

    def _close_iterations(self, effects: dict[Any, list[Operation]]) -> None:
        for context, ops in self.contexts.items():
            for op in ops:
                if op._control_flow_context is context and op.declaration.role == "next_iteration":
                    op._add_control_inputs(effects[context])

    def _close_branches(self, effects: dict[Any, list[Operation]]) -> None:
        """Has what a branch gives wait for its effects."""
        for context, awaited in effects.items():
            for end in self.ends if awaited else ():
                for i, x in enumerate(end.inputs):
                    if x.op._control_flow_context is context:
                        end._update_input(i, _after(x, awaited, context))


def _after(tensor: Tensor, effects: list[Operation], context: Any) -> Tensor:
    graph = tensor.graph
    scopes = graph._scopes.having(control_flow_context=context, control_dependencies=())
    with graph.as_default(), scopes, graph.control_dependencies(effects):
        result: Tensor = F.Identity(tensor)
    result.dims = tensor.dims
    return result


def _child(op: Operation, level: Any) -> Any:
    """The context just inside `level` that an operation is in."""
    context = op._control_flow_context
    while context.outer_context is not level:
        context = context.outer_context
    return context


def _outermost(op: Operation, level: Any) -> bool:
    return op._control_flow_context.outer_context is level


# ---- what an operation reads and writes


def _accesses(op: Operation) -> tuple[list[Any], list[Any]]:
    """What it writes and what it reads: resources, and `_OTHER` for an effect of another kind."""
    declaration = op.declaration
    if declaration.is_pure or declaration.role in _WITHOUT_EFFECT or op.type in _UNORDERED:
        return [], []
    writes: list[Any] = []
    reads: list[Any] = []
    at = 0
    handles = False
    for index, argument in enumerate(declaration.inputs):
        for dtype in argument.types(op.attributes):
            if dtype.base_dtype is dtypes.resource or dtype.is_ref:
                handles = True
                only_reads = index in declaration.reads and index not in declaration.mutates
                (reads if only_reads else writes).append(_root(op.inputs[at]))
            at += 1
    if handles:
        return writes, [key for key in reads if key not in writes]
    if "seed2" in declaration.attributes or _makes_resource(op):
        return [], []
    return [_OTHER], []


def _makes_resource(op: Operation) -> bool:
    kinds = (dtypes.resource, dtypes.variant)
    return bool(op.outputs) and all(x.dtype.base_dtype in kinds for x in op.outputs)


def _root(handle: Tensor) -> Tensor:
    """The tensor that a handle was before it went through conditionals and loops."""
    while handle.op.declaration.role in ("identity", "switch", "enter"):
        handle = handle.op.inputs[0]
    return handle
