"""`WhileContext`: the state of building a loop (white paper 4.4).

Tensors from outside come in through an Enter (one each) that has the same value in every iteration. Nodes
that would depend on nothing in the iteration wait for its *pivot*: the first Merge while the predicate is
built, the first Identity afterwards. Nothing in a frame can wait for an operation outside it, so such control
inputs are replaced: by a node in the loop that takes the operation's value, if it has one."""

from __future__ import annotations

import contextlib
from typing import Any

from flowstone.framework.declarations.operation import F, OpDeclaration
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.control.context_questions import ContextQuestions

_SHAPES = frozenset({"Shape", "Size", "Rank"})


def is_constant_enter(op: Operation) -> bool:
    """Whether `op` brings a value into a frame that is the same in all iterations."""
    return op.type in ("Enter", "RefEnter") and op.attributes["is_constant"]


def close_off(op: Operation) -> None:
    """Makes it an error to fetch an operation that may run never or many times, or to feed its outputs."""
    op.graph.prevent_fetching(op)
    for output in op.outputs:
        op.graph.prevent_feeding(output)


class WhileContext(ContextQuestions):
    """The state of building a loop.

    `name` is that of its frame; `pivot`, the predicate's LoopCond; `pivot_for_pred` and `pivot_for_body`, the
    tensors that signal that an iteration has begun; `loop_enters` and `loop_exits`, the tensors of its loop
    variables; `outer_context`; `nested`, the contexts inside; `loop`, itself; `_inside`, the tensors that may
    be used directly; `_entered`, the tensor to use in place of each outside tensor. `history`, in the loop of
    a gradient, knows the forward loop (`gradients/loop_gradients.py`): `history.replay(tensor)` is the value
    of one of its tensors in the forward iteration that belongs to the gradient's, or None for other tensors;
    `history.place_of` is the context in which to compute a tensor's shape."""

    def __init__(
        self,
        graph: Any,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str = "while_context",
        maximum_iterations: Any = None,
    ) -> None:
        self.graph, self.parallel_iterations, self.back_prop = graph, parallel_iterations, back_prop
        self.swap_memory, self.maximum_iterations = swap_memory, maximum_iterations
        self.outer_context = graph._scopes.control_flow_context
        self.name = graph.unique_name(name)
        self.pivot: Tensor | None = None
        self.pivot_for_pred: Tensor | None = None
        self.pivot_for_body: Tensor | None = None
        self.loop_enters: list[Tensor] = []
        self.loop_exits: list[Tensor] = []
        self.history: Any = None
        self.nested: list[Any] = []
        if self.outer_context is not None:
            self.outer_context.nested.append(self)
        self._inside: set[Tensor] = set()
        self._entered: dict[Tensor, Tensor] = {}

    def __repr__(self) -> str:
        return f"<WhileContext {self.name}>"

    @property
    def loop(self) -> WhileContext:
        """The innermost loop around operations of this context."""
        return self

    @property
    def pivot_now(self) -> Tensor | None:
        """The tensor that signals that the iteration has begun, in the predicate or the body, whichever is
        being built."""
        return self.pivot_for_pred if self.pivot_for_body is None else self.pivot_for_body

    def context_for(self, declaration: OpDeclaration, inputs: list[Tensor]) -> Any:
        """The context that a new operation belongs to: this one, or that of the tensor whose shape it takes
        (white paper 4.1: a gradient should keep no more of the forward values than it needs).
        """
        if self.history is None or declaration.name not in _SHAPES or self._is_controlled():
            return self
        return self.history.place_of(inputs[0]) or self

    def _is_controlled(self) -> bool:
        return any(controller.inputs for controller in self.graph._scopes.control_dependencies)

    def active(self) -> contextlib.AbstractContextManager[None]:
        """Within the context manager, new operations belong to the loop."""
        return self.graph._scopes.having(control_flow_context=self)  # type: ignore[no-any-return]

    def add_value(self, tensor: Tensor) -> Tensor:
        """The tensor to use for `tensor` in the loop."""
        if tensor in self._inside:
            return tensor
        found = self._entered.get(tensor)
        if found is None and self.history is not None:
            found = self.history.replay(tensor)
        if found is None:
            outer = tensor if self.outer_context is None else self.outer_context.add_value(tensor)
            found = self._entered.get(outer)
            if found is None:
                found = self._entered[outer] = self._constant(outer)
        self._entered[tensor] = found
        return found

    def enter(self, tensor: Tensor, is_constant: bool = False, name: str | None = None) -> Tensor:
        """An Enter of `tensor`, a value of the surrounding context."""
        declaration = F.RefEnter if is_constant and tensor.dtype.is_ref else F.Enter
        with self.graph._scopes.having(control_flow_context=None):
            entered: Tensor = declaration(
                tensor,
                frame_name=self.name,
                is_constant=is_constant,
                parallel_iterations=self.parallel_iterations,
                name=name,
            )
        entered.op._control_flow_context = self
        self._inside.add(entered)
        self.graph.prevent_feeding(entered)
        return entered

    def exit(self, tensor: Tensor, name: str | None = None) -> Tensor:
        """An Exit of `tensor`, which belongs to the surrounding context."""
        with self.graph._scopes.having(control_flow_context=None):
            exited: Tensor = F.Exit(tensor, name=name)
        self.loop_exits.append(exited)
        outer = self.outer_context
        if outer is not None:
            exited.op._control_flow_context = outer
            outer.adopt(exited.op)
            close_off(exited.op)
        return exited

    def _constant(self, tensor: Tensor) -> Tensor:
        """An Enter of an outside value; it gets those of the current control dependencies that are outside
        the loop.

        ValueError if it is of a loop that this one is not in.
        """
        inner, around = tensor.op._control_flow_context, self.outer_context
        if inner is not None and inner.loop not in (None, None if around is None else around.loop):
            raise ValueError(
                f"Cannot use '{tensor.op.name}' as input to '{self.graph.get_name_scope()}' because they are "
                "in different while loops. See info log for more details."
            )
        controllers = self.graph._scopes.control_dependencies
        with self.graph.control_dependencies(None):
            entered = self.enter(tensor, is_constant=True)
        waits, source = entered.op.control_inputs, tensor.op
        for controller in controllers:
            if source not in controller.inside and source not in controller.inputs:
                waits += [op for op in controller.inputs if op not in waits and not self._encloses(op)]
        return entered

    def add_op(self, op: Operation) -> None:
        """Adds an operation that was created in the loop."""
        waits = op.control_inputs
        outside = [control for control in waits if not self._runs(control)] if waits else []
        for control in outside:
            waits.remove(control)
        if not waits and all(is_constant_enter(x.op) for x in op.inputs):
            pivot = self.pivot_now
            if pivot is not None:
                waits.append(pivot.op)
        if outside:
            waits += self._entered_controls(op, outside)
        self.adopt(op)
        close_off(op)

    def adopt(self, op: Operation) -> None:
        """Makes the outputs of `op` usable directly, here and in every context around."""
        context: Any = self
        while context is not None:
            context._inside.update(op.outputs)
            context = context.outer_context

    def _entered_controls(self, op: Operation, outside: list[Operation]) -> list[Operation]:
        """Nodes in the loop that replace control inputs from outside, whose values they take."""
        graph = self.graph
        scope = graph.get_name_scope() if op.type == "Const" else op.name
        with (
            graph.name_scope(scope + "/" if scope else None),
            graph._scopes.having(control_dependencies=(), control_flow_context=self),
        ):
            return [F.Identity(control.outputs[0]).op for control in outside if control.outputs]

    def _runs(self, op: Operation) -> bool:
        """Whether `op` runs in this loop's frame, not in an inner loop's or outside."""
        context = op._control_flow_context
        return context is not None and context.loop is self

    def _encloses(self, op: Operation) -> bool:
        """Whether `op` belongs to this loop or to a context inside it."""
        context = op._control_flow_context
        while context is not None and context is not self:
            context = context.outer_context
        return context is self
