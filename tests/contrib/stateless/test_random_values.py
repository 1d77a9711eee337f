"""Random values of seeds, called as in TensorFlow 1.4 and 1.15."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

stateless = tf.contrib.stateless


@pytest.mark.parametrize(
    ("name", "core"),
    [
        ("stateless_random_normal", "stateless_normal"),
        ("stateless_random_uniform", "stateless_uniform"),
        ("stateless_truncated_normal", "stateless_truncated_normal"),
    ],
)
def test_values_are_the_cores(name: str, core: str) -> None:
    function: Any = getattr(stateless, name)
    with tf.Graph().as_default(), tf.Session() as session:
        values = [
            function([3], [1, 2]),
            function([3], seed=[1, 2], dtype=tf.float64),
            function([3], [1, 2], tf.float64),
            function([3], [1, 2], -2.0, 3.0),
            getattr(tf.random, core)([3], [1, 2]),
            getattr(tf.random, core)([3], [1, 2], -2.0, 3.0),
        ]
        found = session.run(values)
    np.testing.assert_array_equal(found[0], found[4])
    np.testing.assert_array_equal(found[1], found[2])
    np.testing.assert_array_equal(found[3], found[5])
    assert found[2].dtype == np.float64


def test_classes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = session.run(stateless.stateless_multinomial([[0.0, 9.0]], 5, seed=[1, 2]))
    assert drawn.shape == (1, 5) and drawn.mean() > 0.5
