"""Crops by machine code, beside those of ATen's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.images import image_sampling

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
SHAPES = [  # images, boxes, size of crops
    ((2, 5, 7, 3), 9, (4, 6)),
    ((1, 9, 1, 8), 3, (1, 5)),
    ((3, 20, 30, 19), 40, (17, 1)),
    ((2, 40, 50, 16), 90, (30, 30)),  # by a team
    ((2, 1, 1, 1), 5, (2, 2)),
    ((1, 4, 4, 0), 2, (3, 3)),
    ((1, 4, 4, 2), 0, (3, 3)),
]


def given(dtype: str, shape: tuple[int, ...], count: int, size: tuple[int, int]) -> list[Any]:
    """Images with infinities and NaN, boxes across their borders and mirrored, a gradient of crops."""
    chance = np.random.default_rng(sum(shape) + count)
    with np.errstate(invalid="ignore"):
        x = (chance.normal(size=shape) * 50).astype(dtype)
    if dtype == "float32" and x.size > 50:
        x.flat[7], x.flat[40] = np.inf, np.nan
    boxes = chance.uniform(-0.5, 1.5, (count, 4)) * (chance.random((count, 1)) < 0.9)
    images = chance.integers(0, shape[0], count)
    dy = chance.normal(size=(count, *size, shape[3]))
    return [x, boxes.astype("float32"), images.astype("int32"), dy.astype("float32")]


def results(native: int, method: str, arrays: list[Any], size: tuple[int, int]) -> list[Any]:
    """The crops, the gradient for images, and that for boxes, with or without machine code."""
    before, flags.NATIVE = flags.NATIVE, native
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            x, boxes, images, dy = (tf.placeholder(each.dtype) for each in arrays)
            crops = tf.image.crop_and_resize(x, boxes, images, size, method=method, extrapolation_value=0.25)
            fetches = [crops]
            shape = list(arrays[0].shape)
            raw = tf.raw_ops
            if x.dtype.is_floating:
                fetches.append(
                    raw.CropAndResizeGradImage(
                        grads=dy, boxes=boxes, box_ind=images, image_size=shape, T=x.dtype, method=method
                    )
                )
            if method == "bilinear":
                fetches.append(raw.CropAndResizeGradBoxes(grads=dy, image=x, boxes=boxes, box_ind=images))
            found: list[Any] = session.run(fetches, dict(zip((x, boxes, images, dy), arrays)))
            return found
    finally:
        flags.NATIVE = before


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "uint8", "int8", "uint16", "int16", "int32", "int64"]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_crops_and_gradients_are_those_of_the_other_kernels(shape: Any, dtype: str, method: str) -> None:
    arrays = given(dtype, *shape)
    if dtype == "float32":  # of pixels that are not finite, crops only
        finite = [np.nan_to_num(arrays[0], posinf=3), *arrays[1:]]
        plain, fast = (results(native, method, arrays, shape[2])[0] for native in (0, 1))
        np.testing.assert_array_equal(fast, plain)
        arrays = finite
    plain, fast = (results(native, method, arrays, shape[2]) for native in (0, 1))
    np.testing.assert_array_equal(fast[0], plain[0])
    for one, other in zip(fast[1:], plain[1:]):
        assert one.dtype == other.dtype
        bound = np.abs(other.astype("float64")).max(initial=1)
        np.testing.assert_allclose(one, other, rtol=1e-3 if dtype == "float16" else 1e-5, atol=2e-6 * bound)


@pytest.mark.parametrize("native", [0, 1])
@pytest.mark.parametrize(
    ("box", "image", "error"),
    [
        ([0, 0, 1, np.nan], 0, tf.errors.InvalidArgumentError),
        ([0, -np.inf, 1, 1], 0, tf.errors.InvalidArgumentError),
        ([0, 0, 1, 1], 2, tf.errors.OutOfRangeError),
        ([0, 0, 1, 1], -1, tf.errors.OutOfRangeError),
    ],
)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_boxes_that_cannot_be(native: int, box: Any, image: int, error: Any, which: int) -> None:
    arrays = given("float32", (2, 5, 7, 3), 9, (4, 6))
    arrays[1][5], arrays[2][5] = box, image
    with pytest.raises(error):
        results(native, "bilinear", arrays, (4, 6))[which]


def test_images_that_are_not_contiguous_and_other_types() -> None:
    x = np.random.default_rng(0).normal(size=(1, 6, 5, 4)).astype("float32").transpose(0, 2, 1, 3)
    arrays = given("float32", (1, 5, 6, 4), 3, (2, 3))
    plain, fast = (results(native, "bilinear", [x, *arrays[1:]], (2, 3))[0] for native in (0, 1))
    np.testing.assert_array_equal(fast, plain)


def test_nothing_is_offered_without_the_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    assert image_sampling.sampler(torch.float32, False) is not None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert image_sampling.sampler(torch.float32, False) is None
