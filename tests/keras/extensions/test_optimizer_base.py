"""Optimisers of a program's own, of `tf.keras.optimizers`: what their updates share, how these are called.

The values after two steps are TensorFlow 1.15.5's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.usefixtures("keras_graph")]


def _shrinking() -> Any:
    """Adam that also shrinks the weights, by a number that all its updates share."""

    class Shrinking(tf.keras.optimizers.Adam):
        def _prepare_local(self, var_device: str, var_dtype: Any, apply_state: Any) -> None:
            super()._prepare_local(var_device, var_dtype, apply_state)
            apply_state[var_device, var_dtype]["shrinkage"] = tf.constant(0.1)

        def _shrunk(self, var: Any, apply_state: Any) -> Any:
            key = var.device, var.dtype.base_dtype
            shared = (apply_state or {}).get(key) or self._fallback_apply_state(*key)
            return var.assign_sub(shared["lr_t"] * var * shared["shrinkage"], use_locking=self._use_locking)

        def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
            with tf.control_dependencies([self._shrunk(var, apply_state)]):
                return super()._resource_apply_dense(grad, var, apply_state=apply_state)

        def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
            with tf.control_dependencies([self._shrunk(var, apply_state)]):
                return super()._resource_apply_sparse(grad, var, indices, apply_state)

    return Shrinking(0.1)


def _own(name: str, sparse: Callable[..., Any], dense: Callable[..., Any], hook: str) -> Any:
    def make(self: Any) -> None:
        tf.keras.optimizers.Optimizer.__init__(self, name)
        self._set_hyper("learning_rate", 0.5)

    body = {"__init__": make, "_resource_apply_dense": dense, hook: sparse}
    return type(name, (tf.keras.optimizers.Optimizer,), body)()


def _with_state() -> Any:
    def dense(self: Any, grad: Any, var: Any, apply_state: Any) -> Any:
        return var.assign_sub(apply_state[var.device, var.dtype.base_dtype]["lr_t"] * grad)

    def sparse(self: Any, grad: Any, var: Any, indices: Any, **options: Any) -> Any:
        return self._resource_scatter_update(var, indices, grad)

    return _own("WithState", sparse, dense, "_resource_apply_sparse_duplicate_indices")


def _without_state() -> Any:
    def dense(self: Any, grad: Any, var: Any) -> Any:
        return var.assign_sub(self._decayed_lr(tf.float32) * grad)

    def sparse(self: Any, grad: Any, var: Any, indices: Any) -> Any:
        return self._resource_scatter_add(var, indices, -grad)

    return _own("WithoutState", sparse, dense, "_resource_apply_sparse")


@pytest.mark.parametrize(
    "make, rows, numbers",
    [
        (_shrinking, [[0.7811, 1.7612], [2.9403, 3.9204], [4.7015, 5.6816]], [0.7811, -2.1592]),
        (_with_state, [[3.0, 3.0], [3.0, 4.0], [2.0, 2.0]], [0.0, -4.0]),
        (_without_state, [[-7.0, -6.0], [3.0, 4.0], [1.0, 2.0]], [0.0, -4.0]),
    ],
)
def test_steps_of_classes_of_ones_own(make: Any, rows: Any, numbers: Any) -> None:
    optimizer = make()
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], use_resource=True)
    w = tf.Variable([1.0, -2.0], use_resource=True)
    gradient = tf.IndexedSlices(tf.constant([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]), tf.constant([0, 2, 0]))
    step = optimizer.apply_gradients([(gradient, v), (tf.constant([1.0, 2.0]), w)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(step)
        np.testing.assert_allclose(session.run(v), rows, atol=1e-5)
        np.testing.assert_allclose(session.run(w), numbers, atol=1e-5)


def test_what_updates_of_adam_share() -> None:
    """Under the names that TensorFlow 1.15 gives it; nothing is computed where no class asks for it."""
    adam = tf.keras.optimizers.Adam(0.1)
    adam._create_hypers()
    assert adam._prepare([]) == {}
    shared = adam._fallback_apply_state("", tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run(shared)
    wanted = {"lr_t": 0.1, "lr": 0.0316226, "beta_1_t": 0.9, "one_minus_beta_2_t": 0.001, "epsilon": 1e-7}
    assert {name: values[name] for name in wanted} == pytest.approx(wanted, rel=1e-4)


def test_types_that_are_not_taken() -> None:
    adam = tf.keras.optimizers.Adam()
    adam._assert_valid_dtypes([tf.constant(1.0)])
    with pytest.raises(ValueError, match=r"Invalid type tf\.int32 for n:0"):
        adam._assert_valid_dtypes([tf.constant(1, name="n")])


def test_steps_without_variables_are_counted() -> None:
    optimizer = tf.keras.optimizers.SGD()
    step = optimizer.apply_gradients([])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(optimizer.iterations) == 1
    variable = tf.Variable(1.0, use_resource=True)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.apply_gradients([(None, variable)])
