"""Sequences to sequences: lists of a tensor [batch, size] for each step."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["rnn_decoder", "rnn_seq2seq", "seq2seq_inputs", "sequence_classifier"]


def sequence_classifier(
    decoding: Any, labels: Any, sampling_decoding: Any = None, name: str | None = None
) -> tuple[Any, Any]:
    """The probabilities [batch, steps, classes] of a sequence, and its loss.

    Args:
        decoding: the logits [batch, classes] of each step, in training.
        labels: the labels [batch, classes] of each step, 1 for the right class.
        sampling_decoding: the logits that predictions are made from; None: `decoding`.

    The loss is the sum of the cross-entropy over steps and examples.
    """
    with tf.name_scope(name, "sequence_classifier", [decoding, labels]):
        predictions, losses = [], []
        for i, logits in enumerate(decoding):
            losses.append(
                tf.nn.softmax_cross_entropy_with_logits_v2(
                    labels=tf.stop_gradient(labels[i]), logits=logits, name=f"sequence_loss/xent_raw{i}"
                )
            )
            sampled = logits if sampling_decoding is None else sampling_decoding[i]
            predictions.append(tf.nn.softmax(sampled))
        total = tf.add_n(losses, name="sequence_loss/xent")
        loss = tf.reduce_sum(total, name="sequence_loss")
        return tf.stack(predictions, axis=1), loss


def seq2seq_inputs(
    x: Any, y: Any, input_length: int, output_length: int, sentinel: Any = None, name: str | None = None
) -> tuple[list[Any], list[Any], list[Any]]:
    """The inputs of encoder and decoder, and the decoder's targets.

    Args:
        x: [batch, input_length, size]; y: [batch, output_length, size].
        sentinel: what the decoder begins with and ends at, [batch, size]; None: zeros.

    Returns `input_length`, `output_length + 1` and `output_length + 1` tensors.
    """
    with tf.name_scope(name, "seq2seq_inputs", [x, y]):
        encoder = tf.unstack(x, num=input_length, axis=1)
        targets = tf.unstack(y, num=output_length, axis=1)
        if sentinel is None:
            sentinel = tf.zeros(tf.stack([tf.shape(x)[0], y.shape[2].value]))
            sentinel.set_shape(targets[0].shape)
        return encoder, [sentinel, *targets], [*targets, sentinel]


def rnn_decoder(
    decoder_inputs: Any, initial_state: Any, cell: Any, scope: Any = None
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """A decoder's outputs and states, in training and when each output is the next input.

    Args:
        decoder_inputs: the inputs [batch, size] of each step; initial_state: of the cell.
        scope: of the variables, "dnn_decoder" by default.

    Returns outputs, states, sampled outputs and sampled states. Both lists of states begin with
    `initial_state`. As in TensorFlow, the sampled ones have it a second time for the first step, whose output
    is that of training.
    """
    with tf.variable_scope(scope or "dnn_decoder"):
        states, sampling_states = [initial_state], [initial_state]
        outputs: list[Any] = []
        sampling_outputs: list[Any] = []
        with tf.name_scope("training"):
            for i, step_input in enumerate(decoder_inputs):
                if i > 0:
                    tf.get_variable_scope().reuse_variables()
                output, state = cell(step_input, states[-1])
                outputs.append(output)
                states.append(state)
        with tf.name_scope("sampling"):
            for i in range(len(outputs)):
                if i == 0:
                    sampling_outputs.append(outputs[0])
                    sampling_states.append(initial_state)
                    continue
                output, state = cell(sampling_outputs[-1], sampling_states[-1])
                sampling_outputs.append(output)
                sampling_states.append(state)
        return outputs, states, sampling_outputs, sampling_states


def rnn_seq2seq(
    encoder_inputs: Any,
    decoder_inputs: Any,
    encoder_cell: Any,
    decoder_cell: Any = None,
    dtype: Any = tf.float32,
    scope: Any = None,
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """An encoder, whose final state a decoder begins with; see `rnn_decoder`.

    `decoder_cell`: the encoder's if None, with its variables.
    """
    with tf.variable_scope(scope or "rnn_seq2seq"):
        _, state = tf.nn.static_rnn(encoder_cell, encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, decoder_cell or encoder_cell)
