"""How scores become alignments: the hard maximum, and monotonic attention (Raffel et al. 2017, arXiv
1704.00784)."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf

__all__ = ["hardmax", "monotonic_attention", "safe_cumprod"]


def hardmax(logits: Any, name: str | None = None) -> Any:
    """1 at the greatest of the last dimension of `logits`, else 0; of their shape and type."""
    with tf.name_scope(name, "Hardmax", [logits]):
        logits = tf.convert_to_tensor(logits, name="logits")
        depth = logits.get_shape().as_list()[-1] if logits.get_shape().ndims is not None else None
        if depth is None:
            depth = tf.shape(logits)[-1]
        return tf.one_hot(tf.argmax(logits, -1), depth, dtype=logits.dtype)


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Any:
    """The cumulative product of `x`, as the exponential of a sum of logarithms; x is clipped to [tiny, 1].

    Further arguments are those of `tf.cumsum`.
    """
    with tf.name_scope(None, "SafeCumprod", [x]):
        x = tf.convert_to_tensor(x, name="x")
        tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
        return tf.exp(tf.cumsum(tf.log(tf.clip_by_value(x, tiny, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Any:
    """The probability of each entry of a memory to be attended, if attention only moves forwards.

    Args:
        p_choose_i: [batch, memory], the probability of choosing an entry when it is reached.
        previous_attention: [batch, memory], the attention of the step before.
        mode: "recursive" computes exactly, an entry at a time; "parallel" with cumulative sums and products,
            which fails for probabilities near 0 or 1; "hard" if `p_choose_i` and `previous_attention` are 0
            or 1.

    Returns [batch, memory]. ValueError for another mode.
    """
    p_choose_i = tf.convert_to_tensor(p_choose_i, name="p_choose_i")
    previous_attention = tf.convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        return _recursive(p_choose_i, previous_attention)
    if mode == "parallel":
        passed = safe_cumprod(1 - p_choose_i, axis=1, exclusive=True)
        return (
            p_choose_i * passed * tf.cumsum(previous_attention / tf.clip_by_value(passed, 1e-10, 1.0), axis=1)
        )
    if mode == "hard":
        # Entries before the last one attended to cannot be chosen; of the others the first is.
        allowed = p_choose_i * tf.cumsum(previous_attention, axis=1)
        return allowed * tf.cumprod(1 - allowed, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def _recursive(p_choose_i: Any, previous_attention: Any) -> Any:
    batch = p_choose_i.get_shape().with_rank(2).as_list()[0]
    batch = tf.shape(p_choose_i)[0] if batch is None else batch
    # q_i = (1 - p_(i-1)) q_(i-1) + previous_i, attention_i = p_i q_i
    passed = tf.concat([tf.ones((batch, 1), p_choose_i.dtype), 1 - p_choose_i[:, :-1]], 1)
    reached = tf.scan(
        lambda q, each: tf.reshape(each[0] * q + each[1], (batch,)),
        [tf.transpose(passed), tf.transpose(previous_attention)],
        tf.zeros((batch,), p_choose_i.dtype),
    )
    result = p_choose_i * tf.transpose(reached)
    result.set_shape(p_choose_i.get_shape())
    return result
