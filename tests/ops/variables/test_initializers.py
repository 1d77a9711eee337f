"""Initialisers: values, nodes, configurations and errors, as TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.variables import initializers

pytestmark = pytest.mark.usefixtures("graph")


def evaluated(tensor: tf.Tensor) -> np.ndarray:
    """The value of a tensor."""
    with tf.Session() as session:
        return np.asarray(session.run(tensor))


def test_fixed_values() -> None:
    assert evaluated(tf.zeros_initializer()([2])).tolist() == [0, 0]
    assert evaluated(tf.ones_initializer(tf.int32)([2])).tolist() == [1, 1]
    assert evaluated(tf.constant_initializer([1.0, 2.0])([3])).tolist() == [1, 2, 2]
    assert evaluated(tf.constant_initializer(3, tf.int64)([1, 2])).tolist() == [[3, 3]]
    assert evaluated(initializers.identity(2.0)([2, 3])).tolist() == [[2, 0, 0], [0, 2, 0]]


@pytest.mark.parametrize(
    ("initializer", "shape", "limit"),
    [
        (initializers.glorot_uniform(seed=1), [3, 4], 0.9258201),
        (initializers.he_uniform(seed=1), [3, 4], 1.4142135),
        (initializers.lecun_uniform(seed=1), [3, 4], 1.0),
        (initializers.variance_scaling(2.0, "fan_out", "uniform", seed=1), [3, 3, 4, 8], 0.28867513),
        (initializers.variance_scaling(2.0, "fan_out", "uniform", seed=1), [5], 1.0954451),
        (initializers.uniform_unit_scaling(1.5, seed=1), [3, 4, 5], 0.75),
        (initializers.random_uniform(-1, 1, seed=1), [3, 4], 1.0),
    ],
)
def test_uniform_ranges(initializer: Any, shape: list[int], limit: float) -> None:
    tensor = initializer(shape)
    low, high = (tensor.graph.get_tensor_by_name(f"random_uniform/{end}:0") for end in ("min", "max"))
    np.testing.assert_allclose(evaluated(low), -limit, rtol=1e-6)
    np.testing.assert_allclose(evaluated(high), limit, rtol=1e-6)
    values = evaluated(tensor)
    assert values.shape == tuple(shape) and -limit <= values.min() < 0 < values.max() <= limit


@pytest.mark.parametrize(
    ("initializer", "node", "deviation"),
    [
        (initializers.variance_scaling(), "truncated_normal", 0.656359076),
        (initializers.variance_scaling(2.0, "fan_avg", "untruncated_normal"), "random_normal", 0.755928934),
        (initializers.glorot_normal(), "truncated_normal", 0.607670426),
        (initializers.he_normal(), "truncated_normal", 0.928231895),
        (initializers.lecun_normal(), "truncated_normal", 0.656359076),
        (initializers.random_normal(0.0, 2.0), "random_normal", 2.0),
        (initializers.truncated_normal(0.0, 2.0), "truncated_normal", 2.0),
    ],
)
def test_normal_deviations(graph: tf.Graph, initializer: Any, node: str, deviation: float) -> None:
    assert initializer([3, 4]).name == f"{node}:0"
    np.testing.assert_allclose(evaluated(graph.get_tensor_by_name(f"{node}/stddev:0")), deviation, rtol=1e-6)


def test_a_part_is_scaled_as_the_whole() -> None:
    whole = tf.get_variable(
        "w", [4, 2], partitioner=tf.fixed_size_partitioner(2), initializer=initializers.lecun_uniform()
    )
    high = tf.get_default_graph().get_tensor_by_name("w/part_1/Initializer/random_uniform/max:0")
    np.testing.assert_allclose(evaluated(high), np.sqrt(3 / 4), rtol=1e-6)
    assert len(whole) == 2


@pytest.mark.parametrize(
    ("initializer", "config"),
    [
        (initializers.zeros(), {"dtype": "float32"}),
        (initializers.constant(3), {"value": 3, "dtype": "float32"}),
        (
            initializers.random_uniform(-1, 1, seed=3),
            {"minval": -1, "maxval": 1, "seed": 3, "dtype": "float32"},
        ),
        (
            initializers.random_normal(0.0, 2.0),
            {"mean": 0.0, "stddev": 2.0, "seed": None, "dtype": "float32"},
        ),
        (initializers.glorot_uniform(), {"seed": None, "dtype": "float32"}),
        (initializers.orthogonal(2.0), {"gain": 2.0, "seed": None, "dtype": "float32"}),
        (
            initializers.he_normal(),
            {
                "scale": 2.0,
                "mode": "fan_in",
                "distribution": "truncated_normal",
                "seed": None,
                "dtype": "float32",
            },
        ),
    ],
)
def test_configurations_there_and_back(initializer: Any, config: dict[str, Any]) -> None:
    assert initializer.get_config() == config
    assert type(initializer).from_config(config).get_config() == config


def test_errors() -> None:
    with pytest.raises(ValueError, match="`scale` must be a positive float"):
        initializers.variance_scaling(-1.0)
    with pytest.raises(ValueError, match="`mode` should be one of"):
        initializers.variance_scaling(1.0, "x")
    with pytest.raises(ValueError, match="`distribution` should be one of"):
        initializers.variance_scaling(1.0, "fan_in", "x")
    with pytest.raises(ValueError, match="expected to be floating point"):
        initializers.orthogonal(dtype=tf.int32)
    with pytest.raises(ValueError, match="only be used for 2D matrices"):
        initializers.identity()([3])
    with pytest.raises(TypeError, match="Invalid type for initial value"):
        initializers.constant(object())
    with pytest.raises(TypeError, match=r"Expected Tensor's shape: \(2,\), but got \(3,\)"):
        initializers.constant([1, 2, 3], verify_shape=True)([2])
