"""`tf.contrib.nn`: losses whose arguments are in TensorFlow 0.x's order, sampled losses, activations."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(globals(), {"flowstone.nn": "conv1d_transpose"})


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Any:
    """`tf.nn.softmax_cross_entropy_with_logits`, with the logits first."""
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Any:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits`, with the logits first."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(
    logits: Any, targets: Any, name: str | None = None
) -> Any:
    """`tf.nn.sigmoid_cross_entropy_with_logits`, with the logits first."""
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Any:
    """The value that stands at position `n` when the last dimension is sorted.

    Args:
        input: a tensor of numbers, at least a vector.
        n: a scalar of int32, less than the size of the last dimension.
        reverse: whether the greatest come first.
        name: of the operation.

    Returns:
        a tensor of the input's type and its shape without the last dimension.
    """
    return tf.raw_ops.NthElement(input=input, n=n, reverse=reverse, name=name)


_ALPHA = -1.7580993408473766  # the least value of SELU, which dropped values take


def alpha_dropout(
    x: Any, keep_prob: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Any:
    """Dropout for networks of SELUs: mean and variance of the values stay (Klambauer et al., 2017).

    Args:
        x: a tensor of a floating-point type.
        keep_prob: the probability that a value is kept, in (0, 1].
        noise_shape: the shape of the random choices; a size of 1 is chosen once for its dimension.
        seed: of the random choices.
        name: of the operation.

    Returns:
        a tensor of the shape and type of `x`. Raises ValueError for a probability out of range.
    """
    with tf.name_scope(name, "alpha_dropout", [x]):
        x = tf.convert_to_tensor(x, name="x")
        if isinstance(keep_prob, (int, float)) and not 0 < keep_prob <= 1.0:
            raise ValueError(
                f"keep_prob must be a scalar tensor or a float in the range (0, 1], got {keep_prob}"
            )
        keep_prob = tf.convert_to_tensor(keep_prob, dtype=x.dtype, name="keep_prob")
        keep_prob.get_shape().assert_is_compatible_with([])
        if tf.get_static_value(keep_prob) == 1:
            return x
        shape = tf.shape(x) if noise_shape is None else noise_shape
        numbers = tf.random_uniform(shape, seed=seed, dtype=x.dtype)
        kept = tf.cast(numbers >= 1 - keep_prob, x.dtype)
        values = x * kept + _ALPHA * (1 - kept)
        a = (keep_prob + keep_prob * (1 - keep_prob) * _ALPHA**2) ** -0.5
        b = -a * _ALPHA * (1 - keep_prob)
        return a * values + b


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: str | None = None) -> Any:
    """`alpha * softplus(x / alpha)`, at most `clip` if that is given.

    Args:
        x: a tensor. alpha: how soft the bend is, a tensor that is broadcast to `x`.
        clip: the greatest result, or None. name: of the operation.
    """
    with tf.name_scope(name, "scaled_softplus", [x, alpha]):
        x = tf.convert_to_tensor(x, name="x")
        alpha = tf.convert_to_tensor(alpha, x.dtype, name="alpha")
        soft = alpha * tf.nn.softplus(x / alpha)
        if clip is None:
            return soft
        return tf.minimum(soft, tf.convert_to_tensor(clip, x.dtype, name="clip"))


def sampled_sparse_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_sparse_softmax_loss",
) -> Any:
    """The cross entropy of one true class an example against a sample of the others, [batch].

    The arguments are those of `tf.nn.sampled_softmax_loss`; `labels` has the shape [batch, 1].
    """
    return tf.nn.sampled_softmax_loss(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        1,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
    )
