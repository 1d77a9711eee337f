"""One step of a recurrence over sequences of different lengths, and functions that all recurrences use.

Sequences of a batch that have ended at `time` get zeros as their output and keep their state.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from flowstone.framework.tensors import nest
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.control.conditionals import cond
from flowstone.ops.control.loop_context import WhileContext
from flowstone.ops.numbers.reductions import reduce_max, reduce_min
from flowstone.ops.variables.scope_defaults import VariableScope
from flowstone.ops.variables.variable_scope import variable_scope

__all__ = ["Lengths", "batch_size_of", "cache_variables", "copied_through", "recurrence_scope", "state_dtype"]


@contextlib.contextmanager
def recurrence_scope(scope: str | VariableScope | None) -> Iterator[VariableScope]:
    """The variable scope of a recurrence, "rnn" by default."""
    with variable_scope(scope or "rnn") as entered:
        cache_variables(entered)
        yield entered


def cache_variables(scope: VariableScope) -> None:
    """Has the variables of a recurrence read once a step of the session, unless it is within a loop."""
    # A variable on another device is read once instead of at every step. Inside a loop the copy would be made
    # in the loop, and gain nothing.
    if scope.caching_device is None and not _is_in_loop():
        scope.set_caching_device(lambda op: op.device)


def _is_in_loop() -> bool:
    context = get_default_graph()._scopes.control_flow_context
    while context is not None and not isinstance(context, WhileContext):
        context = context.outer_context
    return context is not None


def batch_size_of(inputs: list[Tensor]) -> Any:
    """The batch size of inputs [time, batch, …]: a number if one of their static shapes has it, else a
    tensor."""
    for tensor in inputs:
        dims = tensor.dims
        if dims is not None and len(dims) >= 2 and dims[1] is not None:
            return dims[1]
    return shape_of(inputs[0])[1]


def state_dtype(explicit: Any, state: Any) -> DType | Any:
    """`explicit`, or the type of all tensors of `state`. ValueError if they differ or there are none."""
    if explicit is not None:
        return explicit
    found = [part.dtype for part in nest.flatten(state)]
    if not found:
        raise ValueError(f"Unable to infer dtype from argument state={state}.")
    if any(dtype != found[0] for dtype in found):
        raise ValueError(
            "State has tensors of different inferred dtypes. Unable to infer a single representative dtype. "
            f"Dtypes received: {found}"
        )
    return found[0]


def copied_through(is_done: Tensor, old: Any, new: Any) -> Any:
    """`old` for the sequences that are done, `new` for the others; for scalars and TensorArrays always
    `new`."""

    def chosen(before: Any, after: Any) -> Any:
        if not isinstance(before, Tensor) or before.shape.ndims == 0:
            return after
        with get_default_graph().colocate_with(after):
            return where(is_done, before, after)

    return [chosen(before, after) for before, after in zip(old, new)]


class Lengths:
    """The lengths of a batch's sequences, an int32 vector, with the least and the greatest."""

    def __init__(self, lengths: Tensor) -> None:
        self._lengths, self._least, self.greatest = lengths, reduce_min(lengths), reduce_max(lengths)

    def step(self, time: Any, call_cell: Callable[[], Any], zero_output: Any, state: Any) -> tuple[Any, Any]:
        """Output and new state of the step `time`: the cell's, except for sequences that have ended."""
        is_done = time >= self._lengths
        output, new_state = call_cell()
        new = _flat_step(output, new_state, zero_output, state)
        old = nest.flatten(zero_output) + nest.flatten(state)
        return _packed_step(copied_through(is_done, old, new), zero_output, state)

    def conditional_step(
        self, time: int, call_cell: Callable[[], Any], zero_output: Any, state: Any
    ) -> tuple[Any, Any]:
        """As `step`, but the cell does not run when all sequences have ended, and results are used unselected
        until the first one has.
        """
        is_done = time >= self._lengths
        old = nest.flatten(zero_output) + nest.flatten(state)

        def some_go_on() -> list[Any]:
            output, new_state = call_cell()
            new = _flat_step(output, new_state, zero_output, state)
            chosen: list[Any] = cond(
                time < self._least, lambda: new, lambda: copied_through(is_done, old, new)
            )
            return chosen

        result = cond(time >= self.greatest, lambda: old, some_go_on)
        return _packed_step(nest.flatten(result), zero_output, state)


def _flat_step(output: Any, new_state: Any, zero_output: Any, state: Any) -> list[Any]:
    nest.assert_same_structure(zero_output, output)
    nest.assert_same_structure(state, new_state)
    return nest.flatten(output) + nest.flatten(new_state)


def _packed_step(flat: list[Any], zero_output: Any, state: Any) -> tuple[Any, Any]:
    outputs = len(nest.flatten(zero_output))
    for new, old in zip(flat, nest.flatten(zero_output) + nest.flatten(state)):
        if isinstance(new, Tensor) and isinstance(old, Tensor):
            new.set_shape(old.shape)
    return nest.pack_sequence_as(zero_output, flat[:outputs]), nest.pack_sequence_as(state, flat[outputs:])
