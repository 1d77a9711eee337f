"""Losses that bring embeddings of one class together and keep those of different classes apart.

A batch has its classes as integers [batch] and its embeddings as floats [batch, dimension].
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "contrastive_loss",
    "lifted_struct_loss",
    "npairs_loss",
    "npairs_loss_multilabel",
    "triplet_semihard_loss",
]


def contrastive_loss(
    labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: float = 1.0
) -> Any:
    """The mean over pairs of their squared distance, or of the square of what is missing to the margin.

    The first is for pairs that are alike (label 1), the second for others (0).

    Source: Hadsell et al., "Dimensionality Reduction by Learning an Invariant Mapping" (2006).
    """
    squares = tf.reduce_sum(tf.squared_difference(embeddings_anchor, embeddings_positive), 1)
    distances = tf.sqrt(squares)
    alike = tf.cast(labels, tf.float32)
    lacking = tf.square(tf.maximum(margin - distances, 0.0))
    return tf.reduce_mean(alike * tf.square(distances) + (1.0 - alike) * lacking, name="contrastive_loss")


def pairwise_distance(feature: Any, squared: bool = False) -> Any:
    """The Euclidean distances [batch, batch] of all pairs of rows; 0 from a row to itself."""
    lengths = tf.reduce_sum(tf.square(feature), axis=1, keepdims=True)
    squares = lengths + tf.transpose(lengths) - 2.0 * tf.matmul(feature, feature, transpose_b=True)
    squares = tf.maximum(squares, 0.0)
    nothing = tf.less_equal(squares, 0.0)
    if not squared:  # the root's gradient at 0 is not finite
        squares = tf.sqrt(squares + tf.cast(nothing, tf.float32) * 1e-16)
    squares = squares * tf.cast(tf.logical_not(nothing), tf.float32)
    return squares * (1.0 - tf.eye(tf.shape(feature)[0]))


def _same_class(labels: Any) -> Any:
    column = tf.reshape(labels, [-1, 1])
    return tf.equal(column, tf.transpose(column))


def triplet_semihard_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Any:
    """For each pair of one class, how much nearer than the margin the best negative is; the mean over pairs.

    The negative of a pair is the nearest one that is farther than the pair's distance, else the farthest.
    Source: Schroff et al., "FaceNet" (2015). Distances are squared.
    """
    distances = pairwise_distance(embeddings, squared=True)
    same = _same_class(labels)
    different = tf.logical_not(same)
    least = tf.reduce_min(distances, 1, keepdims=True)
    nearer_none = distances[:, tf.newaxis, :] > distances[:, :, tf.newaxis]
    outside = tf.logical_and(different[:, tf.newaxis, :], nearer_none)  # [anchor, positive, negative]
    has_outside = tf.reduce_any(outside, 2)
    spread = tf.where(outside, tf.broadcast_to(distances[:, tf.newaxis, :], tf.shape(outside)),
                      tf.fill(tf.shape(outside), float("inf")))  # fmt: skip
    nearest_outside = tf.reduce_min(spread, 2)
    farthest = tf.reduce_max((distances - least) * tf.cast(different, tf.float32), 1, keepdims=True) + least
    negatives = tf.where(has_outside, nearest_outside, tf.broadcast_to(farthest, tf.shape(distances)))
    pairs = tf.cast(same, tf.float32) - tf.eye(tf.shape(distances)[0])
    losses = tf.maximum((margin + distances - negatives) * pairs, 0.0)
    return tf.truediv(tf.reduce_sum(losses), tf.reduce_sum(pairs), name="triplet_semihard_loss")


def npairs_loss(
    labels: Any,
    embeddings_anchor: Any,
    embeddings_positive: Any,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Any:
    """The cross entropy of each anchor's products with all positives, and a loss of the embeddings' lengths.

    Source: Sohn, "Improved Deep Metric Learning with Multi-class N-pair Loss Objective" (2016). Positives of
    an anchor's class share the probability. `print_losses`: whether each step prints the two parts.
    """
    same = tf.cast(_same_class(labels), tf.float32)
    return _npairs_loss(same, embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def npairs_loss_multilabel(
    sparse_labels: Any,
    embeddings_anchor: Any,
    embeddings_positive: Any,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Any:
    """`npairs_loss` of examples with several classes each.

    Args:
        sparse_labels: a list of SparseTensors, one an example, [1, classes] or [classes]; 1 for its classes.
        embeddings_anchor, embeddings_positive, reg_lambda, print_losses: as of `npairs_loss`.

    Positives share an anchor's probability by how many classes they have in common with it. Raises TypeError
    for labels that are not such a list.
    """
    if not all(isinstance(label, tf.SparseTensor) for label in sparse_labels):
        raise TypeError(f"sparse_labels must be a list of SparseTensors, but got {sparse_labels}")
    with tf.name_scope("NpairsLossMultiLabel"):
        rows = [tf.reshape(tf.sparse_tensor_to_dense(label), [1, -1]) for label in sparse_labels]
        classes = tf.cast(tf.concat(rows, 0), tf.float32)
        common = tf.matmul(classes, classes, transpose_b=True)
        return _npairs_loss(common, embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def _npairs_loss(
    alike: Any, embeddings_anchor: Any, embeddings_positive: Any, reg_lambda: float, print_losses: bool
) -> Any:
    """The loss with targets in proportion to `alike`, [batch, batch]."""
    lengths = [
        tf.reduce_mean(tf.reduce_sum(tf.square(each), 1)) for each in (embeddings_anchor, embeddings_positive)
    ]
    length_loss = tf.multiply(0.25 * reg_lambda, lengths[0] + lengths[1], name="l2loss")
    products = tf.matmul(embeddings_anchor, embeddings_positive, transpose_a=False, transpose_b=True)
    targets = alike / tf.reduce_sum(alike, 1, keepdims=True)
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=tf.stop_gradient(targets), logits=products)
    entropy = tf.reduce_mean(losses, name="xentropy")
    if print_losses:
        entropy = tf.Print(entropy, ["cross entropy:", entropy, "l2loss:", length_loss])
    return length_loss + entropy


def lifted_struct_loss(labels: Any, embeddings: Any, margin: float = 1.0) -> Any:
    """For each pair of one class, its distance and the negatives of both that are within the margin.

    Source: Song et al., "Deep Metric Learning via Lifted Structured Feature Embedding" (2016). The squares
    of what is positive are averaged over pairs, and halved.
    """
    distances = pairwise_distance(embeddings)
    same = _same_class(labels)
    different = tf.cast(tf.logical_not(same), tf.float32)
    near = margin - distances
    least = tf.reduce_min(near, 1, keepdims=True)
    most = tf.reduce_max((near - least) * different, 1, keepdims=True) + least
    bound = tf.maximum(most, tf.transpose(most))  # the greatest exponent of either of a pair
    terms = tf.exp(near[:, tf.newaxis, :] - bound[:, :, tf.newaxis]) * different[:, tf.newaxis, :]
    sums = tf.reduce_sum(terms, 2)
    joined = tf.log(sums + tf.transpose(sums)) + bound + distances
    pairs = tf.cast(same, tf.float32) - tf.eye(tf.shape(distances)[0])
    losses = tf.square(tf.maximum(joined, 0.0)) * pairs
    return tf.truediv(0.25 * tf.reduce_sum(losses), tf.reduce_sum(pairs) / 2.0, name="liftedstruct_loss")
