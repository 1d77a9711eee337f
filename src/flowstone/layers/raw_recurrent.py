"""`raw_rnn`: a recurrence in which a function decides the inputs, the outputs and the end, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.tensors import nest
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.layers.cell_state import check_is_cell, zeros_of_size
from flowstone.layers.recurrent_step import copied_through, recurrence_scope
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.control.loops import while_loop
from flowstone.ops.lists.tensor_array import TensorArray
from flowstone.ops.numbers.comparisons import logical_not, logical_or
from flowstone.ops.numbers.reductions import reduce_all
from flowstone.ops.variables.scope_defaults import VariableScope

__all__ = ["raw_rnn"]


def raw_rnn(
    cell: Any,
    loop_fn: Callable[[Any, Any, Any, Any], tuple[Any, Any, Any, Any, Any]],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: str | VariableScope | None = None,
) -> tuple[Any, Any, Any]:
    """Runs `cell` until all sequences are finished; `loop_fn` decides the inputs and outputs.

    ``loop_fn(time, cell_output, cell_state, loop_state)`` is called once before the loop, with time 0 and
    None for the others, and once in the loop, with the results of the step before `time`. It returns

    - finished: bool [batch], which sequences have ended,
    - next_input: [batch, depth] or a nested structure,
    - next_state: the cell's state for the next step (at first: the initial one),
    - emit_output: the output of the step; at first an example for one sequence, without the batch dimension,
      or None if it is like the cell's output,
    - next_loop_state: values for the next call, as tensors and TensorArrays; None for none.

    A finished sequence keeps its state, and its outputs are zeros.

    Returns TensorArrays of the outputs, in their structure; the last state; and the last loop state. Raises
    TypeError if `cell` is no cell or `loop_fn` no function, ValueError if a structure differs from the one
    before.
    """
    check_is_cell("cell", cell)
    if not callable(loop_fn):
        raise TypeError(f"Argument `loop_fn` must be a callable. Received: {loop_fn}.")
    with recurrence_scope(scope):
        time = constant(0, dtypes.int32)
        finished, first_input, state, emitted, loop_state = loop_fn(time, None, None, None)
        has_loop_state = loop_state is not None
        if not has_loop_state:
            loop_state = constant(0, dtypes.int32)
        fixed_batch_size, batch_size = _batch_size(nest.flatten(first_input))
        nest.assert_same_structure(state, cell.state_size)
        state = nest.map_structure(convert_to_tensor, state)
        emitted, sizes, kinds = _emission(emitted, cell.output_size, nest.flatten(state)[0].dtype)
        arrays = [
            TensorArray(
                dtype=kind,
                size=0,
                dynamic_size=True,
                element_shape=TensorShape([fixed_batch_size]).concatenate(_known_shape(size)),
                name=f"rnn_output_{i}",
            )
            for i, (size, kind) in enumerate(zip(sizes, kinds))
        ]
        zeros = [zeros_of_size(size, batch_size, kind) for size, kind in zip(sizes, kinds)]
        round_ = _Round(cell, loop_fn, nest.pack_sequence_as(emitted, zeros))
        outputs, state, loop_state = while_loop(
            lambda time, finished, *_: logical_not(reduce_all(finished)),
            round_.step,
            [time, finished, first_input, nest.pack_sequence_as(emitted, arrays), state, loop_state],
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )[-3:]
        return outputs, state, loop_state if has_loop_state else None


class _Round:
    """The loop's body: the cell, then the user's function, then zeros for sequences that are finished."""

    def __init__(self, cell: Any, loop_fn: Callable[..., Any], zero_emission: Any) -> None:
        self._cell, self._loop_fn, self._zero_emission = cell, loop_fn, zero_emission

    def step(
        self, time: Tensor, finished: Tensor, inputs: Any, arrays: Any, state: Any, loop_state: Any
    ) -> tuple[Any, ...]:
        output, cell_state = self._cell(inputs, state)
        nest.assert_same_structure(state, cell_state)
        nest.assert_same_structure(self._cell.output_size, output)
        next_time = time + 1
        next_finished, next_inputs, next_state, emitted, next_loop_state = self._loop_fn(
            next_time, output, cell_state, loop_state
        )
        nest.assert_same_structure(state, next_state)
        nest.assert_same_structure(inputs, next_inputs)
        nest.assert_same_structure(arrays, emitted)
        emitted = _copied(finished, self._zero_emission, emitted)
        next_state = _copied(finished, state, next_state)
        arrays = nest.map_structure(lambda array, value: array.write(time, value), arrays, emitted)
        finished = logical_or(finished, next_finished)
        following = loop_state if next_loop_state is None else next_loop_state
        return next_time, finished, next_inputs, arrays, next_state, following


def _copied(is_done: Tensor, old: Any, new: Any) -> Any:
    return nest.pack_sequence_as(old, copied_through(is_done, nest.flatten(old), nest.flatten(new)))


def _batch_size(inputs: list[Tensor]) -> tuple[int | None, Any]:
    """The batch size if it is known, else None; and the batch size as a number or tensor."""
    known = inputs[0].shape[0]
    for tensor in inputs[1:]:
        known = known.merge_with(tensor.shape[0])
    return known.value, shape_of(inputs[0])[0] if known.value is None else known.value


def _emission(emitted: Any, output_size: Any, dtype: Any) -> tuple[Any, list[Any], list[Any]]:
    """A step's output: its structure, and the sizes and types of its leaves."""
    if emitted is None:
        sizes = nest.flatten(output_size)
        return output_size, sizes, [dtype] * len(sizes)
    leaves = nest.flatten(emitted)
    sizes = [x.shape if x.shape.is_fully_defined() else shape_of(x) for x in leaves]
    return emitted, sizes, [x.dtype for x in leaves]


def _known_shape(size: Any) -> TensorShape:
    if isinstance(size, Tensor):
        return TensorShape(None)
    return TensorShape([size] if isinstance(size, int) else size)
