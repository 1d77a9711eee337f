"""Projective transforms, glimpses and drawn boxes by machine code, beside ATen's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.images import image_windows
from flowstone.ops.images import glimpses

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
RAW = tf.raw_ops


def with_and_without(monkeypatch: pytest.MonkeyPatch, build: Callable[..., Any], *arrays: Any) -> list[Any]:
    """What a session gives for these feeds, without and with machine code."""
    found = []
    for native in (0, 1):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = [tf.placeholder(each.dtype, each.shape) for each in arrays]
            found.append(session.run(build(*fed), dict(zip(fed, arrays))))
    assert found[0].dtype == found[1].dtype
    return found


@pytest.mark.parametrize("interpolation", ["NEAREST", "BILINEAR"])
@pytest.mark.parametrize("mode", ["CONSTANT", "REFLECT", "WRAP", "NEAREST"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int32", "int64", "bfloat16"])
def test_transformed_images_are_the_same(
    monkeypatch: pytest.MonkeyPatch, dtype: str, mode: str, interpolation: str
) -> None:
    """Places in and beyond the image, some at no place at all; one transform of all images, or one each."""
    chance = np.random.default_rng(0)
    for shape, size, count in (
        ((3, 7, 9, 3), (8, 5), 3),
        ((2, 5, 1, 9), (6, 6), 1),
        ((1, 1, 1, 1), (3, 3), 1),
        ((0, 4, 4, 2), (3, 3), 1),
        ((2, 40, 60, 16), (50, 70), 2),  # by a team
    ):
        x = np.abs(chance.normal(size=shape) * 80) if dtype == "uint8" else chance.normal(size=shape) * 80
        transforms = chance.normal(size=(count, 8)) * [1, 0.3, 4, 0.3, 1, 4, 0.01, 0.01]
        transforms[0, 6:] = -0.25, 0
        transforms[-1, 2] = 3e9
        plain, fast = with_and_without(
            monkeypatch,
            lambda x, t, size=size: RAW.ImageProjectiveTransformV3(
                images=x, transforms=t, output_shape=size, fill_value=7.6, interpolation=interpolation,
                fill_mode=mode,
            ),
            x.astype(tf.as_dtype(dtype).as_numpy_dtype),
            transforms.astype("float32"),
        )  # fmt: skip
        np.testing.assert_array_equal(fast, plain)


@pytest.mark.parametrize("interpolation", ["NEAREST", "BILINEAR"])
def test_transforms_that_are_not_finite(monkeypatch: pytest.MonkeyPatch, interpolation: str) -> None:
    x = np.arange(48, dtype="float32").reshape(1, 4, 4, 3)
    x[0, 1, 2] = np.nan, np.inf, -np.inf
    for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        for bad in (np.nan, np.inf, -np.inf):
            transforms = np.array([[1, 0.1, bad, 0.2, 1, 0, 0, 0]], "float32")
            plain, fast = with_and_without(
                monkeypatch,
                lambda x, t, mode=mode: RAW.ImageProjectiveTransformV2(
                    images=x, transforms=t, output_shape=[4, 5], interpolation=interpolation, fill_mode=mode
                ),
                x,
                transforms,
            )
            np.testing.assert_array_equal(fast, plain)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_glimpses_are_the_same(monkeypatch: pytest.MonkeyPatch, normalized: bool, centred: bool) -> None:
    """Windows in and beyond the image, and far beyond it; of the first version what is inside."""
    chance = np.random.default_rng(0)
    # Without a seed an element of noise is once in a while the least number.
    monkeypatch.setattr(glimpses, "_fresh_generator", lambda device: torch.Generator(device).manual_seed(1))
    for shape, size in (((3, 20, 30, 3), (5, 8)), ((4, 5, 7, 2), (6, 9)), ((2, 9, 8, 4), (0, 3)),
                        ((3, 90, 90, 30), (80, 80))):  # fmt: skip
        x = chance.normal(size=shape).astype("float32")
        offsets = (chance.normal(size=(shape[0], 2)) * (0.5 if normalized else 10)).astype("float32")
        offsets[0, 0], offsets[1, 1], offsets[2 % shape[0]] = np.nan, np.inf, 0.1
        way = {"centered": centred, "normalized": normalized}
        plain, fast = with_and_without(
            monkeypatch,
            lambda x, o, size=size, way=way: RAW.ExtractGlimpseV2(
                input=x, size=size, offsets=o, noise="zero", uniform_noise=False, **way
            ),
            x,
            offsets,
        )
        np.testing.assert_array_equal(fast, plain)
        first = with_and_without(
            monkeypatch,
            lambda x, o, size=size, way=way: RAW.ExtractGlimpse(input=x, size=size, offsets=o, **way),
            (x > 0).astype("float32"),  # noise is between the least and the greatest
            offsets,
        )
        inside = [(each == 0) | (each == 1) for each in first]
        np.testing.assert_array_equal(*inside)
        np.testing.assert_array_equal(first[0][inside[0]], first[1][inside[1]])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("colours", [0, 3])
def test_drawn_boxes_are_the_same(monkeypatch: pytest.MonkeyPatch, dtype: str, colours: int) -> None:
    """Boxes in, across and beyond the images, NaN, infinite, and with corners the wrong way round."""
    chance = np.random.default_rng(0)
    palette = chance.normal(size=(colours, 5)).astype("float32")
    for shape, count in (((3, 20, 30, 3), 9), ((2, 1, 1, 1), 4), ((2, 64, 48, 4), 200), ((5, 7, 9, 1), 5)):
        x = chance.normal(size=shape).astype(dtype)
        boxes = chance.uniform(-0.3, 1.3, (shape[0], count, 2, 2)).astype("float32")
        boxes[:, 3:] = np.sort(boxes[:, 3:], 2)
        boxes[0, 0, 0, 0], boxes[0, 1, 1], boxes[-1, 2, 0] = np.nan, np.inf, -np.inf
        plain, fast = with_and_without(
            monkeypatch,
            lambda x, b: RAW.DrawBoundingBoxesV2(images=x, boxes=b, colors=palette),
            x,
            boxes.reshape(shape[0], count, 4),
        )
        np.testing.assert_array_equal(fast, plain)
        assert (fast != x).any() or shape[1] == 1


def test_other_types_have_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert image_windows.projection(torch.int16, "WRAP", False) is None
    assert image_windows.box_drawing(torch.float64) is None
    assert image_windows.projection(torch.float16, "WRAP", False) is not None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert image_windows.projection(torch.float16, "WRAP", False) is None
    assert image_windows.glimpse_cut() is None
    assert image_windows.box_drawing(torch.float32) is None
