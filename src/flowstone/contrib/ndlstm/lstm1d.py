"""LSTMs along sequences: tensors of shape [length, batch size, depth].

As one-dimensional layers in Breuel, "High Performance Text Recognition using a Hybrid Convolutional-LSTM
Implementation", 2017.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.names.alias_modules import alias_module

variables: Any = alias_module("tensorflow.contrib.framework.python.ops.variables")

__all__ = [
    "ndlstm_base",
    "ndlstm_base_dynamic",
    "ndlstm_base_unrolled",
    "sequence_softmax",
    "sequence_to_final",
]


def _sizes(inputs: Any) -> list[int]:
    sizes: list[int] = inputs.get_shape().as_list()
    if len(sizes) != 3 or None in sizes:
        raise ValueError(f"sequences have a known length, batch size and depth, not the shape {sizes}")
    return sizes


def _unrolled(inputs: Any, noutput: int, reverse: bool) -> list[Any]:
    length, batch_size, _ = _sizes(inputs)
    cell = tf.nn.rnn_cell.BasicLSTMCell(noutput, state_is_tuple=False)
    state = tf.zeros([batch_size, cell.state_size])
    outputs: list[Any] = [None] * length
    steps = tf.unstack(inputs)
    for step in reversed(range(length)) if reverse else range(length):
        outputs[step], state = cell(steps[step], state)
    return outputs


def ndlstm_base_unrolled(inputs: Any, noutput: int, scope: Any = None, reverse: bool = False) -> Any:
    """As `ndlstm_base`, with operations of its own for each step."""
    with tf.variable_scope(scope, "SeqLstmUnrolled", [inputs]):
        return tf.stack(_unrolled(inputs, noutput, reverse))


def ndlstm_base_dynamic(inputs: Any, noutput: int, scope: Any = None, reverse: bool = False) -> Any:
    """As `ndlstm_base`, in a loop."""
    with tf.variable_scope(scope, "SeqLstm", [inputs]):
        length, batch_size, _ = _sizes(inputs)
        cell = tf.nn.rnn_cell.BasicLSTMCell(noutput, state_is_tuple=False)
        lengths = tf.to_int64(tf.fill([batch_size], length))
        if reverse:
            inputs = tf.reverse_v2(inputs, [0])
        outputs, _ = tf.nn.dynamic_rnn(cell, inputs, lengths, time_major=True, dtype=tf.float32)
        return tf.reverse_v2(outputs, [0]) if reverse else outputs


def ndlstm_base(
    inputs: Any, noutput: int, scope: Any = None, reverse: bool = False, dynamic: bool = True
) -> Any:
    """An LSTM along sequences.

    Args:
        inputs: float32 tensor of shape [length, batch size, depth], all known.
        noutput: the cell's size.
        scope: a variable scope.
        reverse: whether the last element comes first.
        dynamic: whether the steps are a loop's.

    Returns a tensor of shape [length, batch size, noutput]. Raises ValueError for another shape.
    """
    if dynamic:
        return ndlstm_base_dynamic(inputs, noutput, scope=scope, reverse=reverse)
    return ndlstm_base_unrolled(inputs, noutput, scope=scope, reverse=reverse)


def sequence_to_final(
    inputs: Any, noutput: int, scope: Any = None, name: str | None = None, reverse: bool = False
) -> Any:
    """The output of an LSTM after its last step, of shape [batch size, noutput]."""
    with tf.variable_scope(scope, "SequenceToFinal", [inputs]):
        outputs = _unrolled(inputs, noutput, reverse)
        return tf.reshape(outputs[0 if reverse else -1], [_sizes(inputs)[1], noutput], name=name)


def sequence_softmax(
    inputs: Any, noutput: int, scope: Any = None, name: str | None = None, linear_name: str | None = None
) -> Any:
    """A softmax of a linear function of each element of sequences, with the same weights for all.

    Args:
        inputs: float32 tensor of shape [length, batch size, depth], all known.
        noutput: the number of classes.
        scope: a variable scope, of the model variables weights and biases.
        name: the result's name.
        linear_name: the name of the linear functions.

    Returns a tensor of shape [length, batch size, noutput].
    """
    _, _, ninputs = _sizes(inputs)
    steps = tf.unstack(inputs)
    with tf.variable_scope(scope, "SequenceSoftmax", [inputs]):
        initial = tf.truncated_normal([ninputs, noutput], stddev=0.1)
        weights = variables.model_variable("weights", initializer=initial)
        biases = variables.model_variable("biases", initializer=tf.constant(0.1, shape=[noutput]))
        outputs = []
        for step in steps:
            with tf.name_scope(scope, "SequenceSoftmaxStep", [step]):
                outputs.append(tf.nn.softmax(tf.nn.xw_plus_b(step, weights, biases, name=linear_name)))
        return tf.stack(outputs, name=name or "packed")
