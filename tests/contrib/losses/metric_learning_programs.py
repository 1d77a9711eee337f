"""Losses of embeddings, run by flowstone and TensorFlow 1.15 alike."""

from __future__ import annotations

from typing import Any

import numpy as np


def answers(tf: Any) -> dict[str, Any]:
    """Each loss and the sum of the absolute values of its gradient."""
    m = tf.contrib.losses.metric_learning
    random = np.random.RandomState(0)
    first, second = (random.randn(8, 3).astype(np.float32) for _ in range(2))
    labels = [0, 1, 0, 2, 1, 0, 2, 3]
    found = {}
    for name in ("contrastive", "triplet", "triplet_wide", "npairs", "lifted", "lifted_narrow"):
        with tf.Graph().as_default(), tf.Session() as session:
            a, b = tf.constant(first), tf.constant(second)
            loss = {
                "contrastive": lambda: m.contrastive_loss([0, 1, 1, 0, 1, 0, 1, 1], a, b, 1.5),
                "triplet": lambda: m.triplet_semihard_loss(tf.constant(labels), a),
                "triplet_wide": lambda: m.triplet_semihard_loss(tf.constant(labels), a, 5.0),
                "npairs": lambda: m.npairs_loss(tf.constant(labels), a, b, 0.1),
                "lifted": lambda: m.lifted_struct_loss(tf.constant(labels), a),
                "lifted_narrow": lambda: m.lifted_struct_loss(tf.constant(labels), a, 0.1),
            }[name]()
            value, slope = session.run([loss, tf.gradients(loss, a)[0]])
            found[name] = [loss.name, float(value), float(np.abs(slope).sum())]
    return found
