"""The likelihood of a sequence of tags: the sum of the scores of its tags and of its transitions from tag
to tag, less the logarithm of that sum's exponential over all sequences, which the forward algorithm computes.

Unary potentials are [batch, time, tags] floats, tags [batch, time] int32, lengths [batch] integers and
transitions [tags, tags] floats, from the row's tag to the column's.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.layers.recurrent_cells import RNNCell

__all__ = [
    "CrfForwardRnnCell",
    "crf_binary_score",
    "crf_log_likelihood",
    "crf_log_norm",
    "crf_multitag_sequence_score",
    "crf_sequence_score",
    "crf_unary_score",
]


def one_or_more_steps(inputs: Any, one: Any, more: Any) -> Any:
    """`one()` if `inputs` [batch, time, …] has one step, else `more()`; decided in the step if it is not
    known."""
    steps = inputs.get_shape().as_list()[1] if inputs.get_shape().ndims is not None else None
    if steps is not None:
        return one() if steps == 1 else more()
    return tf.cond(tf.equal(tf.shape(inputs)[1], 1), one, more)


def first_step(inputs: Any) -> Any:
    """The first step of `inputs`, [batch, tags]."""
    return tf.squeeze(tf.slice(inputs, [0, 0, 0], [-1, 1, -1]), [1])


def lengths_less_one(sequence_lengths: Any) -> Any:
    """The lengths without the first step, at least 0."""
    return tf.maximum(tf.constant(0, dtype=sequence_lengths.dtype), sequence_lengths - 1)


def _zero_if_empty(values: Any, sequence_lengths: Any) -> Any:
    return tf.where(tf.less_equal(sequence_lengths, 0), tf.zeros_like(values), values)


def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The score of each sequence of tags, [batch], not normalised; see the module for the arguments."""
    tag_indices = tf.convert_to_tensor(tag_indices)
    sequence_lengths = tf.convert_to_tensor(sequence_lengths)

    def one() -> Any:
        batch = tf.shape(inputs, out_type=tag_indices.dtype)[0]
        places = tf.concat([tf.expand_dims(tf.range(batch), 1), tag_indices], -1)
        return _zero_if_empty(tf.gather_nd(tf.squeeze(inputs, [1]), places), sequence_lengths)

    def more() -> Any:
        return crf_unary_score(tag_indices, sequence_lengths, inputs) + crf_binary_score(
            tag_indices, sequence_lengths, transition_params
        )

    return one_or_more_steps(inputs, one, more)


def crf_multitag_sequence_score(
    inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """The score of all sequences of allowed tags, [batch]: the logarithm of their exponentials' sum.

    `tag_bitmap`: [batch, time, tags] bool, which tags are allowed; see the module for the other arguments.
    """
    tag_bitmap = tf.cast(tag_bitmap, dtype=tf.bool)
    sequence_lengths = tf.convert_to_tensor(sequence_lengths)
    allowed = tf.where(tag_bitmap, inputs, tf.fill(tf.shape(inputs), float("-inf")))
    # The bitmap may tell what the inputs' shape does not: that the branch of one step is not taken.
    is_longer = allowed.shape.as_list()[1] not in (None, 1)
    return one_or_more_steps(
        inputs,
        lambda: tf.reduce_logsumexp(*((allowed, [1, 2]) if is_longer else (tf.squeeze(allowed, [1]), [1]))),
        lambda: crf_log_norm(allowed, sequence_lengths, transition_params),
    )


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The logarithm of the sum over all sequences of tags, [batch]; see the module for the arguments."""
    sequence_lengths = tf.convert_to_tensor(sequence_lengths)
    first = first_step(inputs)

    def one() -> Any:
        return _zero_if_empty(tf.reduce_logsumexp(first, [1]), sequence_lengths)

    def more() -> Any:
        _, alphas = tf.nn.dynamic_rnn(
            cell=CrfForwardRnnCell(transition_params),
            inputs=tf.slice(inputs, [0, 1, 0], [-1, -1, -1]),
            sequence_length=lengths_less_one(sequence_lengths),
            initial_state=first,
            dtype=inputs.dtype,
        )
        return _zero_if_empty(tf.reduce_logsumexp(alphas, [1]), sequence_lengths)

    return one_or_more_steps(inputs, one, more)


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Any, Any]:
    """The log-likelihood [batch] of the tags, and the transitions.

    `transition_params`: default: the variable ``transitions`` [tags, tags] of the current scope. See the
    module for the other arguments.
    """
    tags = inputs.get_shape()[2].value
    if transition_params is None:
        transition_params = tf.get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """The sum of the scores of each sequence's tags, [batch]; see the module for the arguments."""
    batch, steps, tags = tf.unstack(tf.shape(inputs), 3)
    flat = tf.reshape(inputs, [-1])
    places = tf.expand_dims(tf.range(batch) * steps * tags, 1) + tf.expand_dims(tf.range(steps) * tags, 0)
    tag_indices = tf.cast(tag_indices, places.dtype)
    scores = tf.reshape(tf.gather(flat, tf.reshape(places + tag_indices, [-1])), [batch, steps])
    mask = tf.sequence_mask(sequence_lengths, maxlen=tf.shape(tag_indices)[1], dtype=inputs.dtype)
    return tf.reduce_sum(scores * mask, 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The sum of the scores of each sequence's transitions, [batch]; see the module for the arguments."""
    tag_indices = tf.convert_to_tensor(tag_indices)
    tags = tf.convert_to_tensor(transition_params).get_shape().as_list()[0]
    count = tf.shape(tag_indices)[1] - 1
    begins = tf.slice(tag_indices, [0, 0], [-1, count])
    ends = tf.slice(tag_indices, [0, 1], [-1, count])
    scores = tf.gather(tf.reshape(transition_params, [-1]), begins * tags + ends)
    mask = tf.sequence_mask(sequence_lengths, maxlen=tf.shape(tag_indices)[1], dtype=scores.dtype)
    return tf.reduce_sum(scores * tf.slice(mask, [0, 1], [-1, -1]), 1)


class CrfForwardRnnCell(RNNCell):
    """A step of the forward algorithm; the state [batch, tags] is the scores' logarithm by last tag.

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
        """Adds the step's potentials [batch, tags]; output and state are the same."""
        scores = tf.expand_dims(state, 2) + self._transition_params
        alphas = inputs + tf.reduce_logsumexp(scores, [1])
        return alphas, alphas
