"""The functions of `tf.math.special`: names of nodes, shapes, values that are known exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flowstone as tf

BESSEL = ("i0", "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "y0", "y1")
FUNCTIONS = (
    *(f"bessel_{kind}" for kind in BESSEL),
    "dawsn",
    "expint",
    "fresnel_cos",
    "fresnel_sin",
    "spence",
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_its_shape_and_its_name(name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [None, 2])
        y = getattr(tf.math.special, name)(x, name="y")
        assert y.shape.as_list() == [None, 2]
        assert y.op.name.split("/")[0] == "y"
        assert np.isfinite(session.run(y, {x: [[0.5, 1.5]]})).all()


def test_values_that_are_known() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        special = tf.math.special
        x = tf.constant(3.0, tf.float64)
        wronskian = special.bessel_j1(x) * special.bessel_y0(x) - special.bessel_j0(x) * special.bessel_y1(x)
        modified = special.bessel_i0(x) * special.bessel_k1(x) + special.bessel_i1(x) * special.bessel_k0(x)
        scaled = special.bessel_k0e(x) / special.bessel_k0(x), special.bessel_k1e(x) / special.bessel_k1(x)
        dilogarithm = special.spence(tf.constant([0.0, 0.5, 1.0, 2.0], tf.float64))
        far = special.fresnel_cos(tf.constant(1e12, tf.float64))
        got = session.run([wronskian, modified, *scaled, dilogarithm, far])
    expected = [
        2 / (3 * math.pi),
        1 / 3,
        math.exp(3),
        math.exp(3),
        [math.pi**2 / 6, math.pi**2 / 12 - math.log(2) ** 2 / 2, 0, -(math.pi**2) / 12],
        0.5,
    ]
    for one, other in zip(got, expected):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
