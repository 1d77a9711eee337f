"""Colours by machine code, beside ATen's kernels: the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.images import colours

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
RAW = tf.raw_ops
CHANGES = {
    "to_hsv": lambda x: RAW.RGBToHSV(images=x),
    "to_rgb": lambda x: RAW.HSVToRGB(images=x),
    "turned": lambda x: RAW.AdjustHue(images=x, delta=0.3),
    "turned back": lambda x: RAW.AdjustHue(images=x, delta=-0.7),
    "turned whole": lambda x: [RAW.AdjustHue(images=x, delta=delta) for delta in (1.0, -1.0, 0.0, 1.5)],
    "coloured": lambda x: RAW.AdjustSaturation(images=x, scale=1.7),
    "without colour": lambda x: RAW.AdjustSaturation(images=x, scale=0.0),
}


def pixels(shape: tuple[int, ...]) -> Any:
    """Some grey, black, equal in two channels, beyond the range, not finite."""
    x = np.random.default_rng(7).uniform(-0.2, 1.2, shape).astype("float32")
    flat = x.reshape(-1, 3)
    if len(flat) > 10:
        flat[0], flat[1], flat[2, :2], flat[3, 1:] = 0.5, 0.0, 0.7, 0.9
        flat[4], flat[5, 0], flat[6, 1] = np.nan, np.nan, np.inf
    return x


@pytest.mark.parametrize("shape", [(1, 1, 3), (0, 2, 3), (4, 5, 3), (2, 100, 173, 3)])
@pytest.mark.parametrize("name", CHANGES)
def test_colours_are_those_of_aten(monkeypatch: pytest.MonkeyPatch, name: str, shape: Any) -> None:
    x, found = pixels(shape), []
    for native in (0, 1):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(tf.float32, shape)
            found.append(session.run(CHANGES[name](fed), {fed: x}))
    np.testing.assert_array_equal(*found)


def test_other_types_have_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)
    assert colours.colour_change("to_hsv", torch.float64) is None
    assert colours.colour_change("to_hsv", torch.float32) is not None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert colours.colour_change("to_hsv", torch.float32) is None
