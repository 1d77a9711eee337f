"""Max pooling that keeps its places: in how many bits, and some images at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, text
from flowstone.lowering.convolutions import pooled_places

RNG = np.random.default_rng(13)


def images(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


@pytest.mark.parametrize("size, kept", [(127, "uint16"), (255, "uint16"), (271, "int32")])
def test_many_places_wait_in_few_bits(monkeypatch, size, kept) -> None:
    """16 bits, as unsigned ones, hold the positions in planes of up to 65536 elements."""
    channels = (1 << 19) // (size * size) + 1
    x = tf.placeholder(tf.float32, [1, size, size, channels])
    y = tf.nn.max_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")
    gradient = tf.gradients(tf.square(y), x)[0]
    feed = {x: images(1, size, size, channels)}
    log = agree(monkeypatch, [y, gradient], feed, "keep_places", fires=1, tolerance=0)
    (pool,) = [line for line in text([y, gradient], [x], "keep_places") if "_MaxPoolWithPlaces" in line]
    assert f"{kept}[1,{size},{size},{channels}]" in pool
    assert "_MaxPoolGradAtPlaces" in log


@pytest.mark.parametrize("layout", ["NHWC", "NCHW", "NDHWC"])
@pytest.mark.parametrize("stride, padding", [(1, "SAME"), (2, "SAME"), (2, "VALID")])
@pytest.mark.parametrize("transposed", [False, True])
def test_many_places_are_made_by_some_images_at_a_time(
    monkeypatch, set_profile, layout, stride, padding, transposed
) -> None:
    """Two at a time of five, the last one alone, also where the images lie otherwise in memory."""
    set_profile(pooled_places=0, core_cache=1)
    monkeypatch.setattr(pooled_places.torch, "get_num_threads", lambda: 2)
    lengths = (6, 7, 9)[: len(layout) - 2]
    last = layout.endswith("C")
    dims = [5, *lengths, 3] if last else [5, 3, *lengths]
    x = tf.placeholder(tf.float32, dims[::-1] if transposed else dims)
    seen = tf.transpose(x) if transposed else x
    pool = tf.nn.max_pool if len(lengths) == 2 else tf.nn.max_pool3d
    window, strides = ([1, *[n] * len(lengths), 1] if last else [1, 1, *[n] * 2] for n in (3, stride))
    y = pool(seen, window, strides, padding, data_format=layout)
    gradient = tf.gradients(tf.exp(y), x)[0]
    feed = {x: np.round(2 * images(*x.shape.as_list()))}
    log = agree(monkeypatch, [y, gradient], feed, "keep_places", fires=1, tolerance=0)
    assert "uint16" in next(line for line in log.splitlines() if "_MaxPoolWithPlaces" in line)
    assert "_MaxPoolGradAtPlaces" in log
