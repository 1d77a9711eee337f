"""Random flips and adjustments: each outcome as often as it should be, repeated by a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.images.image_scaling import resize_images

IMAGE = np.random.default_rng(1).uniform(0.2, 0.8, (4, 5, 3)).astype(np.float32)
BATCH = np.stack([IMAGE] * 200)


@pytest.mark.parametrize(
    ("flip", "axis"), [(tf.image.random_flip_left_right, 1), (tf.image.random_flip_up_down, 0)]
)
def test_an_image_is_flipped_half_of_the_time(flip: Callable[..., Any], axis: int) -> None:
    flipped = flip(IMAGE, seed=5)
    assert flipped.shape.as_list() == [4, 5, 3]
    count = 0
    with tf.Session() as session:
        for _ in range(100):
            found = session.run(flipped)
            is_flipped = not np.array_equal(found, IMAGE)
            np.testing.assert_array_equal(found, np.flip(IMAGE, axis) if is_flipped else IMAGE)
            count += is_flipped
    assert 30 <= count <= 70


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize(
    ("flip", "axis"), [(tf.image.random_flip_left_right, 1), (tf.image.random_flip_up_down, 0)]
)
def test_each_image_of_a_batch_is_flipped_for_itself(flip: Callable[..., Any], axis: int, dtype: str) -> None:
    batch = (BATCH * 100).astype(dtype)
    with tf.Session() as session:
        found = session.run(flip(batch, seed=5))
    assert found.dtype == batch.dtype
    flipped = [not np.array_equal(one, batch[0]) for one in found]
    for one, is_flipped in zip(found, flipped, strict=True):
        np.testing.assert_array_equal(one, np.flip(batch[0], axis) if is_flipped else batch[0])
    assert 70 <= sum(flipped) <= 130


# A function of the image, its arguments, what it adjusts by, and the range of that.
ADJUSTMENTS = [
    (tf.image.random_brightness, (0.3,), lambda x: (x - IMAGE).mean(), (-0.3, 0.3)),
    (tf.image.random_contrast, (0.5, 1.5), lambda x: np.ptp(x, (0, 1)) / np.ptp(IMAGE, (0, 1)), (0.5, 1.5)),
]


@pytest.mark.parametrize(("function", "arguments", "measure", "limits"), ADJUSTMENTS)
def test_adjustments_are_uniform_in_their_range(
    function: Callable[..., Any], arguments: Any, measure: Callable[..., Any], limits: tuple[float, float]
) -> None:
    adjusted = function(IMAGE, *arguments, seed=3)
    with tf.Session() as session:
        found = np.array([measure(session.run(adjusted)) for _ in range(200)])
    low, high = limits
    assert low - 1e-4 <= found.min() < low + 0.1 * (high - low)
    assert high + 1e-4 >= found.max() > high - 0.1 * (high - low)
    assert abs(found.mean() - (low + high) / 2) < 0.1 * (high - low)


def hues(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hue and the saturation."""
    with tf.Session() as session:
        converted = session.run(tf.image.rgb_to_hsv(tf.constant(image)))
    return converted[..., 0], converted[..., 1]


def test_hue_turns_and_saturation_grows_alike_everywhere() -> None:
    with tf.Session() as session:
        turned, coloured = session.run(
            [tf.image.random_hue(IMAGE, 0.2, seed=3), tf.image.random_saturation(IMAGE, 0.3, 0.9, seed=3)]
        )
    turn = (hues(turned)[0] - hues(IMAGE)[0]) % 1
    turn = np.where(turn > 0.5, turn - 1, turn)
    assert np.ptp(turn) < 1e-4 and 0 < abs(turn.mean()) <= 0.2
    share = hues(coloured)[1] / hues(IMAGE)[1]
    assert np.ptp(share) < 1e-4 and 0.3 <= share.mean() <= 0.9


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (tf.image.random_flip_left_right, ()),
        (tf.image.random_brightness, (0.3,)),
        (tf.image.random_contrast, (0.2, 1.8)),
        (tf.image.random_hue, (0.3,)),
        (tf.image.random_saturation, (0.2, 1.8)),
        (tf.image.random_crop, ([2, 2, 3],)),
    ],
)
def test_seeds_repeat_them(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    def drawn(seed: int) -> list[np.ndarray]:
        with tf.Graph().as_default(), tf.Session() as session:
            result = function(tf.constant(IMAGE), *arguments, seed=seed)
            return [session.run(result) for _ in range(8)]

    np.testing.assert_array_equal(drawn(1), drawn(1))
    assert not np.array_equal(drawn(1), drawn(2))


def test_names_that_mean_the_same() -> None:
    assert tf.image.resize is resize_images  # programs of 0.x may have set the older name
    assert tf.image.resize_with_crop_or_pad is tf.image.resize_image_with_crop_or_pad
    assert tf.image.random_crop is tf.random_crop
    methods = tf.image.ResizeMethod
    assert [methods.BILINEAR, methods.NEAREST_NEIGHBOR, methods.BICUBIC, methods.AREA] == [0, 1, 2, 3]
