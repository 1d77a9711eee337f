"""Decoders over lists of inputs that attend to an encoder's outputs (Vinyals et al. 2014, arXiv 1412.7449).

Variables of a decoder's scope: AttnW_i [1, 1, size, size] and AttnV_i [size] for each head,
Attention_i/kernel and bias (of the query), kernel and bias (of inputs and attention),
AttnOutputProjection/kernel and bias.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.legacy_seq2seq.seq2seq import _extract_argmax_and_embed, _fed
from flowstone.contrib.rnn.core_rnn_cell import EmbeddingWrapper, OutputProjectionWrapper, _Linear
from flowstone.framework.tensors import nest

__all__ = ["attention_decoder", "embedding_attention_decoder", "embedding_attention_seq2seq"]


class _Heads:
    """What is attended to, [batch, length, size], and for each head its features and vector."""

    def __init__(self, attention_states: Any, count: int, dtype: Any) -> None:
        known = attention_states.get_shape()[1:].as_list()
        self.size: int = known[1]
        self._dtype = dtype
        self._length = tf.shape(attention_states)[1] if known[0] is None else known[0]
        self._hidden = tf.reshape(attention_states, [-1, self._length, 1, self.size])
        self._features, self._vectors = [], []
        for i in range(count):
            kernel = tf.get_variable(f"AttnW_{i}", [1, 1, self.size, self.size], dtype=dtype)
            self._features.append(tf.nn.conv2d(self._hidden, kernel, [1, 1, 1, 1], "SAME"))
            self._vectors.append(tf.get_variable(f"AttnV_{i}", [self.size], dtype=dtype))

    def attend(self, query: Any) -> list[Any]:
        """For each head the weighted sum of what is attended to, [batch, size]."""
        found = []
        if nest.is_nested(query):
            parts = nest.flatten(query)
            for part in parts:
                if part.get_shape().ndims not in (None, 2):
                    raise ValueError(f"the parts of a query must be matrices, but {part} is not")
            query = tf.concat(parts, 1)
        for i, (features, vector) in enumerate(zip(self._features, self._vectors)):
            with tf.variable_scope(f"Attention_{i}"):
                y = tf.reshape(_Linear(query, self.size, True)(query), [-1, 1, 1, self.size])
                score = tf.reduce_sum(vector * tf.tanh(features + tf.cast(y, self._dtype)), [2, 3])
                weights = tf.cast(tf.nn.softmax(tf.cast(score, tf.float32)), self._dtype)
                total = tf.reduce_sum(tf.reshape(weights, [-1, self._length, 1, 1]) * self._hidden, [1, 2])
                found.append(tf.reshape(total, [-1, self.size]))
        return found


def _check(decoder_inputs: Any, num_heads: int, attention_states: Any) -> None:
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    if attention_states.get_shape()[2].value is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.get_shape()}")


def attention_decoder(
    decoder_inputs: list[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Callable[..., Any] | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """Outputs [batch, output_size] and last state of a decoder that attends to `attention_states`.

    Args:
        decoder_inputs: a list of [batch, depth].
        initial_state: the cell's.
        attention_states: [batch, length, size].
        cell: an RNNCell.
        output_size: default: the cell's.
        num_heads: how many times it attends at a step.
        loop_function: function of (previous output, step) that makes the next input.
        dtype: default: that of the scope. scope: default: "attention_decoder".
        initial_state_attention: whether the first step attends by the initial state, not to nothing.

    ValueError for no inputs, no heads, or sizes that are not known.
    """
    _check(decoder_inputs, num_heads, attention_states)
    output_size = cell.output_size if output_size is None else output_size
    with tf.variable_scope(scope or "attention_decoder", dtype=dtype) as entered:
        dtype = entered.dtype
        batch = tf.shape(decoder_inputs[0])[0]
        heads = _Heads(attention_states, num_heads, dtype)
        state, outputs, previous = initial_state, [], None
        size = tf.stack([batch, heads.size])
        attended = [tf.zeros(size, dtype=dtype) for _ in range(num_heads)]
        for each in attended:
            each.set_shape([None, heads.size])
        if initial_state_attention:
            attended = heads.attend(initial_state)
        for i, inputs in enumerate(decoder_inputs):
            if i > 0:
                tf.get_variable_scope().reuse_variables()
            if loop_function is not None and previous is not None:
                with tf.variable_scope("loop_function", reuse=True):
                    inputs = loop_function(previous, i)
            depth = inputs.get_shape().with_rank(2)[1].value
            if depth is None:
                raise ValueError(f"Could not infer input size from input: {inputs.name}")
            joined = [inputs, *attended]
            cell_output, state = cell(_Linear(joined, depth, True)(joined), state)
            if i == 0 and initial_state_attention:
                with tf.variable_scope(tf.get_variable_scope(), reuse=True):
                    attended = heads.attend(state)
            else:
                attended = heads.attend(state)
            with tf.variable_scope("AttnOutputProjection"):
                joined = [tf.cast(cell_output, dtype), *attended]
                output = _Linear(joined, output_size, True)(joined)
            previous = output
            outputs.append(output)
    return outputs, state


def embedding_attention_decoder(
    decoder_inputs: list[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """An `attention_decoder` that embeds its inputs, [batch] int32 each.

    See `attention_decoder` and `embedding_rnn_decoder`. ValueError for a projection of another shape.
    """
    if output_projection is not None:
        tf.convert_to_tensor(output_projection[1]).get_shape().assert_is_compatible_with([num_symbols])
    with tf.variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop_function: Callable[..., Any] | None = None
        if feed_previous:
            loop_function = _extract_argmax_and_embed(
                embedding, output_projection, update_embedding_for_previous
            )
        return attention_decoder(
            [tf.nn.embedding_lookup(embedding, each) for each in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            output_size=output_size,
            num_heads=num_heads,
            loop_function=loop_function,
            initial_state_attention=initial_state_attention,
        )


def embedding_attention_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """A model whose decoder attends to the encoder's outputs; both embed what they read, [batch] int32 each.

    Arguments are those of `embedding_rnn_seq2seq` and `attention_decoder`. Outputs are
    [batch, num_decoder_symbols], or with `output_projection` [batch, output size]. `scope`: default:
    "embedding_attention_seq2seq".
    """
    with tf.variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as entered:
        dtype = entered.dtype
        encoder = EmbeddingWrapper(
            copy.deepcopy(cell), embedding_classes=num_encoder_symbols, embedding_size=embedding_size
        )
        encoder_outputs, encoder_state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype)
        attention_states = tf.concat(
            [tf.reshape(each, [-1, 1, cell.output_size]) for each in encoder_outputs], 1
        )
        output_size = None
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
            output_size = num_decoder_symbols

        def decode(feeds: bool) -> tuple[list[Any], Any]:
            return embedding_attention_decoder(
                decoder_inputs,
                encoder_state,
                attention_states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads=num_heads,
                output_size=output_size,
                output_projection=output_projection,
                feed_previous=feeds,
                initial_state_attention=initial_state_attention,
            )

        return _fed(feed_previous, decode, encoder_state)  # type: ignore[no-any-return]
