"""Recurrences over a tensor of inputs, as a loop: the graph holds the cell once; a step runs it for as many
iterations as the longest sequence has time steps.

The steps' inputs are read from a TensorArray and the outputs written to another. `dynamic_rnn` is the usual
form; `bidirectional_dynamic_rnn` runs a second cell backwards. With `raw_rnn` (`raw_recurrent.py`) a function
decides the inputs, the outputs and the end.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors import nest
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.layers.cell_state import check_is_cell, static_shape, zeros_of_size
from flowstone.layers.recurrent_step import Lengths, batch_size_of, recurrence_scope, state_dtype
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.constants import range as range_of
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.rearranging import reverse, reverse_sequence, transpose
from flowstone.ops.arrays.shapes import rank
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.control.conditionals import Assert
from flowstone.ops.control.loops import while_loop
from flowstone.ops.lists.tensor_array import TensorArray
from flowstone.ops.numbers.arithmetic import maximum, minimum
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import equal
from flowstone.ops.numbers.reductions import reduce_all
from flowstone.ops.variables.scope_defaults import VariableScope
from flowstone.ops.variables.variable_scope import variable_scope

__all__ = ["bidirectional_dynamic_rnn", "dynamic_rnn"]


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: str | VariableScope | None = None,
) -> tuple[Any, Any]:
    """Runs `cell` over the time steps of `inputs`; returns its outputs and the last state.

    Args:
        cell: an `RNNCell`.
        inputs: [batch, time, …] ([time, batch, …] if `time_major`, which saves two transpositions), or a
            nested tuple of such tensors. All dimensions but batch and time must be known.
        sequence_length: [batch] integers; after its end, a sequence's outputs are zero and its state stays.
        initial_state: of the structure of the cell's `state_size`; default: zeros of type `dtype`.
        dtype: of the zero state and the outputs; needed without `initial_state`.
        parallel_iterations: how many iterations may run at once; default: 32. swap_memory: whether values
            that gradients need may be moved out of the device's memory.
        scope: of the variables; default: "rnn".

    Returns outputs [batch, time, …] (or [time, batch, …]) in the structure of the cell's `output_size`, and
    the state at each sequence's end. Raises TypeError if `cell` is no cell, ValueError for inputs of rank
    below 3, sizes that are not known or differ, and missing types. A `sequence_length` of a length other than
    the batch's is an InvalidArgumentError of the step.
    """
    check_is_cell("cell", cell)
    with recurrence_scope(scope):
        flat_inputs = nest.flatten(inputs)
        if not time_major:
            flat_inputs = [convert_to_tensor(tensor) for tensor in flat_inputs]
            flat_inputs = [_batch_and_time_exchanged(tensor) for tensor in flat_inputs]
        if sequence_length is not None:
            sequence_length = _length_vector(sequence_length)
        batch_size = batch_size_of(flat_inputs)
        if initial_state is None:
            if not dtype:
                raise ValueError("If no initial_state is provided, argument `dtype` must be specified")
            initial_state = _initial_state(cell, batch_size, dtype)
        if sequence_length is not None:
            with get_default_graph().control_dependencies(_size_checks(sequence_length, batch_size)):
                sequence_length = identity(sequence_length, name="CheckSeqLen")
        steps = _Steps(
            cell, nest.pack_sequence_as(inputs, flat_inputs), sequence_length, initial_state, dtype
        )
        outputs, state = steps.run(parallel_iterations or 32, swap_memory)
        if not time_major:
            outputs = nest.map_structure(_batch_and_time_exchanged, outputs)
        return outputs, state


def _initial_state(cell: Any, batch_size: Any, dtype: Any) -> Any:
    if getattr(cell, "get_initial_state", None) is not None:
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def _batch_and_time_exchanged(tensor: Tensor) -> Tensor:
    """The tensor with its first two dimensions exchanged. ValueError for a vector or scalar."""
    dims = tensor.dims
    if dims is not None and len(dims) < 2:
        raise ValueError(f"Input tensor should have rank >= 2. Received input={tensor} of rank {len(dims)}")
    result = transpose(tensor, concat(([1, 0], range_of(2, rank(tensor))), 0))
    result.set_shape(TensorShape(None if dims is None else [dims[1], dims[0], *dims[2:]]))
    return result


def _length_vector(sequence_length: Any) -> Tensor:
    vector = cast(sequence_length, dtypes.int32)
    if vector.shape.ndims not in (None, 1):
        raise ValueError(
            "Argument sequence_length must be a vector of length batch_size. "
            f"Received sequence_length={vector} of shape: {vector.shape}"
        )
    lengths: Tensor = identity(vector, name="sequence_length")
    return lengths


def _size_checks(lengths: Tensor, batch_size: Any) -> list[Any]:
    found, expected = shape_of(lengths), stack([batch_size])
    words = [f"Expected shape for Tensor {lengths.name} is ", expected, " but saw shape: ", found]
    return [Assert(reduce_all(equal(found, expected)), words)]


class _Steps:
    """The loop of `dynamic_rnn`: `inputs` [time, batch, …] are read, outputs written, step by step."""

    def __init__(self, cell: Any, inputs: Any, lengths: Tensor | None, state: Any, dtype: Any) -> None:
        self._cell, self._inputs, self._state = cell, inputs, state
        self._flat_inputs = nest.flatten(inputs)
        self._output_sizes = nest.flatten(cell.output_size)
        self._dtype = dtype
        self._time_steps = shape_of(self._flat_inputs[0])[0]
        self._batch_size = batch_size_of(self._flat_inputs)
        self._sizes = _known_sizes(self._flat_inputs)
        zeros = [zeros_of_size(size, self._batch_size, self._kind()) for size in self._output_sizes]
        self._zero_output = nest.pack_sequence_as(cell.output_size, zeros)
        self._lengths = None if lengths is None else Lengths(lengths)

    def _kind(self) -> Any:
        return state_dtype(self._dtype, self._state)

    def run(self, parallel_iterations: int, swap_memory: bool) -> tuple[Any, Any]:
        """The outputs [time, batch, …] and the last state."""
        start = constant(0, dtypes.int32, name="time")
        with get_default_graph().name_scope("dynamic_rnn") as base_name:
            self._base_name = base_name
        outputs = tuple(self._output_array(i, size) for i, size in enumerate(self._output_sizes))
        self._arrays = tuple(self._input_array(i, tensor) for i, tensor in enumerate(self._flat_inputs))
        self._arrays = tuple(array.unstack(x) for array, x in zip(self._arrays, self._flat_inputs))
        longest = self._time_steps if self._lengths is None else self._lengths.greatest
        # At least one step, so that there is an iteration for the gradient.
        bound = minimum(self._time_steps, maximum(1, longest))
        _, outputs, state = while_loop(
            lambda time, *_: time < bound,
            self._step,
            (start, outputs, self._state),
            parallel_iterations=parallel_iterations,
            maximum_iterations=self._time_steps,
            swap_memory=swap_memory,
        )
        return self._stacked(outputs), state

    def _array(self, name: str, element_shape: TensorShape, dtype: Any) -> TensorArray:
        return TensorArray(
            dtype=dtype,
            size=self._time_steps,
            element_shape=element_shape,
            tensor_array_name=self._base_name + name,
        )

    def _output_array(self, i: int, size: Any) -> TensorArray:
        return self._array(
            f"output_{i}", TensorShape([self._sizes[1]]).concatenate(_shape(size)), self._kind()
        )

    def _input_array(self, i: int, tensor: Tensor) -> TensorArray:
        return self._array(f"input_{i}", tensor.shape[1:], tensor.dtype)

    def _step(self, time: Tensor, outputs: tuple[TensorArray, ...], state: Any) -> tuple[Any, ...]:
        read = [array.read(time) for array in self._arrays]
        for tensor, whole in zip(read, self._flat_inputs):
            tensor.set_shape(whole.shape[1:])
        step_inputs = nest.pack_sequence_as(self._inputs, read)

        def call_cell() -> Any:
            return self._cell(step_inputs, state)

        if self._lengths is None:
            output, new_state = call_cell()
        else:
            output, new_state = self._lengths.step(time, call_cell, self._zero_output, state)
        flat_output = nest.flatten(output)
        written = tuple(array.write(time, value) for array, value in zip(outputs, flat_output))
        return time + 1, written, new_state

    def _stacked(self, arrays: tuple[TensorArray, ...]) -> Any:
        outputs = [array.stack() for array in arrays]
        for output, size in zip(outputs, self._output_sizes):
            output.set_shape(static_shape(self._sizes, size))
        return nest.pack_sequence_as(self._cell.output_size, outputs)


def _shape(size: Any) -> TensorShape:
    return TensorShape([size] if isinstance(size, int) else size)


def _known_sizes(inputs: list[Tensor]) -> list[int | None]:
    """The numbers of steps and of sequences, None if unknown. ValueError if inputs differ."""
    shapes = [tensor.shape.with_rank_at_least(3).as_list() for tensor in inputs]
    time_steps, batch_size = shapes[0][:2]
    for tensor, shape in zip(inputs, shapes):
        if None in shape[2:]:
            raise ValueError(
                "Input size (depth of inputs) must be accessible via shape inference, but saw value None for "
                f"input={tensor}."
            )
        if time_steps != shape[0]:
            raise ValueError(
                "Time steps is not the same for all the elements in the input in a batch. "
                f"Received time steps={shape[0]} for input={tensor}."
            )
        if batch_size != shape[1]:
            raise ValueError(
                "Batch_size is not the same for all the elements in the input. "
                f"Received batch size={shape[1]} for input={tensor}."
            )
    return [time_steps, batch_size]


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: str | VariableScope | None = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Runs `cell_fw` over `inputs` and `cell_bw` over them backwards, each sequence from its own end.

    Returns the pair of the outputs, forward and backward, both in the order of the inputs and not joined, and
    the pair of the last states. `scope`: default "bidirectional_rnn", with "fw" and "bw" inside. Other
    arguments and errors: as `dynamic_rnn`.
    """
    check_is_cell("cell_fw", cell_fw)
    check_is_cell("cell_bw", cell_bw)
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def reversed_in_time(tensor: Any) -> Tensor:
        if sequence_length is None:
            return reverse(tensor, axis=[time_axis])
        return reverse_sequence(tensor, sequence_length, seq_axis=time_axis, batch_axis=batch_axis)

    common = {
        "sequence_length": sequence_length,
        "dtype": dtype,
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "time_major": time_major,
    }
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            outputs_fw, state_fw = dynamic_rnn(
                cell_fw, inputs, initial_state=initial_state_fw, scope=forward, **common
            )
        with variable_scope("bw") as backward:
            backwards = nest.map_structure(reversed_in_time, inputs)
            outputs_bw, state_bw = dynamic_rnn(
                cell_bw, backwards, initial_state=initial_state_bw, scope=backward, **common
            )
    outputs_bw = nest.map_structure(reversed_in_time, outputs_bw)
    return (outputs_fw, outputs_bw), (state_fw, state_bw)
