"""Dilated convolutions instead of moves of space to batch and back: results, gradients, what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

RNG = np.random.default_rng(4)
NAME = "dilate_convolutions"
PASSES = ("fold_constants", "apply_identities", NAME, "merge_common_subexpressions", "remove_unneeded")
IMAGES = (2, 9, 10, 3)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype(np.float32)


def convolution(images: Any, sizes: list[int], rate: Any, padding: str, layout: Any = None) -> Any:
    w = tf.constant(values(*sizes))
    return tf.nn.convolution(images, w, padding, dilation_rate=rate, data_format=layout), [w]


def channelwise(images: Any, rate: list[int], padding: str) -> Any:
    w = tf.constant(values(3, 2, 3, 2))
    return tf.nn.depthwise_conv2d(images, w, [1, 1, 1, 1], padding, rate=rate), [w]


def layer(images: Any, rate: Any, padding: str) -> Any:
    kernel = tf.constant_initializer(values(3, 3, 3, 4))
    y = tf.layers.conv2d(images, 4, 3, dilation_rate=rate, padding=padding, kernel_initializer=kernel)
    return y, tf.trainable_variables()


FORMS = {
    "images": (IMAGES, lambda x, padding: convolution(x, [3, 2, 3, 4], [2, 3], padding)),
    "columns": (IMAGES, lambda x, padding: convolution(x, [3, 3, 3, 4], [1, 2], padding)),
    "channels_first": ((2, 3, 9, 10), lambda x, padding: convolution(x, [3, 3, 3, 4], 2, padding, "NCHW")),
    "volumes": ((2, 7, 8, 9, 3), lambda x, padding: convolution(x, [3, 2, 2, 3, 4], [2, 1, 2], padding)),
    "sequences": ((2, 11, 3), lambda x, padding: convolution(x, [3, 3, 4], [4], padding)),
    "sequences_first": ((2, 3, 11), lambda x, padding: convolution(x, [2, 3, 4], [3], padding, "NCW")),
    "channelwise": (IMAGES, lambda x, padding: channelwise(x, [2, 2], padding)),
    "layer": (IMAGES, lambda x, padding: layer(x, (2, 3), padding)),
}


def open_sizes(dims: tuple[int, ...], *known: int) -> list[int | None]:
    return [n if n == 3 or axis in known else None for axis, n in enumerate(dims)]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("known", ["all", "but the batch", "channels"])
@pytest.mark.parametrize("form", FORMS)
def test_is_one_convolution_with_its_gradients(monkeypatch, form, known, padding) -> None:
    dims, build = FORMS[form]
    rest = range(1 if known == "but the batch" else 0, len(dims))
    images = tf.placeholder(tf.float32, open_sizes(dims, *(() if known == "channels" else rest)))
    y, weights = build(images, padding)
    fetches = [y, *tf.gradients(tf.sin(y), [images, *weights])]
    feed = {images: values(*dims)}
    plan = agree(
        monkeypatch, fetches, feed, NAME, fires=3, setup=tf.global_variables_initializer(), tolerance=2e-5
    )
    assert "SpaceToBatchND" not in plan.split("\n\n")[-1]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("form", FORMS)
def test_sizes_may_be_open_in_the_plan(form, padding) -> None:
    dims, build = FORMS[form]
    images = tf.placeholder(tf.float32, open_sizes(dims))
    y, _ = build(images, padding)
    assert not {"SpaceToBatchND", "BatchToSpaceND"} & set(ops(text([y], [images], *PASSES)))


def test_margins_are_the_rules() -> None:
    images = tf.placeholder(tf.float32, IMAGES)
    y, _ = convolution(images, [3, 3, 3, 4], [2, 2], "SAME")
    line = text([y], [images], *PASSES)[-2]
    assert "Conv2D(" in line and "padding='SAME'" in line and "dilations=[1,2,2,1]" in line


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("sizes", [[2, 13, 14, 3], "of the images"], ids=["known", "computed"])
def test_transposed_convolutions(monkeypatch, sizes, padding) -> None:
    images, filters = tf.placeholder(tf.float32, [None, None, None, 4]), tf.constant(values(3, 2, 3, 4))
    feed = {images: values(2, 13, 14, 4) if padding == "SAME" else values(2, 9, 12, 4)}
    if sizes == "of the images":
        grown = [0, 0, 0, 0] if padding == "SAME" else [0, 4, 2, 0]
        sizes = tf.concat([tf.shape(images)[:3], [3]], 0) + grown
    y = tf.nn.atrous_conv2d_transpose(images, filters, sizes, 2, padding)
    fetches = [y, *tf.gradients(tf.sin(y), [images, filters])]
    agree(monkeypatch, fetches, feed, NAME, fires=3, tolerance=2e-5)


def by_hand(images: Any, sizes: list[int], blocks: Any, paddings: Any, crops: Any, **attributes: Any) -> Any:
    moved = tf.space_to_batch_nd(images, blocks, paddings)
    y = tf.nn.conv2d(moved, tf.constant(values(*sizes)), **{"strides": 1, "padding": "VALID", **attributes})
    return tf.batch_to_space_nd(y, blocks, crops)


def test_what_fills_blocks_may_be_cropped_elsewhere() -> None:
    images = tf.placeholder(tf.float32, [2, 8, 8, 3])
    y = by_hand(images, [3, 3, 3, 4], [2, 2], [[2, 2], [2, 2]], [[0, 2], [2, 0]])
    assert "BatchToSpaceND" in ops(text([y], [images], *PASSES))


@pytest.mark.parametrize(
    "attributes", [{"strides": 2}, {"padding": "SAME"}, {"dilations": [1, 2, 2, 1]}], ids=str
)
def test_convolutions_of_their_own_kind_stay(attributes) -> None:
    images = tf.placeholder(tf.float32, [2, 12, 12, 3])
    y = by_hand(images, [2, 2, 3, 4], [2, 2], [[0, 0], [0, 0]], [[0, 0], [0, 0]], **attributes)
    assert "BatchToSpaceND" in ops(text([y], [images], *PASSES))


def test_blocks_that_are_not_filled_are_refused() -> None:
    images = tf.placeholder(tf.float32, [None, None, None, 3])
    y = by_hand(images, [2, 2, 3, 4], [2, 2], [[0, 0], [0, 0]], [[0, 0], [0, 0]])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(y, {images: values(1, 5, 5, 3)})


def test_waits_for_what_the_operations_waited_for(monkeypatch) -> None:
    v, images = tf.Variable(1.0), tf.placeholder(tf.float32, IMAGES)
    with tf.control_dependencies([v.assign_add(1.0)]):
        y, _ = convolution(images, [3, 3, 3, 4], 2, "SAME")
    with tf.control_dependencies([y]):
        after = tf.identity(v.read_value())
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [y, after], {images: values(*IMAGES)}, NAME, fires=1, setup=setup)
