"""Encoders and decoders over lists of inputs, without attention (Sutskever et al. 2014, arXiv 1409.3215).

A `loop_function` of (previous output, step) makes a decoder's next input; without one it reads
`decoder_inputs`. `feed_previous` of the embedding models may be a bool or a bool scalar tensor: whether the
decoder reads the embedding of its own last output's greatest element. `output_projection` is a pair
(weights [size, symbols], biases [symbols]) for outputs that are to stay unprojected, as sampled losses want
them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.legacy_seq2seq.losses import (
    model_with_buckets,
    sequence_loss,
    sequence_loss_by_example,
)
from flowstone.contrib.rnn.core_rnn_cell import EmbeddingWrapper, OutputProjectionWrapper
from flowstone.framework.tensors import nest

__all__ = [
    "basic_rnn_seq2seq",
    "embedding_rnn_decoder",
    "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq",
    "model_with_buckets",
    "one2many_rnn_seq2seq",
    "rnn_decoder",
    "sequence_loss",
    "sequence_loss_by_example",
    "tied_rnn_seq2seq",
]


def _extract_argmax_and_embed(
    embedding: Any, output_projection: Any = None, update_embedding: bool = True
) -> Callable[[Any, Any], Any]:
    """The loop function that embeds the greatest element of the output; gradients reach the embedding or
    not."""

    def loop_function(prev: Any, _: Any) -> Any:
        if output_projection is not None:
            prev = tf.nn.xw_plus_b(prev, output_projection[0], output_projection[1])
        found = tf.nn.embedding_lookup(embedding, tf.argmax(prev, 1))
        return found if update_embedding else tf.stop_gradient(found)

    return loop_function


def rnn_decoder(
    decoder_inputs: list[Any],
    initial_state: Any,
    cell: Any,
    loop_function: Callable[..., Any] | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Outputs and last state of `cell` over the list `decoder_inputs`, from `initial_state`.

    With a `loop_function` only the first input counts. `scope`: default: "rnn_decoder".
    """
    with tf.variable_scope(scope or "rnn_decoder"):
        state, outputs, previous = initial_state, [], None
        for i, inputs in enumerate(decoder_inputs):
            if loop_function is not None and previous is not None:
                with tf.variable_scope("loop_function", reuse=True):
                    inputs = loop_function(previous, i)
            if i > 0:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(inputs, state)
            outputs.append(output)
            previous = output
    return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: list[Any], decoder_inputs: list[Any], cell: Any, dtype: Any = None, scope: Any = None
) -> tuple[list[Any], Any]:
    """A decoder that begins with the last state of an encoder; both are `cell`, with variables of their own.

    `dtype`: of the encoder's first state, default: float32. `scope`: default: "basic_rnn_seq2seq".
    """
    with tf.variable_scope(scope or "basic_rnn_seq2seq"):
        encoder = copy.deepcopy(cell)
        _, state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype or tf.float32)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    cell: Any,
    loop_function: Callable[..., Any] | None = None,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """As `basic_rnn_seq2seq`, with the same variables in encoder and decoder."""
    with tf.variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = tf.nn.static_rnn(cell, encoder_inputs, dtype=dtype or tf.float32, scope=scope)
        tf.get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function=loop_function, scope=scope)


def embedding_rnn_decoder(
    decoder_inputs: list[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """A decoder that embeds its inputs, [batch] int32 each.

    Args:
        decoder_inputs, initial_state, cell, output_projection, feed_previous, scope: see the module.
        num_symbols, embedding_size: the shape of the variable ``embedding``.
        update_embedding_for_previous: whether gradients reach the embedding through fed-back outputs.

    ValueError for an output projection of another shape.
    """
    with tf.variable_scope(scope or "embedding_rnn_decoder") as entered:
        if output_projection is not None:
            dtype = entered.dtype
            weights = tf.convert_to_tensor(output_projection[0], dtype=dtype)
            weights.get_shape().assert_is_compatible_with([None, num_symbols])
            biases = tf.convert_to_tensor(output_projection[1], dtype=dtype)
            biases.get_shape().assert_is_compatible_with([num_symbols])
        embedding = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop_function = None
        if feed_previous:
            loop_function = _extract_argmax_and_embed(
                embedding, output_projection, update_embedding_for_previous
            )
        embedded = [tf.nn.embedding_lookup(embedding, each) for each in decoder_inputs]
        return rnn_decoder(embedded, initial_state, cell, loop_function=loop_function)


def _fed(feed_previous: Any, decode: Callable[[bool], tuple[list[Any], Any]], state: Any) -> Any:
    """Outputs and state that `decode(feed_previous)` gives, for a bool or a bool tensor."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous)

    def decoded(feeds: bool) -> list[Any]:
        with tf.variable_scope(tf.get_variable_scope(), reuse=None if feeds else True):
            outputs, last = decode(feeds)
            return outputs + nest.flatten(last)

    found = tf.cond(feed_previous, lambda: decoded(True), lambda: decoded(False))
    count = len(nest.flatten(state))
    outputs, last = list(found[: len(found) - count]), list(found[len(found) - count :])
    return outputs, nest.pack_sequence_as(structure=state, flat_sequence=last)


def embedding_rnn_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """A model that embeds what encoder and decoder read, [batch] int32 each; see the module.

    Outputs are [batch, num_decoder_symbols], or with `output_projection` [batch, output size].
    """
    with tf.variable_scope(scope or "embedding_rnn_seq2seq") as entered:
        if dtype is not None:
            entered.set_dtype(dtype)
        dtype = entered.dtype
        encoder = EmbeddingWrapper(
            copy.deepcopy(cell), embedding_classes=num_encoder_symbols, embedding_size=embedding_size
        )
        _, encoder_state = tf.nn.static_rnn(encoder, encoder_inputs, dtype=dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(feeds: bool) -> tuple[list[Any], Any]:
            return embedding_rnn_decoder(
                decoder_inputs,
                encoder_state,
                cell,
                num_decoder_symbols,
                embedding_size,
                output_projection=output_projection,
                feed_previous=feeds,
            )

        return _fed(feed_previous, decode, encoder_state)  # type: ignore[no-any-return]


def embedding_tied_rnn_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs: list[Any],
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """As `embedding_rnn_seq2seq`, with one embedding and one cell's variables for encoder and decoder.

    `num_decoder_symbols`: the number of output symbols if it is not `num_symbols`.
    """
    with tf.variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as entered:
        dtype = entered.dtype
        symbols = num_symbols if num_decoder_symbols is None else num_decoder_symbols
        if output_projection is not None:
            weights = tf.convert_to_tensor(output_projection[0], dtype=dtype)
            weights.get_shape().assert_is_compatible_with([None, symbols])
            biases = tf.convert_to_tensor(output_projection[1], dtype=dtype)
            biases.get_shape().assert_is_compatible_with([symbols])
        embedding = tf.get_variable("embedding", [num_symbols, embedding_size], dtype=dtype)
        embedded_encoder = [tf.nn.embedding_lookup(embedding, each) for each in encoder_inputs]
        embedded_decoder = [tf.nn.embedding_lookup(embedding, each) for each in decoder_inputs]
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, symbols)
        embeds = _extract_argmax_and_embed(embedding, output_projection, True)

        def decode(feeds: bool) -> tuple[list[Any], Any]:
            return tied_rnn_seq2seq(
                embedded_encoder, embedded_decoder, cell, loop_function=embeds if feeds else None, dtype=dtype
            )

        if isinstance(feed_previous, bool):
            return decode(feed_previous)
        return _fed(feed_previous, decode, cell.zero_state(1, dtype))  # type: ignore[no-any-return]


def one2many_rnn_seq2seq(
    encoder_inputs: list[Any],
    decoder_inputs_dict: dict[str, list[Any]],
    enc_cell: Any,
    dec_cells_dict: dict[str, Any],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: dict[str, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """One encoder and several decoders, by name (Luong et al. 2015, arXiv 1511.06114).

    Returns dictionaries of outputs and states. `scope`: default: "one2many_rnn_seq2seq".
    """
    outputs, states = {}, {}
    with tf.variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as entered:
        dtype = entered.dtype
        enc_cell = EmbeddingWrapper(
            enc_cell, embedding_classes=num_encoder_symbols, embedding_size=embedding_size
        )
        _, encoder_state = tf.nn.static_rnn(enc_cell, encoder_inputs, dtype=dtype)
        for name, decoder_inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with tf.variable_scope("one2many_decoder_" + str(name)):
                cell = OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def decode(
                    feeds: bool, cell: Any = cell, inputs: Any = decoder_inputs, n: int = symbols
                ) -> Any:
                    return embedding_rnn_decoder(
                        inputs, encoder_state, cell, n, embedding_size, feed_previous=feeds
                    )

                outputs[name], states[name] = _fed(feed_previous, decode, encoder_state)
    return outputs, states
