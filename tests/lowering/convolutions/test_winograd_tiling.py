"""Images are taken a few at a time, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree

RNG = np.random.default_rng(23)


NAME = "convolve_by_winograd"


@pytest.fixture
def everywhere(set_profile) -> None:
    """Uses the algorithm wherever it can be."""
    set_profile(winograd_channels=1, winograd_gain=1e9)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


@pytest.mark.needs_onednn
def test_many_images_are_taken_in_pieces(monkeypatch, set_profile, everywhere) -> None:
    set_profile(core_cache=4 * 10 * 10 * 6 * 2 * 2 // 3)
    x = tf.placeholder(tf.float32, [7, 10, 10, 4])
    w = tf.Variable(values(3, 3, 4, 6))
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    fetches = [y, *tf.gradients(y * y, [x, w])]
    agree(
        monkeypatch,
        fetches,
        {x: values(7, 10, 10, 4)},
        NAME,
        fires=3,
        setup=tf.global_variables_initializer(),
    )
