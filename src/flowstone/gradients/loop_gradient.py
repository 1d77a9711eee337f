"""The gradient of a loop: a loop that goes back through its iterations (white paper 4.1, 4.4).

A counter is added to the forward loop; the gradient's loop counts it down. Values of an iteration that the
gradient needs are pushed on a stack in the forward loop and popped in the gradient's loop, last in first out.
Values that are the same in all iterations, and constants, are used directly. If only a value's
shape is needed, it is computed in the forward loop, so that only the shape is pushed. The ring of a loop
variable becomes a ring of its gradient:

    forward   Enter -> Merge -> Switch -> Exit          Switch -> body -> NextIteration -> Merge
    gradient  Exit <- Switch <- Merge <- Enter          Merge <- NextIteration <- body's gradient <- Switch

and the gradient with respect to a value that the loop takes from outside is a sum over the iterations, in a
ring of its own. Pushes come after the forward counter's increment, and the next iteration waits for them;
pops come after the decrement likewise. So iterations that run at the same time keep the order of the stacks.
"""

from __future__ import annotations

import contextlib
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant, zeros
from flowstone.ops.control.control_flow import colocated_switch, variable_type
from flowstone.ops.control.loop_context import WhileContext, is_constant_enter

_HANDING_ON = frozenset({"switch", "identity"})  # roles


class LoopGradient:
    """The gradient of one loop in one computation.

    `forward`, `context`: the contexts of the loop and of its gradient's loop; `outer`: the gradient of the
    loop around it or None; `index`: the forward counter after its increment; `open_rings`: for each Switch
    visited once, the Merge that waits for a gradient from the next iteration.
    """

    def __init__(self, forward: WhileContext, outer: LoopGradient | None) -> None:
        self.context: WhileContext
        self.index: Tensor  # the forward loop's counter after its last iteration
        self.forward, self.outer, self.graph = forward, outer, forward.graph
        self.open_rings: dict[Any, Tensor] = {}
        self._push_sync: Any = None
        self._pop_sync: Any = None
        count = self._count_forward()
        around = forward.outer_context if outer is None else outer.context
        with self.building(around):
            self.context = WhileContext(
                self.graph, forward.parallel_iterations, forward.back_prop, forward.swap_memory, forward.name
            )
            if outer is not None:
                count = outer.context.add_value(count)
        self._count_back(count)
        self.context.history = self

    def building(self, context: Any) -> contextlib.AbstractContextManager[None]:
        """Within the context manager, new operations belong to `context` and get no other control inputs."""
        return self.graph._scopes.having(  # type: ignore[no-any-return]
            control_flow_context=context, control_dependencies=()
        )

    # ---- counting

    def _count_forward(self) -> Tensor:
        """Adds a counter to the forward loop; returns its last value."""
        forward = self.forward
        with self.building(forward.outer_context):
            zero = constant(0, dtypes.int32, name="f_count")
            if self.outer is not None:
                zero.op._add_control_input(self.outer.index.op)
        with self.building(forward):
            merged = self._begin(forward, zero, "f_count", "Merge")
            stopped, alive = F.Switch(merged, forward.pivot)
            self.index = F.Add(alive, 1, name="Add")
            self._next_forward = _close(merged, self.index)
            return forward.exit(stopped, "f_count")

    def _count_back(self, count: Tensor) -> None:
        """Adds the counter and predicate of the gradient's loop, which runs `count` iterations."""
        context = self.context
        with self.building(context.outer_context):
            one = constant(1, dtypes.int32, name="b_count")
        with self.building(context):
            merged = context.pivot_for_pred = self._begin(context, count, "b_count", "Merge")
            context.pivot = F.LoopCond(F.GreaterEqual(merged, one), name="b_count")
            stopped, alive = F.Switch(merged, context.pivot)
            context.pivot_for_body = F.Sub(alive, one)
            self._next_back = _close(merged, context.pivot_for_body)
            exited = context.exit(stopped, "b_count")
        if self.outer is not None:
            self.outer._after_pops(exited.op)

    def _begin(self, context: WhileContext, start: Tensor, name: str, merge_name: str) -> Tensor:
        """Begins a new ring; returns its Merge."""
        return self._merge(self._enter(context, start, name), merge_name)

    def _enter(self, context: WhileContext, start: Tensor, name: str) -> Tensor:
        entered = context.enter(start, name=name)
        self.graph.prevent_fetching(entered.op)
        return entered

    def _merge(self, entered: Tensor, name: str) -> Tensor:
        merged: Tensor = F.Merge([entered, entered], name=name)[0]
        return merged

    # ---- values of the forward loop

    def replay(self, tensor: Tensor) -> Tensor | None:
        """The value of `tensor` in the forward iteration that belongs to the gradient's; None if it is not of
        the loop."""
        if not self._runs_forward(tensor):
            return None
        source = _invariant_source(tensor)
        if source is not None:
            return self.context.add_value(source)
        if tensor.op.type == "Const":
            with self.building(self.context):
                return constant(tensor.op.attributes["value"], tensor.dtype.base_dtype)
        return self._pop(self._push(tensor), tensor)

    def place_of(self, tensor: Tensor) -> Any:
        """The forward context in which to compute the shape of `tensor`, so that only the shape is pushed; or
        None.
        """
        return tensor.op._control_flow_context if self._runs_forward(tensor) else None

    def _runs_forward(self, tensor: Tensor) -> bool:
        context = tensor.op._control_flow_context
        return context is not None and context.loop is self.forward

    def _push(self, tensor: Tensor) -> Tensor:
        """Has the forward loop push `tensor`; returns the stack."""
        context = tensor.op._control_flow_context
        with self.building(None), self.graph.colocate_with(tensor.op, ignore_existing=True):
            stack: Tensor = F.StackV2(
                constant(-1, dtypes.int32), elem_type=tensor.dtype.base_dtype, name="f_acc"
            )
        with self.building(self.forward):
            self.forward.add_value(stack)
        with self.building(context):
            pushed = F.StackPushV2(stack, tensor, swap_memory=self.forward.swap_memory).op
        pushed._add_control_input(self.index.op)
        if context is self.forward:
            self._next_forward._add_control_input(pushed)
        else:  # in a branch: nodes that wait for the push must not be dead if the branch is
            if self._push_sync is None:
                self._push_sync = self._trigger("f_sync", self.forward)
                self._next_forward._add_control_input(self._push_sync)
            self._push_sync._add_control_input(pushed)
        return stack

    def _pop(self, stack: Tensor, tensor: Tensor) -> Tensor:
        with self.building(self.context):
            branch = tensor.op._control_flow_context
            if branch is not self.forward:  # if the branch was not taken, nothing was pushed
                stack = colocated_switch(stack, branch.pred)[branch.branch]
            popped: Tensor = F.StackPopV2(stack, elem_type=tensor.dtype.base_dtype)
        popped.dims = tensor.dims
        self._after_pops(popped.op)
        return popped

    def _after_pops(self, op: Any) -> None:
        """Makes the next iteration of the gradient's loop wait for `op`."""
        if self._pop_sync is None:
            self._pop_sync = self._trigger("b_sync", self.context)
            self._next_back._add_control_input(self._pop_sync)
        self._pop_sync._add_control_input(op)

    def _trigger(self, name: str, context: WhileContext) -> Any:
        with self.building(None):
            trigger = F.ControlTrigger.operation(name=name)
        trigger._control_flow_context = context
        return trigger

    def zeros_like(self, tensor: Tensor) -> Tensor:
        """Zeros, in the gradient's loop, of the shape of a tensor of the forward loop."""
        with self.building(self.context):
            return zeros_of(tensor, name="Const")

    # ---- rings

    def enter_result(self, result: Tensor, gradient: Any) -> Tensor:
        """Brings the gradient with respect to one of the loop's results into the gradient's loop."""
        entered = self._enter(self.context, dense(gradient), "b_exit")
        entered.dims = result.dims
        return entered

    def visit_switch(self, switch: Any, gradients: list[Any]) -> list[Any]:
        """At the first visit, begins the ring of a variable's gradient; at the second, closes it."""
        merged = self.open_rings.get(switch)
        if merged is None:
            self.open_rings[switch] = merged = F.Merge([gradients[0], gradients[0]], name="b_switch")[0]
            return [merged, None]
        if gradients[1] is not None:
            _close(self.open_rings.pop(switch), dense(gradients[1]))
        return [None, None]

    def visit_merge(self, gradient: Tensor) -> list[Any]:
        """The gradients with respect to a variable's first value, and the one from the iteration before."""
        return list(colocated_switch(gradient, self.context.pivot))

    def close_rings(self) -> None:
        """Closes rings without another gradient: those of variables that the body does not use."""
        for merged in self.open_rings.values():
            entered = merged.op.inputs[0]
            is_known = entered.dims is not None and None not in entered.dims
            with self.building(self.context if is_known else self.context.outer_context):
                following = zeros_of(entered if is_known else entered.op.inputs[0], name="Const")
            with self.building(self.context):
                _close(merged, following)
        self.open_rings.clear()

    def accumulate(self, enter: Any, gradient: Any) -> Any:
        """The sum over all iterations of the gradient with respect to what a constant Enter takes."""
        source = enter.inputs[0]
        if isinstance(gradient, IndexedSlices):
            return self._accumulate_slices(source, gradient)
        dims = gradient.dims
        with self.building(self.context.outer_context):
            if dims is not None and None not in dims:
                start = constant(0, gradient.dtype, dims, "b_acc")
            else:
                start = zeros_of(source, gradient.dtype)
        merged = self._begin(self.context, start, "b_acc", "b_acc")
        stopped, alive = F.Switch(merged, self.context.pivot)
        _close(merged, F.Add(alive, gradient, name="Add"))
        return self.context.exit(stopped, "b_acc")

    def _accumulate_slices(self, source: Tensor, gradient: IndexedSlices) -> IndexedSlices:
        """The same for slices, which are concatenated, beginning with a slice of zeros."""
        values, indices, shape = gradient.values, gradient.indices, gradient.dense_shape
        with self.building(self.context.outer_context):
            starts = [constant([0], indices.dtype), _zero_slice(source, values)]
            if shape is not None:
                starts.append(_first_shape(source, shape))
        dims = [(None,), None if values.dims is None else (None, *values.dims[1:]), None]
        entered = [self._enter(self.context, start, "b_acc") for start in starts]
        merges = [self._merge(each, "b_acc") for each in entered]
        for first, merged, known in zip(entered, merges, dims):
            first.dims = merged.dims = known
        rings = [(merged, *F.Switch(merged, self.context.pivot)) for merged in merges]
        following = [
            F.ConcatV2([rings[0][2], indices], 0, name="concat"),
            F.ConcatV2([rings[1][2], values], 0, name="concat"),
        ]
        if shape is not None:
            following.append(F.Maximum(shape, rings[2][2]))
        for (merged, _, _), value in zip(rings, following):
            _close(merged, value)
        exits = [self.context.exit(stopped, "b_acc") for _, stopped, _ in rings]
        return IndexedSlices(exits[1], exits[0], exits[2] if shape is not None else None)


def _close(merged: Tensor, value: Tensor) -> Any:
    """Passes `value` to the next iteration; returns the NextIteration."""
    following = F.NextIteration(value)
    merged.op._update_input(1, following)
    return following.op


def _invariant_source(tensor: Tensor) -> Tensor | None:
    """The value outside the loop that a tensor of the loop equals in all iterations; None if it varies."""
    op = tensor.op
    while op.declaration.role in _HANDING_ON:
        op = op.inputs[0].op
    return op.inputs[0] if is_constant_enter(op) else None


def dense(gradient: Any) -> Tensor:
    """A gradient as one tensor."""
    return gradient if isinstance(gradient, Tensor) else convert_to_tensor(gradient)


def zeros_of(like: Tensor, dtype: Any = None, name: str | None = None) -> Tensor:
    """Zeros of the shape of a tensor, or of a handle's variable (whose type is `dtype`); `name` is that of
    zeros of a known shape."""
    dims = like.dims
    if like.dtype is dtypes.resource:
        dims, dtype = _variable_dims(like), variable_type(like)
    elif dtype is None:
        dtype = like.dtype.base_dtype
    if dims is not None and None not in dims:
        return zeros(dims, dtype) if name is None else constant(0, dtype, dims, name)
    shape = F.VariableShape(like) if like.dtype is dtypes.resource else F.Shape(like)
    context = like.graph._scopes.control_flow_context
    return zeros(context.add_value(shape) if isinstance(context, WhileContext) else shape, dtype)


def _variable_dims(handle: Tensor) -> Any:
    op = handle.op
    while "shape" not in op.attributes:
        if not op.inputs:
            return None
        op = op.inputs[0].op
    return op.attributes["shape"]


def _zero_slice(source: Tensor, values: Tensor) -> Tensor:
    dims = values.dims
    if dims is not None and None not in dims[1:]:
        return constant(0, values.dtype, (1, *dims[1:]), "b_acc")
    shape = F.VariableShape(source) if source.dtype is dtypes.resource else F.Shape(source)
    sizes = F.ConcatV2([constant([1], dtypes.int32), shape[1:]], 0, name="concat")
    return F.Fill(sizes, constant(0, values.dtype), name="b_acc")


def _first_shape(source: Tensor, shape: Tensor) -> Tensor:
    """The full shape of `source`, which must be known even if there is no iteration."""
    dims = _variable_dims(source) if source.dtype is dtypes.resource else source.dims
    if dims is not None and None not in dims:
        return constant(dims, shape.dtype)
    take = F.VariableShape if source.dtype is dtypes.resource else F.Shape
    return take(source, out_type=shape.dtype)
