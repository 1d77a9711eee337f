"""Bijectors: functions, inverses, determinants, and what they remember."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf

Bijector = tf.distributions.bijectors.Bijector


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    """Names of nodes begin anew in each test."""
    with tf.Graph().as_default():
        yield


class Exponent(Bijector):  # type: ignore[misc]
    """y = exp(x), with the inverse's determinant alone."""

    def __init__(self) -> None:
        super().__init__(event_ndims=0, dtype=tf.float32, validate_args=True)
        self.computed = 0

    def _forward(self, x: Any) -> Any:
        self.computed += 1
        return tf.exp(x)

    def _inverse(self, y: Any) -> Any:
        self.computed += 1
        return tf.log(y)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -tf.log(y)


class Doubled(Bijector):  # type: ignore[misc]
    """y = 2x, with the forward determinant alone."""

    def __init__(self) -> None:
        super().__init__(is_constant_jacobian=True, name="twice")

    def _forward(self, x: Any) -> Any:
        return 2.0 * x

    def _inverse(self, y: Any) -> Any:
        return y / 2.0

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(np.log(2.0), tf.float32)


def run(tensor: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensor)


def test_identity() -> None:
    identity = tf.distributions.bijectors.Identity()
    x = tf.constant([1.0, 2.0])
    assert identity.forward(3.0).name == "identity_1/forward/x:0"
    assert identity.inverse(3.0).name == "identity_2/inverse/y:0"
    assert identity.forward(x) is x
    assert identity.inverse(x) is x
    assert run([identity.forward_log_det_jacobian(x), identity.inverse_log_det_jacobian(x)]) == [0.0, 0.0]
    assert identity.forward_event_shape([2]).as_list() == [2]
    assert identity.inverse_event_shape([None, 2]).as_list() == [None, 2]
    assert run(identity.forward_event_shape_tensor([2])).tolist() == [2]
    assert run(identity.inverse_event_shape_tensor([3, 2])).tolist() == [3, 2]
    assert run(identity.event_ndims) == 0
    assert (identity.name, identity.dtype, identity.validate_args) == ("identity", None, False)
    assert (identity.is_constant_jacobian, identity.graph_parents) == (True, [])


def test_one_determinant_follows_from_the_other() -> None:
    x = np.array([0.5, 2.0], np.float32)
    exponent = Exponent()
    np.testing.assert_allclose(run(exponent.forward(x)), np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(run(exponent.inverse(x)), np.log(x), rtol=1e-6)
    np.testing.assert_allclose(run(exponent.forward_log_det_jacobian(x)), x, rtol=1e-6)
    np.testing.assert_allclose(run(exponent.inverse_log_det_jacobian(x)), -np.log(x), rtol=1e-6)
    doubled = Doubled()
    assert doubled.forward(1.0).name == "twice/forward/mul:0"
    np.testing.assert_allclose(run(doubled.inverse_log_det_jacobian(x)), -np.log(2), rtol=1e-6)
    np.testing.assert_allclose(run(doubled.forward_log_det_jacobian(x)), np.log(2), rtol=1e-6)
    with tf.Graph().as_default():
        np.testing.assert_allclose(run(doubled.inverse_log_det_jacobian(x)), -np.log(2), rtol=1e-6)


def test_what_was_computed_is_remembered() -> None:
    exponent = Exponent()
    x = tf.constant([0.5, 2.0])
    y = exponent.forward(x)
    assert exponent.forward(x) is y
    assert exponent.inverse(y) is x
    assert exponent.computed == 1
    there = exponent.inverse_log_det_jacobian(y)
    assert exponent.inverse_log_det_jacobian(y) is there
    assert exponent.forward_log_det_jacobian(x).op.inputs[0] is there


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="float64 but expected float32"):
        Exponent().forward(np.float64(1))
    with pytest.raises(ValueError, match="not a Tensor"):
        Bijector(graph_parents=[3])
    with pytest.raises(NotImplementedError, match="forward"):
        Bijector().forward(1.0)
    assert Exponent().name == "exponent"
    assert Bijector().event_ndims is None
