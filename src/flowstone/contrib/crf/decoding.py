"""The best sequence of tags, by the algorithm of Viterbi: in NumPy for one sequence, in the graph for a
batch."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.crf.crf import first_step, lengths_less_one, one_or_more_steps
from flowstone.layers.recurrent_cells import RNNCell

__all__ = ["CrfDecodeBackwardRnnCell", "CrfDecodeForwardRnnCell", "crf_decode", "viterbi_decode"]


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[Any], Any]:
    """The best tags, a list of indices, and their score.

    `score`: an array [time, tags]; `transition_params`: an array [tags, tags].
    """
    trellis, pointers = np.zeros_like(score), np.zeros_like(score, dtype=np.int32)
    trellis[0] = score[0]
    for t in range(1, score.shape[0]):
        v = np.expand_dims(trellis[t - 1], 1) + transition_params
        trellis[t] = score[t] + np.max(v, 0)
        pointers[t] = np.argmax(v, 0)
    path = [np.argmax(trellis[-1])]
    for pointer in reversed(pointers[1:]):
        path.append(pointer[path[-1]])
    path.reverse()
    return path, np.max(trellis[-1])


class CrfDecodeForwardRnnCell(RNNCell):
    """A forward step; the state [batch, tags] is the best score by last tag, the output the tag before it
    (int32).

    `transition_params`: [tags, tags].
    """

    def __init__(self, transition_params: Any) -> None:
        super().__init__()
        self._transition_params = tf.expand_dims(transition_params, 0)
        self._num_tags = tf.convert_to_tensor(transition_params).get_shape()[0].value

    @property
    def state_size(self) -> Any:
        """The number of tags."""
        return self._num_tags

    @property
    def output_size(self) -> Any:
        """The number of tags."""
        return self._num_tags

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *_: Any, **__: Any) -> tuple[Any, Any]:
        """The tags before, [batch, tags] int32, and the best scores."""
        scores = tf.expand_dims(state, 2) + self._transition_params
        best = inputs + tf.reduce_max(scores, [1])
        return tf.cast(tf.argmax(scores, 1), dtype=tf.int32), best


class CrfDecodeBackwardRnnCell(RNNCell):
    """A backward step; state and output [batch, 1] int32 are the tag, inputs [batch, num_tags] the tags
    before."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self._num_tags = num_tags

    @property
    def state_size(self) -> int:
        """1."""
        return 1

    @property
    def output_size(self) -> int:
        """1."""
        return 1

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *_: Any, **__: Any) -> tuple[Any, Any]:
        """The tag before, as output and state."""
        state = tf.squeeze(state, axis=[1])
        places = tf.stack([tf.range(tf.shape(inputs)[0]), state], axis=1)
        tags = tf.expand_dims(tf.gather_nd(inputs, places), axis=-1)
        return tags, tags


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    """The best tags of each sequence, [batch, time] int32, zero after its end, and their score [batch].

    `potentials`: [batch, time, tags]; `transition_params`: [tags, tags]; `sequence_length`: [batch] integers.
    """
    sequence_length = tf.convert_to_tensor(sequence_length)

    def one() -> tuple[Any, Any]:
        scores = tf.squeeze(potentials, [1])
        tags = tf.expand_dims(tf.argmax(scores, axis=1), 1)
        return tf.cast(tags, dtype=tf.int32), tf.reduce_max(scores, axis=1)

    def more() -> tuple[Any, Any]:
        return _decoded(potentials, transition_params, sequence_length)

    return one_or_more_steps(potentials, one, more)  # type: ignore[no-any-return]


def _decoded(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    lengths = lengths_less_one(sequence_length)
    pointers, scores = tf.nn.dynamic_rnn(
        CrfDecodeForwardRnnCell(transition_params),
        inputs=tf.slice(potentials, [0, 1, 0], [-1, -1, -1]),
        sequence_length=lengths,
        initial_state=first_step(potentials),
        time_major=False,
        dtype=tf.int32,
    )
    pointers = tf.reverse_sequence(pointers, lengths, seq_axis=1)
    last = tf.expand_dims(tf.cast(tf.argmax(scores, axis=1), dtype=tf.int32), axis=-1)
    tags, _ = tf.nn.dynamic_rnn(
        CrfDecodeBackwardRnnCell(potentials.get_shape()[2].value),
        inputs=pointers,
        sequence_length=lengths,
        initial_state=last,
        time_major=False,
        dtype=tf.int32,
    )
    tags = tf.concat([last, tf.squeeze(tags, axis=[2])], axis=1)
    return tf.reverse_sequence(tags, sequence_length, seq_axis=1), tf.reduce_max(scores, axis=1)
