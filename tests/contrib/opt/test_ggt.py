"""`GGTOptimizer`: six steps, with the losses of TensorFlow 1.15."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf


@pytest.mark.parametrize("is_resource", [False, True])
@pytest.mark.parametrize(
    "given, expected, tolerance",
    [
        # While there are fewer gradients than columns, what is left over is rounding times a thousand.
        ({}, [10.68, 9.184, 7.776, 6.532, 5.415, 4.488], 1e-2),
        ({"window": 3}, [10.68, 9.184, 7.782, 6.658, 5.723, 4.931], 3e-3),
        (
            {"window": 2, "beta1": 0.5, "svd_eps": 1e-3},
            [10.65, 9.22, 8.061, 7.062, 6.201, 5.426],
            5e-4,
        ),
        ({"window": 3, "eps": 10.0}, [10.68, 9.19, 7.792, 6.675, 5.745, 4.953], 5e-4),
    ],
)
def test_steps(given: dict[str, Any], expected: list[float], tolerance: float, is_resource: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3) / 6, use_resource=is_resource, name="w")
        b = tf.Variable([0.5, -0.5], use_resource=is_resource, name="b")
        y = tf.matmul(tf.constant([[1.0, 2.0], [0.5, -1.0]]), w)
        loss = tf.reduce_sum(tf.square(y - 1)) + tf.reduce_sum(tf.square(b + y[:, 0]))
        optimizer = tf.contrib.opt.GGTOptimizer(learning_rate=0.1, **given)
        train = optimizer.minimize(loss)
        session.run(tf.global_variables_initializer())
        found = []
        for _ in range(6):
            session.run(train)
            found.append(float(session.run(loss)))
        names = sorted(each.op.name for each in optimizer.variables())
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    assert names == ["flat_grad", "global_step", "grad_buffer", "moment1"]


def test_sparse_gradients_are_refused() -> None:
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="Sparse gradient updates"):
        tf.contrib.opt.GGTOptimizer().minimize(tf.reduce_sum(tf.gather(tf.Variable([1.0, 2.0]), [0])))
