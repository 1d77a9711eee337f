"""Gradients through loops: how `tf.gradients` visits the primitives of loops (white paper 4.1, 4.4).

A loop's gradient (`loop_gradient.py`) begins when the gradients with respect to all its results have arrived.
A result without a gradient counts as zeros, as does one that is a constant of this call (``stop_gradients``).
A Switch is visited twice: when the gradient with respect to its Exit arrives, which begins the ring of the
variable's gradient, and when the gradient with respect to its Identity arrives, which closes the ring. No
gradient flows through loops without ``back_prop``; a loop that is itself a gradient has none. If a loop's
body calls `tf.gradients` itself, gradients with respect to values from outside are passed on unchanged; those
with respect to a loop variable's first value are not defined."""

from __future__ import annotations

import contextlib
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.gradients.loop_gradient import LoopGradient, dense, zeros_of
from flowstone.ops.control.control_flow import colocated_switch
from flowstone.ops.control.loop_context import WhileContext, is_constant_enter


class LoopGradients:
    """The gradients of the loops that one call of `tf.gradients` passes through. `of`: the gradients of loops
    with ``back_prop``, by forward context. `held`: Exits that are constants, of loops with other results that
    gradients go through. `waiting`: for each loop, how many results' gradients have not arrived yet;
    `deferred`: its Exits whose gradients have; `unused`: those without one, whose gradients are zeros.
    """

    def __init__(self, computation: Any) -> None:
        self._computation = computation
        self.of: dict[Any, LoopGradient] = {}
        self.held: set[Any] = set()
        self._waiting: dict[Any, int] = {}
        self._deferred: dict[Any, list[Any]] = {}
        self._unused: dict[Any, list[Any]] = {}
        pending = computation.pending
        for op in list(pending):
            if op.declaration.role == "exit":
                forward = _loop_left(op)
                if forward is not None and forward.history is None:
                    self._waiting[forward] = self._waiting.get(forward, 0) + 1
        for forward in list(self._waiting):
            self._deferred[forward], self._unused[forward] = [], []
            for result in forward.loop_exits:
                switch, kind = result.op.inputs[0].op, result.dtype
                if result.op in pending or not (switch in pending or kind.is_floating or kind.is_complex):
                    continue
                pending[result.op] = 0
                if switch in pending:
                    pending[switch] += 1
                self._unused[forward].append(result.op)
        for op in list(pending):
            if op.declaration.role == "merge" and is_loop_primitive(op):
                pending.setdefault(op.inputs[0].op, 1)  # a first value, which has a gradient in any case
        for forward in list(self._waiting):
            if self._goes_back(forward):
                self._add(forward)

    def _goes_back(self, forward: Any) -> bool:
        """Whether a gradient may flow into a loop: it and all loops around it that are left have
        ``back_prop``."""
        while forward in self._waiting and forward.back_prop:
            forward = forward.outer_context and forward.outer_context.loop
        return forward not in self._waiting

    def _add(self, forward: WhileContext) -> LoopGradient:
        found = self.of.get(forward)
        if found is None:
            around = None if forward.outer_context is None else forward.outer_context.loop
            outer = self._add(around) if around is not None and around in self._waiting else None
            found = self.of[forward] = LoopGradient(forward, outer)
        return found

    def context_of(self, op: Any) -> contextlib.AbstractContextManager[None] | None:
        """A context manager for the context in which the gradient of `op` is computed; None for the
        caller's."""
        found = self._gradient_of(op._control_flow_context)
        return None if found is None else found.context.active()

    def _gradient_of(self, context: Any) -> LoopGradient | None:
        return None if context is None else self.of.get(context.loop)

    def offer(self, op: Any) -> list[Any]:
        """The operations to visit now that `op` has all its gradients: `op` itself, unless it is the result
        of a loop whose other results still wait for theirs.
        """
        forward = _loop_left(op) if op.declaration.role == "exit" else None
        if forward not in self._waiting:
            return [op]
        self._waiting[forward] -= 1
        self._deferred[forward].append(op)
        if self._waiting[forward]:
            return []
        arrived = self._computation.arrived
        exits = sorted(self._deferred[forward], key=lambda op: not arrived.get(op.outputs[0]))
        exits += self._unused[forward]
        if forward in self.of:
            self._fill(self.of[forward], exits)
        return exits

    def _fill(self, loop: LoopGradient, exits: list[Any]) -> None:
        """Gives zeros to results without a gradient, if any result has one."""
        arrived = self._computation.arrived
        if any(arrived.get(op.outputs[0]) for op in exits):
            for op in exits:
                if not arrived.get(op.outputs[0]):
                    arrived[op.outputs[0]] = [self._zeros_of_result(loop, op.outputs[0])]
            flowing = [op for op in exits if op.inputs[0].op in self._computation.pending]
            stopped = self._computation.stops.intersection(flowing)
            if len(stopped) < len(flowing):
                self.held |= stopped
                self._computation.stops -= stopped

    def _zeros_of_result(self, loop: LoopGradient, result: Tensor) -> Tensor:
        with loop.building(loop.context.outer_context):
            known = loop.outer is not None or (result.dims is not None and None not in result.dims)
            return zeros_of(result) if known else F.ZerosLike(result, name="zeros_like")

    def zeros(self, op: Any, output: Tensor) -> Tensor | None:
        """Zeros in the gradient's loop for an output without a gradient; None outside loops."""
        loop = self._gradient_of(op._control_flow_context)
        if loop is None:
            return None
        branch = op._control_flow_context
        if branch is loop.forward or op.declaration.role != "switch":
            return loop.zeros_like(output)
        zeros = loop.zeros_like(op.inputs[0])
        return colocated_switch(zeros, branch.pred)[1 - branch.branch]  # type: ignore[no-any-return]

    def close(self) -> None:
        """Closes all rings."""
        for loop in self.of.values():
            loop.close_rings()

    # ---- the primitives

    def gradient(self, op: Any, gradients: list[Any]) -> list[Any]:
        """The gradients with respect to the inputs of a loop primitive, from those of its outputs (or
        None)."""
        role = op.declaration.role
        if role == "exit":
            forward = _loop_left(op)
            if forward is None:
                raise ValueError(
                    f"Cannot compute the gradient through the loop that '{op.name}' leaves: a loop of a "
                    "GraphDef has none. Build the loop here, or add its gradient before exporting it."
                )
            if forward.history is not None:
                raise TypeError("Second-order gradient for while loops not supported.")
            loop = self.of.get(forward)
            if loop is None:
                return [None]
            result = op.outputs[0]
            return [
                loop.enter_result(
                    result, self._zeros_of_result(loop, result) if op in self.held else gradients[0]
                )
            ]
        loop = self._gradient_of(op._control_flow_context)
        if loop is None:
            return _gradient_in_the_body(op, gradients)
        if role == "switch":
            return loop.visit_switch(op, gradients)
        if role == "merge":
            return loop.visit_merge(gradients[0])
        if role == "next_iteration":
            return [gradients[0]]
        if is_constant_enter(op):
            return [loop.accumulate(op, gradients[0])]
        return [loop.context.exit(dense(gradients[0]))]


def _loop_left(op: Operation) -> Any:
    """The loop that an Exit leads out of."""
    return op.inputs[0].op._control_flow_context


def leaves_a_gradient(op: Operation) -> bool:
    """Whether `op` is the result of a loop that is itself a gradient, so that no operation before it is
    visited."""
    if op.declaration.role != "exit":
        return False
    forward = _loop_left(op)
    return forward is not None and forward.history is not None


def is_loop_primitive(op: Operation) -> bool:
    """Whether `op` is part of a loop variable's ring or brings a value in."""
    role = op.declaration.role
    if role in ("enter", "exit", "next_iteration"):
        return True
    if role == "switch":
        return op.inputs[1].op.declaration.role == "loop_condition"
    return role == "merge" and any(x.op.declaration.role == "next_iteration" for x in op.inputs)


def _gradient_in_the_body(op: Operation, gradients: list[Any]) -> list[Any]:
    """The gradients for a loop whose body calls `tf.gradients` itself: those of values from outside are
    passed on."""
    if is_constant_enter(op):
        return [gradients[0]]
    context = op._control_flow_context
    if context is not None and context is op.graph._scopes.control_flow_context:
        source = op.inputs[0].op
        while source.declaration.role in ("merge", "switch", "enter"):
            source = source.inputs[0].op
        raise ValueError(
            f"Cannot compute gradient inside while loop with respect to op '{source.name}'. We do not "
            "support taking the gradient wrt or through the initial value of a loop variable. Gradients can "
            "be computed through loop invariants or wrt the input parameters to the loop body."
        )
    return [None] * len(op.inputs)
