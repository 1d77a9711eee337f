"""Programs that decode: training, attention, greedy search and beam search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

B, T, D, U, V = 3, 4, 5, 6, 7
_random = np.random.RandomState(0)
MEMORY, INPUTS, TABLE, LOGITS = (
    _random.randn(*shape).astype("f") for shape in ((B, 5, D), (B, T, D), (V, D), (B, T, V))
)
LENGTHS = np.array([4, 2, 3], "i")


def mechanism(tf: Any, kind: str, copies: int = 1, lengths: Any = (5, 3, 2), **arguments: Any) -> Any:
    memory, of_memory = tf.constant(MEMORY), tf.constant(lengths)
    if copies > 1:
        memory, of_memory = tf.contrib.seq2seq.tile_batch((memory, of_memory), copies)
    return getattr(tf.contrib.seq2seq, kind)(U, memory, memory_sequence_length=of_memory, **arguments)


def training(tf: Any) -> Any:
    seq2seq = tf.contrib.seq2seq
    helper = seq2seq.TrainingHelper(tf.constant(INPUTS), tf.constant(LENGTHS))
    cell = tf.contrib.rnn.GRUCell(U)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(B, tf.float32), tf.layers.Dense(V))
    outputs, state, lengths = seq2seq.dynamic_decode(decoder)
    weights = tf.sequence_mask(LENGTHS, T, dtype=tf.float32)
    loss = seq2seq.sequence_loss(outputs.rnn_output, tf.ones([B, T], tf.int32), weights)
    return "gradients", (loss, [list(outputs), state, lengths, loss])


def attention(kind: str, **arguments: Any) -> Callable[[Any], Any]:
    def program(tf: Any) -> Any:
        seq2seq = tf.contrib.seq2seq
        helper = seq2seq.TrainingHelper(tf.constant(INPUTS), tf.constant(LENGTHS))
        cell = seq2seq.AttentionWrapper(
            tf.contrib.rnn.BasicLSTMCell(U),
            mechanism(tf, kind, **arguments),
            attention_layer_size=3,
            alignment_history=True,
        )
        decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(B, tf.float32), tf.layers.Dense(V))
        outputs, state, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True, maximum_iterations=6)
        history = state.alignment_history.stack()
        parts = [list(state.cell_state), state.attention, state.time, state.alignments, history]
        return "gradients", (tf.reduce_sum(outputs.rnn_output), [list(outputs), parts, lengths])

    return program


def two_mechanisms(tf: Any) -> Any:
    seq2seq = tf.contrib.seq2seq
    helper = seq2seq.GreedyEmbeddingHelper(tf.constant(TABLE), tf.fill([B], 1), 2)
    inner = tf.contrib.rnn.BasicLSTMCell(U)
    both = [mechanism(tf, "LuongAttention"), mechanism(tf, "BahdanauAttention")]
    cell = seq2seq.AttentionWrapper(inner, both, attention_layer_size=[3, 2], output_attention=False)
    state = cell.zero_state(B, tf.float32).clone(cell_state=inner.zero_state(B, tf.float32))
    decoder = seq2seq.BasicDecoder(cell, helper, state, tf.layers.Dense(V))
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, output_time_major=True, maximum_iterations=6)
    return [list(outputs), state.attention, list(state.alignments), lengths]


def context_as_attention(tf: Any) -> Any:
    seq2seq = tf.contrib.seq2seq
    helper = seq2seq.GreedyEmbeddingHelper(lambda ids: tf.nn.embedding_lookup(TABLE, ids), tf.fill([B], 1), 2)
    cell = seq2seq.AttentionWrapper(tf.contrib.rnn.GRUCell(U), mechanism(tf, "LuongAttention"))
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(B, tf.float32), tf.layers.Dense(V))
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=5)
    return [list(outputs), state.attention, lengths]


def beams(width: int = 3, length: float = 0.0, coverage: float = 0.0) -> Callable[[Any], Any]:
    def program(tf: Any) -> Any:
        seq2seq = tf.contrib.seq2seq
        found = mechanism(tf, "LuongAttention", copies=width, lengths=(5, 3, 2))
        cell = seq2seq.AttentionWrapper(tf.contrib.rnn.BasicLSTMCell(U), found, attention_layer_size=4)
        decoder = seq2seq.BeamSearchDecoder(
            cell,
            tf.constant(TABLE) * 3,
            tf.fill([B], 1),
            2,
            cell.zero_state(B * width, tf.float32),
            width,
            tf.layers.Dense(V, use_bias=False),
            length_penalty_weight=length,
            coverage_penalty_weight=coverage,
        )
        outputs, state, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=6)
        parts = [state.log_probs, state.finished, state.lengths, list(state.cell_state.cell_state)]
        if coverage:
            parts.append(state.accumulated_attention_probs)
        return [outputs.predicted_ids, list(outputs.beam_search_decoder_output), parts, lengths]

    return program


def beams_of_unknown_batch(tf: Any) -> Any:
    seq2seq = tf.contrib.seq2seq
    start = tf.placeholder_with_default(np.array([1, 1, 1], "i"), [None])
    memory = seq2seq.tile_batch(tf.placeholder_with_default(MEMORY, [None, None, D]), 3)
    cell = seq2seq.AttentionWrapper(
        tf.contrib.rnn.BasicLSTMCell(U),
        seq2seq.LuongAttention(U, memory),
        attention_layer_size=4,
        alignment_history=True,
    )
    first = cell.zero_state(tf.shape(start)[0] * 3, tf.float32)
    projection = tf.layers.Dense(V, use_bias=False)
    decoder = seq2seq.BeamSearchDecoder(cell, tf.constant(TABLE) * 3, start, 2, first, 3, projection)
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=6)
    return [outputs.predicted_ids, lengths, state.cell_state.alignment_history]


def beams_of_layers(tf: Any) -> Any:
    seq2seq = tf.contrib.seq2seq
    cell = tf.contrib.rnn.MultiRNNCell([tf.contrib.rnn.GRUCell(U), tf.contrib.rnn.BasicLSTMCell(U)])
    first = seq2seq.tile_batch(cell.zero_state(B, tf.float32), 2)
    decoder = seq2seq.BeamSearchDecoder(
        cell,
        lambda ids: tf.nn.embedding_lookup(TABLE * 4, ids),
        tf.constant([0, 1, 3]),
        2,
        first,
        2,
        tf.layers.Dense(V, use_bias=False),
    )
    outputs, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=8, output_time_major=True)
    return [outputs.predicted_ids, list(outputs.beam_search_decoder_output), lengths]


def scheduled(probability: float) -> Callable[[Any], Any]:
    # Choices with probability 0 and 1 are the same whatever generator makes them.
    def program(tf: Any) -> Any:
        seq2seq = tf.contrib.seq2seq
        helper = seq2seq.ScheduledOutputTrainingHelper(
            tf.constant(INPUTS),
            tf.constant(LENGTHS),
            probability,
            next_inputs_fn=lambda outputs: outputs * 2,
            auxiliary_inputs=tf.constant(INPUTS[:, :, :2]),
        )
        cell = tf.contrib.rnn.GRUCell(D)
        outputs, _, _ = seq2seq.dynamic_decode(
            seq2seq.BasicDecoder(cell, helper, cell.zero_state(B, tf.float32))
        )
        helper = seq2seq.ScheduledEmbeddingTrainingHelper(
            tf.constant(INPUTS), tf.constant(LENGTHS), tf.constant(TABLE), 0.0
        )
        cell = tf.contrib.rnn.GRUCell(D)
        first = cell.zero_state(B, tf.float32)
        decoder = seq2seq.BasicDecoder(cell, helper, first, tf.layers.Dense(V))
        others, _, lengths = seq2seq.dynamic_decode(decoder, scope="second")
        return [list(outputs), list(others), lengths]

    return program


def own_helpers(tf: Any) -> Any:
    seq2seq = tf.contrib.seq2seq
    custom = seq2seq.CustomHelper(
        lambda: (tf.tile([False], [B]), tf.constant(INPUTS[:, 0])),
        lambda time, outputs, state: tf.cast(tf.argmax(outputs, -1), tf.int32),
        lambda time, outputs, state, sample_ids: (tf.tile([time >= 2], [B]), outputs, state),
    )
    inference = seq2seq.InferenceHelper(
        lambda outputs: outputs, [D], tf.float32, tf.constant(INPUTS[:, 0]),
        lambda samples: tf.reduce_sum(samples, 1) > 0.1,
    )  # fmt: skip
    cell, found = tf.contrib.rnn.GRUCell(D), []
    for helper in (custom, inference):
        decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(B, tf.float32))
        outputs, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=4)
        found += [list(outputs), lengths]
    return found


def functions(tf: Any) -> Any:
    seq2seq = tf.contrib.seq2seq
    targets, weights = (
        tf.constant([[1, 2, 3, 4]] * B),
        tf.constant([[1, 0.5, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]]),
    )
    chances = tf.constant(np.random.RandomState(1).rand(2, 4).astype("f"))
    before = tf.constant([[0.2, 0.3, 0.1, 0.4], [1, 0, 0, 0]])
    logits = tf.constant(LOGITS)
    found = [seq2seq.hardmax(logits), seq2seq.safe_cumprod(chances, axis=1, exclusive=True)]
    found += [seq2seq.monotonic_attention(chances, before, mode) for mode in ("recursive", "parallel")]
    found.append(seq2seq.monotonic_attention(tf.round(chances), tf.round(before), "hard"))
    for flags in ("0000", "1000", "0100", "1100", "0010", "0001", "0011", "1001", "0110"):
        found.append(seq2seq.sequence_loss(logits, targets, weights, *(flag == "1" for flag in flags)))
    ids = np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]], "i")
    parents = np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]], "i")
    found += [seq2seq.gather_tree(ids, parents, [3], 10), seq2seq.gather_tree(ids, parents, [2], 5)]
    return [*found, seq2seq.tile_batch(chances, 2)]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "training": training,
    "luong": attention("LuongAttention"),
    "luong scaled": attention("LuongAttention", scale=True),
    "bahdanau": attention("BahdanauAttention"),
    "bahdanau normalized": attention("BahdanauAttention", normalize=True),
    "monotonic bahdanau": attention("BahdanauMonotonicAttention"),
    "monotonic luong": attention("LuongMonotonicAttention"),
    "monotonic recursive": attention("BahdanauMonotonicAttention", normalize=True, mode="recursive"),
    "monotonic hard": attention("LuongMonotonicAttention", scale=True, mode="hard", score_bias_init=-0.1),
    "two mechanisms": two_mechanisms,
    "context": context_as_attention,
    "beams": beams(),
    "beams by length": beams(length=0.8),
    "beams by coverage": beams(length=0.5, coverage=0.4),
    "one beam": beams(width=1),
    "beams of unknown batch": beams_of_unknown_batch,
    "beams of layers": beams_of_layers,
    "scheduled never": scheduled(0.0),
    "scheduled always": scheduled(1.0),
    "own helpers": own_helpers,
    "functions": functions,
}
