"""`ShampooOptimizer`: five steps, with the losses of TensorFlow 1.15."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

Shampoo = tf.contrib.opt.ShampooOptimizer
Given = dict[str, Any]


def losses(
    loss_of: Any, shape: list[int], given: Given, is_resource: bool = False
) -> tuple[list[float], Any]:
    size = int(np.prod(shape))
    start = (np.arange(size) / size + 0.1).reshape(shape).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable(start, use_resource=is_resource)
        loss, step = loss_of(w, np.linspace(-1, 1, size).reshape(shape)), tf.train.create_global_step()
        optimizer = Shampoo(global_step=step, learning_rate=0.1, **given)
        train = optimizer.minimize(loss, global_step=step)
        session.run(tf.global_variables_initializer())
        found = []
        for _ in range(5):
            session.run(train)
            found.append(float(session.run(loss)))
    return found, optimizer.get_slot_names()


def dense(w: Any, target: Any) -> Any:
    return tf.reduce_sum(tf.square(w - target) * (1 + np.abs(target)))


def sparse(w: Any, target: Any) -> Any:
    return tf.reduce_sum(tf.square(tf.gather(w, [1, 4, 1]) - target[:3].astype(np.float32)))


@pytest.mark.parametrize("is_resource", [False, True])
@pytest.mark.parametrize(
    "rank, given, expected",
    [
        (1, {}, [2.288, 1.804, 1.462, 1.201, 1.003]),
        (2, {}, [6.989, 6.118, 5.499, 5.002, 4.587]),
        (3, {}, [14.72, 13.59, 12.73, 12.01, 11.39]),
        (2, {"gbar_decay": 0.9, "gbar_weight": 0.1}, [8.15, 7.959, 7.742, 7.51, 7.27]),
        (2, {"mat_gbar_decay": 0.5, "mat_gbar_weight": 0.5}, [6.535, 5.175, 4.149, 3.3, 2.583]),
        (2, {"max_matrix_size": 3}, [6.655, 5.677, 4.965, 4.406, 3.948]),
        (1, {"max_matrix_size": 3}, [2.496, 2.116, 1.848, 1.641, 1.473]),
        (2, {"use_iterative_root": True}, [6.989, 6.118, 5.499, 5.002, 4.587]),
        (2, {"svd_interval": 2, "precond_update_interval": 2}, [3.693, 3.086, 5.328, 4.493, 3.803]),
    ],
)
def test_dense_gradients(rank: int, given: Given, expected: list[float], is_resource: bool) -> None:
    found, slots = losses(dense, [4, 3, 2][:rank], given, is_resource)
    np.testing.assert_allclose(found, expected, rtol=2e-3)
    assert {"gbar", "Gbar_0"} <= set(slots) and ("H_0" in slots) == ("svd_interval" in given)


# With long axes TensorFlow 1.15 leaves the rows of a resource variable as they are: its update is never run.
@pytest.mark.parametrize("is_resource", [False, True])
@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, [9.157, 8.192, 7.497, 6.939, 6.471]),
        ({"max_matrix_size": 4}, [9.465, 8.732, 8.171, 7.711, 7.32]),
        ({"max_matrix_size": 2}, [9.467, 8.735, 8.174, 7.715, 7.323]),
    ],
)
def test_sparse_gradients(given: Given, expected: list[float], is_resource: bool) -> None:
    np.testing.assert_allclose(losses(sparse, [6, 3], given, is_resource)[0], expected, rtol=2e-3)


def test_hyperparameters_that_are_functions_of_the_step() -> None:
    constant = losses(dense, [4, 3], {"gbar_decay": 0.5, "svd_interval": 2})
    given = {"gbar_decay": lambda step: 0.5 + 0 * step, "svd_interval": lambda step: 2.0}
    np.testing.assert_allclose(losses(dense, [4, 3], given)[0], constant[0], rtol=1e-5)


def test_sums_of_rows_cannot_decay() -> None:
    with pytest.raises(ValueError, match=r"mat_gbar_decay must be 1\.0"):
        losses(sparse, [6, 3], {"max_matrix_size": 4, "mat_gbar_decay": 0.5})
