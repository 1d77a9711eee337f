"""Mirrored padding of several dimensions and its gradient, beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

RNG = np.random.default_rng(5)
MODES = {"REFLECT": "reflect", "SYMMETRIC": "symmetric"}
CASES = [
    ((4,), [[3, 2]]),
    ((3, 5), [[2, 2], [0, 4]]),
    ((3, 5), [[0, 0], [0, 0]]),
    ((2, 4, 3), [[1, 0], [3, 3], [0, 2]]),
    ((4, 2, 3, 2), [[0, 0], [1, 1], [2, 2], [0, 0]]),
    ((0, 3), [[0, 0], [1, 2]]),
]


@pytest.mark.parametrize(
    ("dims", "pairs", "mode"),
    [(*case, mode) for case in CASES for mode in MODES if mode != "REFLECT" or all(case[0])],
)
def test_images_are_mirrored_along_every_dimension(dims: Any, pairs: Any, mode: str) -> None:
    x = RNG.standard_normal(dims)
    fed = tf.placeholder(tf.float64, [None] * len(dims))
    with tf.Session() as session:
        found = session.run(F.MirrorPad(fed, np.array(pairs, np.int32), mode=mode), {fed: x})
    np.testing.assert_array_equal(found, np.pad(x, pairs, MODES[mode]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("dims", "pairs"), CASES)
def test_a_gradient_is_added_up_where_its_element_came_from(dims: Any, pairs: Any, mode: str) -> None:
    sources = np.pad(np.arange(np.prod(dims)).reshape(dims), pairs, MODES[mode])
    dy = RNG.standard_normal(sources.shape)
    fed = tf.placeholder(tf.float64, [None] * len(dims))
    with tf.Session() as session:
        found = session.run(F.MirrorPadGrad(fed, np.array(pairs, np.int32), mode=mode), {fed: dy})
    wanted = np.zeros(int(np.prod(dims)))
    np.add.at(wanted, sources.reshape(-1).astype(int), dy.reshape(-1))
    np.testing.assert_allclose(found, wanted.reshape(dims), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "mode, size, before, told",
    [
        ("REFLECT", 2, 3, "less than the dimension size: 3, 0 not less than 2"),
        (
            "REFLECT",
            0,
            0,
            "less than the dimension size: 0, 0 not less than 0",
        ),  # an empty dimension has no edge
        ("SYMMETRIC", 2, 3, "no greater than the dimension size: 3, 0 greater than 2"),
    ],
)
def test_too_wide_a_padding_is_refused(mode: str, size: int, before: int, told: str) -> None:
    fed = tf.placeholder(tf.float32, [None, None])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=told):
        session.run(F.MirrorPad(fed, [[before, 0], [1, 0]], mode=mode), {fed: np.ones([size, 3], "f")})
