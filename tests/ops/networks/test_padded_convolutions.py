"""Fused convolutions are the pads, resizes and convolutions that they stand for; what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

IMAGES = np.random.RandomState(1).randn(3, 4, 5, 2).astype(np.float32)
KERNEL = np.random.RandomState(2).randn(2, 3, 2, 3).astype(np.float32)
PADS = np.int32([[0, 0], [1, 2], [2, 1], [0, 0]])


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_they_are_their_parts(mode: str, align: bool) -> None:
    form = {"strides": [1, 2, 1, 1], "padding": "SAME"}
    with tf.Graph().as_default(), tf.Session() as session:
        resized = tf.image.resize_bilinear(IMAGES, [6, 7], align_corners=align)
        expected = [F.Conv2D(F.MirrorPad(x, PADS, mode=mode), KERNEL, **form) for x in (IMAGES, resized)]
        found = [
            F.FusedPadConv2D(IMAGES, PADS, KERNEL, mode=mode, **form),
            F.FusedResizeAndPadConv2D(
                IMAGES, [6, 7], PADS, KERNEL, mode=mode, resize_align_corners=align, **form
            ),
        ]
        for mine, parts in zip(session.run(found), session.run(expected), strict=True):
            np.testing.assert_allclose(mine, parts, rtol=1e-4, atol=1e-5)


def test_no_gradient_is_defined() -> None:
    x = tf.constant(IMAGES)
    y = F.FusedPadConv2D(x, PADS, KERNEL, mode="REFLECT", strides=[1, 1, 1, 1], padding="SAME")
    with pytest.raises(LookupError):
        tf.gradients(y, x)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"paddings": [[0, 0], [6, 2], [2, 1], [0, 0]]}, "less than the dimension size"),
        ({"paddings": [[0, 0], [-1, 2], [2, 1], [0, 0]]}, "must be non-negative"),
        ({"paddings": [[1, 0], [1, 2], [2, 1], [0, 0]]}, "must be 0 of batch"),
        ({"paddings": [[0, 0], [1, 1], [1, 1]]}, "4 rows"),
        ({"kernel": KERNEL[:, :, :1]}, "same depth"),
        ({"size": [0, 4]}, "must be positive"),
        ({"strides": [2, 1, 1, 1]}, "batch and depth"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    strides = change.pop("strides", [1, 1, 1, 1])
    values = {"paddings": PADS, "kernel": KERNEL, "size": [6, 7], **change}
    with tf.Graph().as_default(), tf.Session() as session:
        x, kernel = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        paddings, size = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
        y = F.FusedResizeAndPadConv2D(
            x, size, paddings, kernel, mode="REFLECT", strides=strides, padding="SAME"
        )
        feed = {x: IMAGES, kernel: values["kernel"], paddings: values["paddings"], size: values["size"]}
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(y, feed)
