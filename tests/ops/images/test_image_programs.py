"""The functions of `tf.image` give what TensorFlow 1.15 gives: values, shapes, errors, names of nodes."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

import flowstone as tf
import image_programs

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "images"
OUTCOMES = json.loads((GOLDEN / "programs.json").read_text())
with np.load(GOLDEN / "values.npz") as _values:
    VALUES = dict(_values)
NODES = {
    name: lines.splitlines()
    for name, _, lines in (
        part.partition("\n") for part in (GOLDEN / "nodes.txt").read_text()[2:].split("# ")
    )
}


def test_the_answers_are_those_of_these_programs() -> None:
    assert OUTCOMES.keys() == image_programs.PROGRAMS.keys() and NODES.keys() == image_programs.NAMED.keys()


@pytest.mark.parametrize("name", [name for name, found in OUTCOMES.items() if isinstance(found, list)])
def test_values_and_shapes(name: str) -> None:
    kind, found = image_programs.outcome(tf, name)
    assert kind == "value", found
    assert len(found) == len(OUTCOMES[name])
    for number, (shape, dtype, value) in enumerate(found):
        expected = VALUES[f"{name}/{number}"]
        static, expected_dtype = OUTCOMES[name][number]
        assert dtype == expected_dtype and value.dtype == expected.dtype
        assert is_as_exact(shape, static), f"{shape} instead of {static}"
        tolerance = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-6}.get(dtype)
        if tolerance is None:
            np.testing.assert_array_equal(value, expected)
        else:
            np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)


def is_as_exact(shape: list[int | None] | None, expected: list[int | None] | None) -> bool:
    """Whether all sizes that TensorFlow knows are known."""
    if expected is None or shape is None:
        return expected is None
    return len(shape) == len(expected) and all(b in (None, a) for a, b in zip(shape, expected, strict=True))


@pytest.mark.parametrize("name", [name for name, found in OUTCOMES.items() if isinstance(found, str)])
def test_errors(name: str) -> None:
    assert image_programs.outcome(tf, name) == ("error", OUTCOMES[name])


@pytest.mark.parametrize("name", sorted(NODES))
def test_nodes(name: str) -> None:
    # Sums are AddV2 where TensorFlow 1.15 still has Add.
    found = [
        line.removesuffix("V2") if line.endswith(" AddV2") else line
        for line in image_programs.names(tf, name)
    ]
    assert found == [line.removesuffix("V2") if line.endswith(" AddV2") else line for line in NODES[name]]


def test_proportions_of_images_of_unknown_size_are_kept() -> None:
    images = image_programs.fed(tf, 2, 5, 4, 1, known=[None, None, None, 1])
    largest = tf.placeholder_with_default([3, 9], [2])
    resized = tf.image.resize_images(images, largest, preserve_aspect_ratio=True)
    assert resized.shape.as_list() == [None, None, None, 1]
    expected = tf.image.resize_images(images, [3, 2])
    with tf.Session() as session:
        np.testing.assert_array_equal(*session.run([resized, expected]))


@pytest.mark.parametrize("method", range(4))
def test_a_padded_image_that_keeps_its_size_is_float_too(method: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        image = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)
        found = session.run(tf.image.resize_image_with_pad(image, 3, 6, method))
    assert found.dtype == (np.uint8 if method == tf.image.ResizeMethod.NEAREST_NEIGHBOR else np.float32)
    assert np.array_equal(found[:, 1:5], image) and not found[:, [0, 5]].any()


def test_images_in_proportion_are_float_though_they_keep_their_size() -> None:
    with tf.Graph().as_default():
        image = tf.ones([3, 4, 1], tf.float16)
        assert tf.image.resize_images(image, [3, 4]) is image
        found = tf.image.resize_images(image, [3, 9], preserve_aspect_ratio=True)
        assert (found.dtype, found.shape.as_list()) == (tf.float32, [3, 4, 1])


def test_a_grey_image_of_unknown_channels_has_three_colours() -> None:
    with tf.Graph().as_default():
        assert tf.image.grayscale_to_rgb(tf.placeholder(tf.float32, [2, 3, None])).shape.as_list() == [
            2,
            3,
            3,
        ]
