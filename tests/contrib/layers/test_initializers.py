"""Initialisers by the number of connections. The spreads are what 1.15.5 puts into its graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

layers = tf.contrib.layers
SHAPES = ([3, 3, 4, 5], [4, 5], [7], [])


@pytest.mark.parametrize(
    ("initializer", "spreads"),
    [
        (layers.xavier_initializer(seed=1), (0.27216554, 0.8164966, 0.6546537, 1.7320508)),
        (layers.variance_scaling_initializer(seed=1), (0.26874194, 0.8062258, 0.6094494, 1.6124516)),
        (
            layers.variance_scaling_initializer(1.0, "FAN_OUT", seed=1),
            (0.16996732, 0.5099019, 0.43094581, 1.14017546),
        ),
        (layers.xavier_initializer_conv2d(False, seed=2), (0.17916128, 0.5374839, 0.43094581, 1.14017546)),
    ],
)
def test_spreads(initializer: Any, spreads: tuple[float, ...]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        for shape, spread in zip(SHAPES, spreads):
            made = initializer(shape)
            assert made.shape.as_list() == shape
            constants = [session.run(x) for op in made.graph.get_operations() for x in op.outputs[:1]
                         if op.type == "Const" and op.outputs[0].dtype == tf.float32]  # fmt: skip
            assert any(np.isclose(abs(value), spread, rtol=1e-6).all() for value in constants), spread


def test_it_sees_the_whole_of_a_partitioned_variable() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        whole = tf.get_variable(
            "w", [100, 4], initializer=layers.xavier_initializer(), partitioner=tf.fixed_size_partitioner(50)
        )
        session.run(tf.global_variables_initializer())
        assert np.abs(session.run(tf.convert_to_tensor(whole))).max() <= np.sqrt(6 / 104)


def test_refused() -> None:
    with pytest.raises(TypeError, match="non-floating"):
        layers.xavier_initializer(dtype=tf.int32)
    with pytest.raises(TypeError, match="non-floating"):
        layers.xavier_initializer()([3], dtype=tf.int32)
    with pytest.raises(TypeError, match="Unknown mode X"):
        layers.variance_scaling_initializer(mode="X")
