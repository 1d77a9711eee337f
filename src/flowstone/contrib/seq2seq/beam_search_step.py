"""One step of a beam search: scores of all continuations, and the best of them."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.seq2seq.attention_mechanism import _size_of
from flowstone.contrib.seq2seq.attention_wrapper import AttentionWrapperState
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.node import static_value

__all__ = ["BeamSearchDecoderOutput", "BeamSearchDecoderState", "get_attention_probs"]


class BeamSearchDecoderState(
    namedtuple(
        "BeamSearchDecoderState",
        ("cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs"),
    )
):
    """The cell's state [batch, beams, …], and for each beam [batch, beams] its log-probability, whether it
    has finished, its length (int64), and what it attended to so far, or ()."""

    __slots__ = ()


class BeamSearchDecoderOutput(
    namedtuple("BeamSearchDecoderOutput", ("scores", "predicted_ids", "parent_ids"))
):
    """What a step emits for each beam [batch, beams]: score, id, and the beam that it continues."""

    __slots__ = ()


def _beam_search_step(
    time: Any,
    logits: Any,
    next_cell_state: Any,
    beam_state: BeamSearchDecoderState,
    batch_size: Any,
    beam_width: int,
    end_token: Any,
    length_penalty_weight: Any,
    coverage_penalty_weight: Any,
) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState]:
    """The output and the state after a step in which the beams' `logits` are [batch, beams, classes]."""
    known_batch = static_value(batch_size) if isinstance(batch_size, tf.Tensor) else batch_size
    finished = beam_state.finished
    goes_on = tf.logical_not(finished)
    step_log_probs = _mask_probs(tf.nn.log_softmax(logits), end_token, finished)
    total_probs = tf.expand_dims(beam_state.log_probs, 2) + step_log_probs
    classes = _size_of(logits, -1)
    lengths = _continued_lengths(beam_state, tf.fill([batch_size, beam_width], end_token), classes)
    attended: Any = beam_state.accumulated_attention_probs
    attention_probs = get_attention_probs(next_cell_state, coverage_penalty_weight)
    if attention_probs is not None:
        attended = attended + attention_probs * tf.expand_dims(tf.cast(goes_on, attention_probs.dtype), 2)
    scores = _get_scores(
        log_probs=total_probs,
        sequence_lengths=lengths,
        length_penalty_weight=length_penalty_weight,
        coverage_penalty_weight=coverage_penalty_weight,
        finished=finished,
        accumulated_attention_probs=attended,
    )
    next_scores, places = tf.nn.top_k(tf.reshape(scores, [batch_size, -1]), k=beam_width)
    for each in (next_scores, places):
        each.set_shape([known_batch, beam_width])
    state = beam_state._replace(cell_state=next_cell_state, accumulated_attention_probs=attended)
    return _chosen(next_scores, places, total_probs, state, (batch_size, beam_width, classes), end_token)


def _continued_lengths(beam_state: BeamSearchDecoderState, end_tokens: Any, classes: Any) -> Any:
    """The lengths [batch, beams, classes] of all continuations: other than by the end token a step longer, if
    the beam goes on at all."""
    longer = tf.one_hot(end_tokens, classes, on_value=np.int64(0), off_value=np.int64(1), dtype=tf.int64)
    goes_on = tf.cast(tf.logical_not(beam_state.finished), tf.int64)
    return tf.expand_dims(goes_on, 2) * longer + tf.expand_dims(beam_state.lengths, 2)


def _chosen(
    next_scores: Any,
    places: Any,
    total_probs: Any,
    state: BeamSearchDecoderState,
    sizes: tuple[Any, Any, Any],
    end_token: Any,
) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState]:
    """The output and the state of the beams that go on at these places of [beams · classes]."""
    batch_size, beam_width, classes = sizes

    def gathered(source: Any, indices: Any, range_size: Any, shape: list[Any], name: str) -> Any:
        return _tensor_gather_helper(indices, source, batch_size, range_size, shape, name)

    next_probs = gathered(total_probs, places, beam_width * classes, [-1], "next_beam_probs")
    word_ids = tf.cast(tf.mod(places, classes, name="next_beam_word_ids"), tf.int32)
    parents = tf.cast(tf.div(places, classes, name="next_beam_parent_ids"), tf.int32)
    was_finished = gathered(state.finished, parents, beam_width, [-1], "next_beam_finished")
    next_lengths = gathered(state.lengths, parents, beam_width, [-1], "next_beam_lengths")
    next_lengths += tf.cast(tf.logical_not(was_finished), tf.int64)
    attended = state.accumulated_attention_probs
    if isinstance(attended, tf.Tensor):
        attended = gathered(attended, parents, beam_width, [batch_size * beam_width, -1], "next_attention")
    next_state = BeamSearchDecoderState(
        cell_state=nest.map_structure(
            lambda part: _maybe_tensor_gather_helper(
                parents, part, batch_size, beam_width, [batch_size * beam_width, -1]
            ),
            state.cell_state,
        ),
        log_probs=next_probs,
        lengths=next_lengths,
        finished=tf.logical_or(was_finished, tf.equal(word_ids, end_token), name="next_beam_finished"),
        accumulated_attention_probs=attended,
    )
    return BeamSearchDecoderOutput(next_scores, word_ids, parents), next_state


def get_attention_probs(next_cell_state: Any, coverage_penalty_weight: Any) -> Any:
    """The mean of the alignments [batch, beams, entries] of all attention in the state; None without a
    penalty.

    ValueError for a penalty without attention.
    """
    if not isinstance(coverage_penalty_weight, tf.Tensor) and coverage_penalty_weight == 0.0:
        return None
    found: list[Any] = []
    if isinstance(next_cell_state, AttentionWrapperState):
        found += _alignments_of(next_cell_state)
    elif isinstance(next_cell_state, tuple):
        for part in next_cell_state:
            if isinstance(part, AttentionWrapperState):
                found += _alignments_of(part)
    if not found:
        raise ValueError(
            "coverage_penalty_weight must be 0.0 if no cell is attention wrapper; cell state must be an "
            "AttentionWrapperState if coverage_penalty_weight is not 0.0"
        )
    return found[0] if len(found) == 1 else tf.add_n(found) / len(found)


def _alignments_of(state: AttentionWrapperState) -> list[Any]:
    return list(state.alignments) if isinstance(state.alignments, tuple) else [state.alignments]


def _is_zero(weight: Any) -> bool:
    known = static_value(weight) if isinstance(weight, tf.Tensor) else weight
    return known is not None and float(known) == 0.0


def _get_scores(
    log_probs: Any,
    sequence_lengths: Any,
    length_penalty_weight: Any,
    coverage_penalty_weight: Any,
    finished: Any,
    accumulated_attention_probs: Any,
) -> Any:
    """The scores [batch, beams, classes] of sequences: log-probabilities with both penalties."""
    scores = log_probs / _length_penalty(sequence_lengths, length_penalty_weight)
    weight = tf.convert_to_tensor(coverage_penalty_weight, name="coverage_penalty_weight")
    if weight.shape.ndims != 0:
        raise ValueError(f"coverage_penalty_weight should be a scalar, but saw shape: {weight.shape}")
    if _is_zero(weight):
        return scores
    if accumulated_attention_probs is None:
        raise ValueError("accumulated_attention_probs can be None only if coverage_penalty_weight is 0.0")
    # Only finished sequences are judged by what they attended to.
    # What no attention ever reached, such as the padding of a source, has no share in the penalty.
    reached = tf.where(
        tf.equal(accumulated_attention_probs, 0.0),
        tf.ones_like(accumulated_attention_probs),
        accumulated_attention_probs,
    )
    coverage = tf.reduce_sum(tf.log(tf.minimum(reached, 1.0)), 2)
    coverage *= tf.cast(finished, coverage.dtype)
    return scores + tf.expand_dims(coverage * weight, 2)


def _length_penalty(sequence_lengths: Any, penalty_factor: Any) -> Any:
    """((5 + length) / 6)^factor, or 1 if the factor is known to be 0."""
    factor = tf.convert_to_tensor(penalty_factor, name="penalty_factor")
    if factor.shape.ndims != 0:
        raise ValueError(f"length_penalty_weight should be a scalar, but saw shape: {factor.shape}")
    if _is_zero(factor):
        return 1.0
    return tf.div((5.0 + tf.cast(sequence_lengths, tf.float32)) ** factor, (5.0 + 1.0) ** factor)


def _mask_probs(probs: Any, eos_token: Any, finished: Any) -> Any:
    """The log-probabilities, but for finished beams 0 for the end token and the least number for all else."""
    classes = tf.shape(probs)[2]
    row = tf.one_hot(
        eos_token,
        classes,
        dtype=probs.dtype,
        on_value=tf.convert_to_tensor(0.0, dtype=probs.dtype),
        off_value=probs.dtype.min,
    )
    ended = tf.tile(tf.reshape(row, [1, 1, -1]), tf.concat([tf.shape(finished), [1]], 0))
    is_finished = tf.tile(tf.expand_dims(finished, 2), [1, 1, classes])
    return tf.where(is_finished, ended, probs)


def _maybe_tensor_gather_helper(
    gather_indices: Any, gather_from: Any, batch_size: Any, range_size: Any, gather_shape: list[Any]
) -> Any:
    """As `_tensor_gather_helper`; TensorArrays and tensors of too few dimensions stay as they are."""
    if isinstance(gather_from, tf.TensorArray) or gather_from.shape.ndims < len(gather_shape):
        return gather_from
    return _tensor_gather_helper(gather_indices, gather_from, batch_size, range_size, gather_shape)


def _tensor_gather_helper(
    gather_indices: Any,
    gather_from: Any,
    batch_size: Any,
    range_size: Any,
    gather_shape: list[Any],
    name: str | None = None,
) -> Any:
    """For each batch and beam the part of `gather_from` at its index, of `range_size` parts a batch."""
    with tf.name_scope(name, "tensor_gather_helper"):
        begin = tf.expand_dims(tf.range(batch_size) * range_size, 1)
        indices = tf.reshape(gather_indices + begin, [-1])
        found = tf.gather(tf.reshape(gather_from, gather_shape), indices)
        if len(gather_shape) == 1:
            shape = tf.shape(gather_indices)
            static = gather_indices.get_shape()
        else:
            shape, static = tf.shape(gather_from), gather_from.get_shape()
        found = tf.reshape(found, shape)
        found.set_shape(static)
        return found
