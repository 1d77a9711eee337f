"""Beam search: of all continuations of each sequence the `beam_width` with the best scores go on.

The score of a sequence is the sum of its steps' log-probabilities, divided by a penalty for its length and
added to one for what it did not attend to (Wu et al. 2016, arXiv 1609.08144). Cell states lie as [batch ·
beams, …] outside the decoder, [batch, beams, …] inside.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.seq2seq.beam_search_ops import gather_tree, gather_tree_from_array
from flowstone.contrib.seq2seq.beam_search_step import (
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    _beam_search_step,
    _get_scores,
    _length_penalty,
    _mask_probs,
    get_attention_probs,
)
from flowstone.contrib.seq2seq.decoder import Decoder
from flowstone.contrib.seq2seq.helper import _embedding_function
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.node import static_value
from flowstone.layers.cell_state import check_is_cell

__all__ = [
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "FinalBeamSearchDecoderOutput",
    "_beam_search_step",
    "_get_scores",
    "_length_penalty",
    "_mask_probs",
    "gather_tree_from_array",
    "get_attention_probs",
    "tile_batch",
]


class FinalBeamSearchDecoderOutput(
    namedtuple("FinalBeamDecoderOutput", ("predicted_ids", "beam_search_decoder_output"))
):
    """The ids of the beams, the best first, [batch, time, beams], and the steps' outputs."""

    __slots__ = ()


def _tile_batch(t: Any, multiplier: Any) -> Any:
    t = tf.convert_to_tensor(t, name="t")
    if t.get_shape().ndims is None:
        raise ValueError("t must have statically known rank")
    if t.get_shape().ndims == 0:
        raise ValueError("A scalar has no batch: t must have rank 1 at least")
    shape, static = tf.shape(t), t.get_shape().as_list()
    multiples = [1] * (len(static) + 1)
    multiples[1] = multiplier
    tiled = tf.reshape(
        tf.tile(tf.expand_dims(t, 1), multiples), tf.concat(([shape[0] * multiplier], shape[1:]), 0)
    )
    known = isinstance(multiplier, int) and static[0] is not None
    tiled.set_shape([static[0] * multiplier if known else None, *static[1:]])
    return tiled


def tile_batch(t: Any, multiplier: Any, name: str | None = None) -> Any:
    """Each entry of the batch `multiplier` times in a row: [batch, …] becomes [batch · multiplier, …].

    `t` may be a structure of tensors. ValueError for a scalar and for a tensor of unknown rank.
    """
    flat = nest.flatten(t)
    with tf.name_scope(name, "tile_batch", [*flat, multiplier]):
        return nest.map_structure(lambda each: _tile_batch(each, multiplier), t)


class BeamSearchDecoder(Decoder):
    """A decoder by beam search.

    Args:
        cell: an RNNCell.
        embedding: a function of ids, or the parameters of `tf.nn.embedding_lookup`.
        start_tokens: [batch] int32, the ids to begin with.
        end_token: an int32 scalar, the id that ends a sequence.
        initial_state: the cell's first state, [batch · beam_width, …] (see `tile_batch`).
        beam_width: the number of beams.
        output_layer: a layer that makes logits of the cell's outputs.
        length_penalty_weight: w of the divisor ((5 + length) / 6)^w.
        coverage_penalty_weight: what the coverage penalty is multiplied by; needs an `AttentionWrapper`.
        reorder_tensor_arrays: whether TensorArrays in the last state, such as the alignment history, come
            back as tensors [time, batch · beams, …] in the order of the beams' paths.

    TypeError for arguments of other classes, ValueError for tokens of other ranks.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        check_is_cell("cell", cell)
        if output_layer is not None and not hasattr(output_layer, "compute_output_shape"):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell, self._output_layer, self._beam_width = cell, output_layer, beam_width
        self._reorder_tensor_arrays, self._embedding_fn = (
            reorder_tensor_arrays,
            _embedding_function(embedding),
        )
        self._start_tokens = tf.convert_to_tensor(start_tokens, dtype=tf.int32, name="start_tokens")
        self._end_token = tf.convert_to_tensor(end_token, dtype=tf.int32, name="end_token")
        _check_tokens(self._start_tokens, self._end_token)
        self._batch_size = tf.size(start_tokens)
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        self._initial_cell_state = nest.map_structure(
            self._maybe_split_batch_beams, initial_state, self._cell.state_size
        )
        tiled = tf.tile(tf.expand_dims(self._start_tokens, 1), [1, self._beam_width])
        self._start_tokens, self._start_inputs = tiled, self._embedding_fn(tiled)
        self._finished = tf.one_hot(
            tf.zeros([self._batch_size], dtype=tf.int32),
            depth=self._beam_width,
            on_value=False,
            off_value=True,
            dtype=tf.bool,
        )

    @property
    def batch_size(self) -> Any:
        """The number of sequences, without the beams."""
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        """True: beams change their places, so a place that had finished may go on."""
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        """[beams] each."""
        return BeamSearchDecoderOutput(*(tf.TensorShape([self._beam_width]) for _ in range(3)))

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        """The cell state's type for scores, int32 for ids."""
        dtype = nest.flatten(self._initial_cell_state)[0].dtype
        return BeamSearchDecoderOutput(scores=dtype, predicted_ids=tf.int32, parent_ids=tf.int32)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """The embeddings of the start tokens, and a state in which only the first beam counts."""
        dtype = nest.flatten(self._initial_cell_state)[0].dtype
        log_probs = tf.one_hot(
            tf.zeros([self._batch_size], dtype=tf.int32),
            depth=self._beam_width,
            on_value=tf.constant(0.0, dtype=dtype),
            off_value=tf.constant(-np.inf, dtype=dtype),
            dtype=dtype,
        )
        attended = get_attention_probs(self._initial_cell_state, self._coverage_penalty_weight)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=log_probs,
            finished=self._finished,
            lengths=tf.zeros([self._batch_size, self._beam_width], dtype=tf.int64),
            accumulated_attention_probs=() if attended is None else attended,
        )
        return self._finished, self._start_inputs, state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """A step of the cell for all beams, and the best continuations."""
        with tf.name_scope(name, "BeamSearchDecoderStep", (time, inputs, state)):
            cell_state = state.cell_state
            inputs = nest.map_structure(lambda x: self._merge_batch_beams(x, s=x.shape[2:]), inputs)
            cell_state = nest.map_structure(self._maybe_merge_batch_beams, cell_state, self._cell.state_size)
            outputs, next_cell_state = self._cell(inputs, cell_state)
            outputs = nest.map_structure(lambda out: self._split_batch_beams(out, out.shape[1:]), outputs)
            next_cell_state = nest.pack_sequence_as(
                cell_state,
                nest.flatten(
                    nest.map_structure(self._maybe_split_batch_beams, next_cell_state, self._cell.state_size)
                ),
            )
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            step_output, next_state = _beam_search_step(
                time=time,
                logits=outputs,
                next_cell_state=next_cell_state,
                beam_state=state,
                batch_size=self._batch_size,
                beam_width=self._beam_width,
                end_token=self._end_token,
                length_penalty_weight=self._length_penalty_weight,
                coverage_penalty_weight=self._coverage_penalty_weight,
            )
            finished, ids = next_state.finished, step_output.predicted_ids
            next_inputs = tf.cond(
                tf.reduce_all(finished), lambda: self._start_inputs, lambda: self._embedding_fn(ids)
            )
        return step_output, next_state, next_inputs, finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """The beams' ids along their paths, in a `FinalBeamSearchDecoderOutput`, and the last state."""
        longest = tf.cast(tf.reduce_max(final_state.lengths, axis=1), tf.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder_tensor_arrays:
            final_state = final_state._replace(
                cell_state=nest.map_structure(
                    lambda t: self._maybe_sort_array_beams(t, outputs.parent_ids, final_state.lengths),
                    final_state.cell_state,
                )
            )
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def _maybe_sort_array_beams(self, t: Any, parent_ids: Any, sequence_length: Any) -> Any:
        """A TensorArray as a tensor in the order of the beams' paths; anything else as it is.

        An array stays one if its elements may have no batch, and, as in TensorFlow, if their static shape is
        [batch · beams, …] with a second dimension that is not `beams`.
        """
        if not isinstance(t, tf.TensorArray) or not self._is_sortable(t.element_shape):
            return t
        return gather_tree_from_array(t.stack(), parent_ids, sequence_length)

    def _is_sortable(self, shape: Any) -> bool:
        if shape.ndims is None or shape.ndims < 1:
            tf.logging.warn(
                f"a TensorArray whose elements have the shape {shape} is not put in the beams' order"
            )
            return False
        batch, beams = static_value(self._batch_size), self._beam_width
        sizes = shape.as_list()
        if batch is None or sizes[0] is None:
            return True
        is_split = len(sizes) < 2 or sizes[1] is None or (sizes[0] == batch and sizes[1] == beams)
        if sizes[0] == batch * beams and is_split:
            return True
        tf.logging.warn(
            f"a TensorArray whose elements have the static shape {shape} is not put in the beams' order: use "
            "reorder_tensor_arrays=False, or start_tokens of unknown size"
        )
        return False

    def _merge_batch_beams(self, t: Any, s: Any = None) -> Any:
        """[batch, beams, …] as [batch · beams, …]."""
        s = _as_shape(s)
        shape, static = tf.shape(t), static_value(self._batch_size)
        result = tf.reshape(t, tf.concat(([self._batch_size * self._beam_width], shape[2:]), 0))
        batch = None if static is None else int(static) * self._beam_width
        result.set_shape(tf.TensorShape([batch]).concatenate(s))
        return result

    def _split_batch_beams(self, t: Any, s: Any = None) -> Any:
        """[batch · beams, …] as [batch, beams, …]. ValueError if the static shape does not allow it."""
        s = _as_shape(s)
        shape, static = tf.shape(t), static_value(self._batch_size)
        result = tf.reshape(t, tf.concat(([self._batch_size, self._beam_width], shape[1:]), 0))
        batch = None if static is None else int(static)
        expected = tf.TensorShape([batch, self._beam_width]).concatenate(s)
        if not result.shape.is_compatible_with(expected):
            raise ValueError(
                "Unexpected behavior when reshaping between beam width and batch size. The reshaped tensor"
                " has "
                f"shape: {result.shape}. We expected it to have shape (batch_size, beam_width, depth) =="
                f" {expected}. "
                "Perhaps you forgot to create a zero_state with batch_size=encoder_batch_size * beam_width?"
            )
        result.set_shape(expected)
        return result

    def _maybe_split_batch_beams(self, t: Any, s: Any) -> Any:
        return t if not _has_batch(t) else self._split_batch_beams(t, s)

    def _maybe_merge_batch_beams(self, t: Any, s: Any) -> Any:
        return t if not _has_batch(t) else self._merge_batch_beams(t, s)


def _check_tokens(start_tokens: Any, end_token: Any) -> None:
    if start_tokens.get_shape().ndims != 1:
        raise ValueError("start_tokens must be a vector")
    if end_token.get_shape().ndims != 0:
        raise ValueError("end_token must be a scalar")


def _as_shape(s: Any) -> Any:
    if isinstance(s, tf.TensorShape):
        return s
    if isinstance(s, tf.Tensor):
        known = static_value(s)
        return tf.TensorShape([None if known is None else int(known)])
    return tf.TensorShape(s if isinstance(s, (list, tuple)) else [s])


def _has_batch(t: Any) -> bool:
    """Whether `t` is a tensor of some dimensions. ValueError if its rank is not known."""
    if isinstance(t, tf.TensorArray):
        return False
    if t.shape.ndims is None:
        raise ValueError(f"Expected tensor ({t}) to have known rank, but ndims == None.")
    return bool(t.shape.ndims >= 1)
