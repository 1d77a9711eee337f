"""Layers of recurrences in both directions, one above the other."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "best_effort_input_batch_size",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "transpose_batch_time",
]


def transpose_batch_time(x: Any) -> Any:
    """x with its first two dimensions exchanged. ValueError for a static rank below 2."""
    dims = x.get_shape()
    if dims.ndims is not None and dims.ndims < 2:
        raise ValueError(f"Expected input tensor {x.name} to have rank at least 2, but saw shape: {dims}")
    result = tf.transpose(x, tf.concat(([1, 0], tf.range(2, tf.rank(x))), axis=0))
    if dims.ndims is not None:
        known = dims.as_list()
        result.set_shape([known[1], known[0], *known[2:]])
    return result


def best_effort_input_batch_size(flat_input: list[Any]) -> Any:
    """The batch size of inputs [time, batch, …]: an integer if one of them has it in its static shape."""
    for each in flat_input:
        dims = each.get_shape()
        if dims.ndims is not None and dims.ndims >= 2 and dims[1].value is not None:
            return dims[1].value
    return tf.shape(flat_input[0])[1]


def _check(cells_fw: Any, cells_bw: Any, states_fw: Any, states_bw: Any) -> None:
    for name, cells in (("fw", cells_fw), ("bw", cells_bw)):
        if not cells:
            raise ValueError(f"Must specify at least one {name} cell for BidirectionalRNN.")
        if not isinstance(cells, list):
            raise ValueError(f"cells_{name} must be a list of RNNCells (one per layer).")
    if len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
    for name, states, cells in (("fw", states_fw, cells_fw), ("bw", states_bw, cells_bw)):
        if states is not None and (not isinstance(states, list) or len(states) != len(cells)):
            raise ValueError(f"initial_states_{name} must be a list of state tensors (one per layer).")


def stack_bidirectional_rnn(
    cells_fw: list[Any],
    cells_bw: list[Any],
    inputs: list[Any],
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Layers of `static_bidirectional_rnn`: each reads both directions' outputs of the one below.

    Args:
        cells_fw, cells_bw: a cell for each layer.
        inputs: a list of [batch, depth].
        initial_states_fw, initial_states_bw: a state for each layer.
        dtype, sequence_length: see `tf.nn.static_bidirectional_rnn`. scope: of the variables.

    Returns the outputs, a list of [batch, fw + bw], and the last states forwards and backwards, a tuple each.
    ValueError for lists that do not fit.
    """
    _check(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw, states_bw, layer = [], [], inputs
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw)):
            with tf.variable_scope(f"cell_{i}") as cell_scope:
                layer, state_fw, state_bw = tf.nn.static_bidirectional_rnn(
                    cell_fw,
                    cell_bw,
                    layer,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    dtype=dtype,
                    scope=cell_scope,
                )
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return layer, tuple(states_fw), tuple(states_bw)


def stack_bidirectional_dynamic_rnn(
    cells_fw: list[Any],
    cells_bw: list[Any],
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Layers of `bidirectional_dynamic_rnn`: each reads both directions' outputs of the one below.

    Args:
        cells_fw, cells_bw: a cell for each layer.
        inputs: [batch, time, depth], or [time, batch, depth] if `time_major`.
        initial_states_fw, initial_states_bw: a state for each layer.
        dtype, sequence_length, parallel_iterations, swap_memory: see `tf.nn.bidirectional_dynamic_rnn`.
        scope: default: "stack_bidirectional_rnn".

    Returns the outputs [batch, time, fw + bw], and the last states forwards and backwards, a tuple each.
    ValueError for lists that do not fit.
    """
    _check(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw, states_bw, layer = [], [], inputs
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw)):
            with tf.variable_scope(f"cell_{i}"):
                outputs, (state_fw, state_bw) = tf.nn.bidirectional_dynamic_rnn(
                    cell_fw,
                    cell_bw,
                    layer,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    parallel_iterations=parallel_iterations,
                    dtype=dtype,
                    swap_memory=swap_memory,
                    time_major=time_major,
                )
                layer = tf.concat(outputs, 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return layer, tuple(states_fw), tuple(states_bw)
