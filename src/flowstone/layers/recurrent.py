"""Recurrences over a list of inputs, one for each step: the graph holds a copy of the cell for every step.

`static_rnn` feeds a cell with the inputs in turn; `static_bidirectional_rnn` runs a second one backwards;
`static_state_saving_rnn` reads the state from a store and writes it back. For lengths that are known only in
a step, and for long sequences, see `dynamic_recurrent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.tensors import nest
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.layers.cell_state import check_is_cell, static_shape, zeros_of_size
from flowstone.layers.recurrent_step import Lengths, recurrence_scope, state_dtype
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.packing import stack, unstack
from flowstone.ops.arrays.rearranging import reverse_sequence
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.numbers.casts import cast
from flowstone.ops.variables.scope_defaults import VariableScope
from flowstone.ops.variables.variable_scope import variable_scope

__all__ = ["static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn"]


def static_rnn(
    cell: Any,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: str | VariableScope | None = None,
) -> tuple[list[Any], Any]:
    """Runs `cell` over the list `inputs`; returns the list of its outputs and the last state.

    Args:
        cell: an `RNNCell`.
        inputs: a tensor [batch, depth], or a nested tuple of tensors, for every step.
        initial_state: of the structure of the cell's `state_size`; default: zeros of type `dtype`.
        dtype: of the zero state and of the outputs after the end; needed without `initial_state`.
        sequence_length: [batch] integers; after its end, a sequence's outputs are zero and its state stays.
            Steps that no sequence reaches are not computed.
        scope: of the variables; default: "rnn".

    Raises TypeError if `cell` is no cell or `inputs` no list, ValueError for no inputs, missing types, batch
    sizes that differ, and sizes of inputs that are not known.
    """
    check_is_cell("cell", cell)
    _check_inputs(inputs)
    with recurrence_scope(scope) as entered:
        fixed_batch_size, batch_size = _batch_size(inputs)
        state = initial_state
        if state is None:
            if dtype is None:
                raise ValueError("If no initial_state is provided, argument `dtype` must be specified")
            state = cell.zero_state(batch_size, dtype)
        lengths, zero_output = None, None
        if sequence_length is not None:
            vector = _length_vector(sequence_length, batch_size)
            kind = state_dtype(dtype, state)
            zero_output = _zero_output(cell.output_size, batch_size, fixed_batch_size, kind)
            lengths = Lengths(cast(vector, dtypes.int32))
        outputs = []
        for time, step_inputs in enumerate(inputs):
            if time > 0:
                entered.reuse_variables()
            if lengths is None:
                output, state = cell(step_inputs, state)
            else:
                output, state = lengths.conditional_step(
                    time, _called(cell, step_inputs, state), zero_output, state
                )
            outputs.append(output)
        return outputs, state


def _called(cell: Any, inputs: Any, state: Any) -> Any:
    return lambda: cell(inputs, state)


def _check_inputs(inputs: Any) -> None:
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"Argument `inputs` must be a sequence. Received: {inputs}")
    if not inputs:
        raise ValueError("Argument `inputs` must not be empty.")


def _batch_size(inputs: Any) -> tuple[int | None, Any]:
    """The batch size if it is known, else None; and the batch size as a number or tensor."""
    first = nest.flatten(inputs)[0]
    least_rank = 1 if first.shape.ndims == 1 else 2
    fixed = first.shape.with_rank_at_least(least_rank)[0]
    if least_rank == 2:
        for tensor in nest.flatten(inputs):
            shape = tensor.shape.with_rank_at_least(2)
            fixed.assert_is_compatible_with(shape[0])
            for i, size in enumerate(shape.as_list()[1:]):
                if size is None:
                    raise ValueError(
                        f"Input size (dimension {i} of input {tensor}) must be accessible via shape "
                        "inference, but saw value None."
                    )
    return fixed.value, fixed.value or shape_of(first)[0]


def _length_vector(sequence_length: Any, batch_size: Any) -> Tensor:
    vector = convert_to_tensor(sequence_length, name="sequence_length")
    if vector.shape.ndims not in (None, 1):
        raise ValueError(
            f"Argument `sequence_length` must be a vector of length {batch_size}. "
            f"Received sequence_length={vector}."
        )
    return vector


def _zero_output(output_size: Any, batch_size: Any, fixed_batch_size: int | None, dtype: Any) -> Any:
    def of_size(size: Any) -> Tensor:
        zeros = zeros_of_size(size, batch_size, dtype)
        zeros.set_shape(static_shape(fixed_batch_size, size))
        return zeros

    return nest.map_structure(of_size, output_size)


def static_state_saving_rnn(
    cell: Any,
    inputs: Sequence[Any],
    state_saver: Any,
    state_name: Any,
    sequence_length: Any = None,
    scope: str | VariableScope | None = None,
) -> tuple[list[Any], Any]:
    """As `static_rnn`, from a state that `state_saver` keeps between steps.

    Args:
        state_saver: an object with the methods ``state(name)``, which returns a tensor [batch, size], and
            ``save_state(name, tensor)``, which returns an operation.
        state_name: the name of the state, or a nested structure of names like the cell's `state_size`.

    The last output and the state are available only after the state has been saved. ValueError if the
    structures of names and sizes differ.
    """
    sizes, names = nest.flatten(cell.state_size), nest.flatten(state_name)
    if nest.is_nested(cell.state_size) != nest.is_nested(state_name):
        raise ValueError(
            "Argument `state_name` should be the same type as `cell.state_size`. "
            f"Received: state_name={state_name}, cell.state_size={cell.state_size}."
        )
    if len(names) != len(sizes):
        raise ValueError(
            "Number of elements in argument `state_name` and `cell.state_size` are different. "
            f"Received: state_name={state_name}, cell.state_size={cell.state_size}."
        )
    initial_state = nest.pack_sequence_as(cell.state_size, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(
        cell, inputs, initial_state=initial_state, sequence_length=sequence_length, scope=scope
    )
    saved = [state_saver.save_state(name, part) for name, part in zip(names, nest.flatten(state))]
    with get_default_graph().control_dependencies(saved):
        outputs[-1] = nest.map_structure(identity, outputs[-1])
        return outputs, nest.map_structure(identity, state)


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: str | VariableScope | None = None,
) -> tuple[list[Any], Any, Any]:
    """Runs `cell_fw` over `inputs` and `cell_bw` over them backwards, each sequence from its own end.

    Returns the list of outputs, those of both cells joined along dimension 1 (the backward one's in the
    order of the inputs), and the last states of the forward and the backward cell. `scope`: default
    "bidirectional_rnn", with "fw" and "bw" inside. Other arguments and errors: as `static_rnn`.
    """
    check_is_cell("cell_fw", cell_fw)
    check_is_cell("cell_bw", cell_bw)
    _check_inputs(inputs)
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            outputs_fw, state_fw = static_rnn(
                cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope=forward
            )
        with variable_scope("bw") as backward:
            backwards = _reversed(inputs, sequence_length)
            outputs_bw, state_bw = static_rnn(
                cell_bw, backwards, initial_state_bw, dtype, sequence_length, scope=backward
            )
    outputs_bw = _reversed(outputs_bw, sequence_length)
    pairs = zip(nest.flatten(outputs_fw), nest.flatten(outputs_bw))
    joined = [concat([ahead, back], 1) for ahead, back in pairs]
    return nest.pack_sequence_as(outputs_fw, joined), state_fw, state_bw


def _reversed(steps: Sequence[Any], lengths: Any) -> list[Any]:
    """The steps in reverse order, each sequence within its length."""
    if lengths is None:
        return list(reversed(steps))
    by_leaf = [
        _reversed_leaf(list(leaf_steps), lengths)
        for leaf_steps in zip(*(nest.flatten(step) for step in steps))
    ]
    return [nest.pack_sequence_as(steps[0], list(leaves)) for leaves in zip(*by_leaf)]


def _reversed_leaf(steps: list[Tensor], lengths: Any) -> list[Tensor]:
    shape = TensorShape(None)
    for step in steps:
        shape = shape.merge_with(step.shape)
        step.set_shape(shape)
    in_reverse = unstack(reverse_sequence(stack(steps), lengths, seq_axis=0, batch_axis=1))
    for step in in_reverse:
        step.set_shape(shape)
    return in_reverse
