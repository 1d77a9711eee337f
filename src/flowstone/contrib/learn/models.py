"""Models as functions from examples and labels to predictions and loss.

Variables are ``linear_regression/weights`` and ``bias``, ``logistic_regression/weights`` and ``bias``, and
those of the cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.ops import losses_ops

__all__ = [
    "bidirectional_rnn",
    "get_rnn_model",
    "linear_regression",
    "linear_regression_zero_init",
    "logistic_regression",
    "logistic_regression_zero_init",
    "losses_ops",
]


def linear_regression_zero_init(x: Any, y: Any) -> tuple[Any, Any]:
    """`linear_regression` that begins with zeros."""
    return linear_regression(x, y, init_mean=0.0, init_stddev=0.0)


def logistic_regression_zero_init(x: Any, y: Any) -> tuple[Any, Any]:
    """`logistic_regression` that begins with zeros."""
    return logistic_regression(x, y, init_mean=0.0, init_stddev=0.0)


def _layer(scope_name: str, x: Any, y: Any, outputs: int, mean: Any, stddev: float, dtype: Any) -> Any:
    """The weights and biases of a linear layer, with summaries of them, the examples and labels."""
    tf.summary.histogram(f"{scope_name}.x", x)
    tf.summary.histogram(f"{scope_name}.y", y)
    initializer = None if mean is None else tf.random_normal_initializer(mean, stddev, dtype=dtype)
    size = x.shape[1].value
    weights = tf.get_variable("weights", [size, outputs], initializer=initializer, dtype=dtype)
    bias = tf.get_variable("bias", [outputs], initializer=initializer, dtype=dtype)
    tf.summary.histogram(f"{scope_name}.weights", weights)
    tf.summary.histogram(f"{scope_name}.bias", bias)
    return weights, bias


def linear_regression(
    x: Any, y: Any, init_mean: float | None = None, init_stddev: float = 1.0
) -> tuple[Any, Any]:
    """The predictions of a linear model, and their mean squared error.

    Args:
        x: [batch, features]; y: [batch] or [batch, outputs].
        init_mean, init_stddev: of the normal distribution that variables begin with; by default they begin
            as `tf.get_variable` has it.
    """
    with tf.variable_scope("linear_regression"):
        outputs = 1 if len(y.shape) == 1 else y.shape[1].value
        layer = _layer("linear_regression", x, y, outputs, init_mean, init_stddev, x.dtype)
        return losses_ops.mean_squared_error_regressor(x, y, *layer)


def logistic_regression(
    x: Any,
    y: Any,
    class_weight: Any = None,
    init_mean: float | None = None,
    init_stddev: float = 1.0,
) -> tuple[Any, Any]:
    """The probabilities of classes by a linear model, and their cross-entropy.

    Args:
        x: [batch, features]; y: [batch, classes], 1 for the right class.
        class_weight: factors of the logits [classes]; by default the tensor `class_weight:0` of the graph, if
            it has one.
        init_mean, init_stddev: see `linear_regression`.
    """
    with tf.variable_scope("logistic_regression"):
        layer = _layer("logistic_regression", x, y, y.shape[1].value, init_mean, init_stddev, x.dtype)
        if class_weight is None:
            with suppress(KeyError):
                class_weight = tf.get_default_graph().get_tensor_by_name("class_weight:0")
        weights, bias = layer
        return losses_ops.softmax_classifier(x, y, weights, bias, class_weight)


def _reversed_sequence(sequence: Sequence[Any], lengths: Any) -> list[Any]:
    """The steps in reverse order, of each example those within its length."""
    if lengths is None:
        return list(reversed(sequence))
    turned = tf.reverse_sequence(tf.stack(sequence), tf.to_int64(lengths), seq_axis=0, batch_axis=1)
    return list(tf.unstack(turned, num=len(sequence)))


def bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: str | None = None,
) -> tuple[list[Any], Any]:
    """The outputs [batch, both sizes] of each step by two cells in both directions, and both final states
    [batch, both sizes].

    Args:
        cell_fw, cell_bw: the cells, whose states are single tensors.
        inputs: the input [batch, size] of each step.
        initial_state_fw, initial_state_bw: the states to begin with; zeros of `dtype` by default.
        sequence_length: [batch]; None: all steps.
        scope: the variables are in ``SCOPE_FW`` and ``SCOPE_BW``, "BiRNN" by default.

    Raises TypeError for other cells, ValueError without inputs.
    """
    for cell in (cell_fw, cell_bw):
        if not isinstance(cell, tf.nn.rnn_cell.RNNCell):
            raise TypeError("cell_fw and cell_bw must be instances of RNNCell")
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("inputs must be a list")
    if not inputs:
        raise ValueError("inputs must not be empty")
    name = scope or "BiRNN"
    with tf.variable_scope(f"{name}_FW"):
        forward, state_fw = tf.nn.static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length)
    with tf.variable_scope(f"{name}_BW"):
        turned = _reversed_sequence(inputs, sequence_length)
        backward, state_bw = tf.nn.static_rnn(cell_bw, turned, initial_state_bw, dtype, sequence_length)
    pairs = zip(forward, _reversed_sequence(backward, sequence_length), strict=True)
    return [tf.concat(pair, 1) for pair in pairs], tf.concat([state_fw, state_bw], 1)


_CELLS: dict[str, Callable[..., Any]] = {
    "rnn": tf.nn.rnn_cell.BasicRNNCell,
    "gru": tf.nn.rnn_cell.GRUCell,
    "lstm": partial(tf.nn.rnn_cell.BasicLSTMCell, state_is_tuple=False),
}


def get_rnn_model(
    rnn_size: int,
    cell_type: str,
    num_layers: int,
    input_op_fn: Callable[[Any], Any],
    bidirectional: bool,
    target_predictor_fn: Callable[[Any, Any], Any],
    sequence_length: Any,
    initial_state: Any,
    attn_length: int | None,
    attn_size: int | None,
    attn_vec_size: int | None,
) -> Callable[[Any, Any], Any]:
    """A function from examples and labels to what `target_predictor_fn` makes of a recurrent network's state.

    Args:
        rnn_size: the units of a layer; num_layers: how many there are.
        cell_type: "rnn", "gru" or "lstm", else the function raises ValueError.
        input_op_fn: from the examples to the input [batch, size] of each step, a list.
        bidirectional: whether there is a second network for the other direction.
        target_predictor_fn: from the final state [batch, size] and the labels to predictions and loss.
        sequence_length: [batch], or None; initial_state: the state to begin with, or None for zeros.
        attn_length, attn_size, attn_vec_size: of an attention window over past states; None: without.
    """

    def network() -> Any:
        kind = _CELLS[cell_type]
        cells = [kind(rnn_size) for _ in range(num_layers)]
        if attn_length is not None:
            cells = [
                tf.contrib.rnn.AttentionCellWrapper(
                    cell, attn_length, attn_size=attn_size, attn_vec_size=attn_vec_size, state_is_tuple=False
                )
                for cell in cells
            ]
        return tf.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=False)

    def rnn_estimator(x: Any, y: Any) -> Any:
        inputs = input_op_fn(x)
        if cell_type not in _CELLS:
            raise ValueError(f"cell_type {cell_type} is not supported. ")
        if bidirectional:
            _, encoding = bidirectional_rnn(
                network(),
                network(),
                inputs,
                initial_state,
                initial_state,
                dtype=tf.float32,
                sequence_length=sequence_length,
            )
        else:
            _, encoding = tf.nn.static_rnn(
                network(),
                inputs,
                dtype=tf.float32,
                sequence_length=sequence_length,
                initial_state=initial_state,
            )
        return target_predictor_fn(encoding, y)

    return rnn_estimator
