"""Losses of `tf.contrib.losses`, for flowstone and, for the golden files, TensorFlow 1.15."""

from __future__ import annotations

from typing import Any


def answers(tf: Any) -> dict[str, Any]:
    """The name and value of each loss under each of several weights, and which are in the collection."""
    c = tf.contrib.losses
    found: dict[str, Any] = {}
    with tf.Graph().as_default(), tf.Session() as session:
        p = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
        labels = tf.constant([[1.0, 1.0, 0.0], [4.0, 4.0, 1.0]])
        hot = tf.constant([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
        logits = tf.constant([[0.1, 0.9, 0.2], [0.5, 0.3, 0.8]])
        unit, unit_labels = tf.nn.l2_normalize(p, 1), tf.nn.l2_normalize(labels, 1)
        by_example = {"one": 1.0, "half": 0.5, "zero": 0.0, "example": tf.constant([2.0, 0.0])}
        weights = dict(by_example, element=tf.constant([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))
        for key, w in weights.items():
            made = {
                "absolute_difference": c.absolute_difference(p, labels, w),
                "mean_squared_error": c.mean_squared_error(p, labels, w),
                "log_loss": c.log_loss(logits, hot, w),
                "sigmoid_cross_entropy": c.sigmoid_cross_entropy(logits, hot, w, label_smoothing=0.2),
                "compute_weighted_loss": c.compute_weighted_loss(p, w, scope="weighing"),
            }
            if key in by_example:
                made.update(
                    softmax_cross_entropy=c.softmax_cross_entropy(logits, hot, w, label_smoothing=0.1),
                    sparse_softmax_cross_entropy=c.sparse_softmax_cross_entropy(logits, [[1], [0]], w),
                    cosine_distance=c.cosine_distance(unit, unit_labels, 1, w),
                    mean_pairwise_squared_error=c.mean_pairwise_squared_error(p, labels, w),
                )
            for name, loss in made.items():
                found[f"{name} {key}"] = [loss.name, round(float(session.run(loss)), 5)]
        hinge = c.hinge_loss(logits, hot)
        found["hinge_loss"] = [hinge.name, session.run(hinge).round(5).tolist()]
        c.add_loss(tf.constant(1.0, name="added"))
        found["losses"] = [loss.name for loss in c.get_losses()]
        total = c.get_total_loss()
        found["total"] = [total.name, round(float(session.run(total)), 4)]
    return found
