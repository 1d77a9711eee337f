"""Products from a packed copy of the weights: activations, and both orientations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree

RNG = np.random.default_rng(19)


ROWS, TERMS, COLUMNS = 3, 1024, 1024


ENOUGH = 20  # runs until weights are packed


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def layer(resource: bool = False, transposed: bool = False, rows: int = ROWS) -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [rows, TERMS], name="x")
    initial = tf.random_normal([TERMS, COLUMNS], seed=3)
    w = tf.get_variable("w", initializer=initial, use_resource=resource)
    return x, w, tf.matmul(x, w, transpose_b=transposed)


@pytest.mark.needs_onednn
@pytest.mark.parametrize("activation", [tf.nn.relu, tf.nn.tanh, tf.nn.sigmoid])
def test_activations_stay_in_the_product(monkeypatch, activation) -> None:
    x, _, y = layer()
    z = activation(tf.nn.bias_add(y, tf.Variable(tf.ones([COLUMNS]))))
    log = agree(
        monkeypatch,
        [z],
        {x: values(ROWS, TERMS)},
        "pack_weights",
        fires=1,
        setup=tf.global_variables_initializer(),
    )
    assert "pack_weights: " in log and "_PackedMatMul" in log


@pytest.mark.needs_onednn
def test_both_orientations_of_one_variable() -> None:
    x, w, y = layer()
    z = tf.matmul(x, w, transpose_b=True)
    feed = {x: values(ROWS, TERMS)}
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        weights = s.run(w)
        for _ in range(ENOUGH):
            np.testing.assert_allclose(s.run(y, feed), feed[x] @ weights, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(s.run(z, feed), feed[x] @ weights.T, rtol=1e-3, atol=1e-3)
