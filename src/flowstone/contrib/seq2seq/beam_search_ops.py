"""The sequences of a beam search, followed back from their ends."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["gather_tree", "gather_tree_from_array"]


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: str | None = None
) -> Any:
    """The ids of each beam from its first step to its last, [time, batch, beams] int32.

    Args:
        step_ids, parent_ids: [time, batch, beams] int32: what each beam emitted, and which beam it continued.
        max_sequence_lengths: [batch] int32, the step after which a batch's beams are followed back.
        end_token: an int32 scalar; all that follows it is the end token too.

    A parent that is no beam is an InvalidArgumentError of the step.
    """
    return tf.raw_ops.GatherTree(
        step_ids=step_ids,
        parent_ids=parent_ids,
        max_sequence_lengths=max_sequence_lengths,
        end_token=end_token,
        name=name,
    )


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Any:
    """The parts of `t` [time, batch, beams, …] or [time, batch · beams, …] in the order of the beams' paths.

    `parent_ids`: [time, batch, beams]; `sequence_length`: [batch, beams]. After its end a beam keeps its own.
    """
    shape, static = tf.unstack(tf.shape(parent_ids)), parent_ids.get_shape().as_list()
    time, batch, beams = (size if known is None else known for size, known in zip(shape, static))
    own = tf.tile(tf.reshape(tf.range(beams), [1, 1, -1]), tf.stack([time, batch, 1]))
    longest = tf.cast(tf.reduce_max(sequence_length, axis=1), tf.int32)
    order = gather_tree(own, parent_ids, longest, beams + 1)
    goes_on = tf.transpose(tf.sequence_mask(sequence_length, maxlen=time), perm=[2, 0, 1])
    order = tf.where(goes_on, order, own)
    times = tf.tile(tf.reshape(tf.range(time), [-1, 1, 1]), tf.stack([1, batch, beams]))
    entries = tf.tile(tf.reshape(tf.range(batch), [1, -1, 1]), tf.stack([time, 1, beams]))
    places = tf.stack([times, entries, order], -1)
    ordered = tf.gather_nd(tf.reshape(t, tf.stack([time, batch, beams, -1])), places)
    ordered = tf.reshape(ordered, tf.shape(t))
    ordered.set_shape(t.get_shape())
    return ordered
