"""Names of summaries are TensorFlow 1.15.5's."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.contrib.slim import summaries


def names() -> list[str]:
    return [each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)]


@pytest.mark.parametrize(
    ("add", "options", "expected"),
    [
        (summaries.add_histogram_summary, {}, "x_1"),
        (summaries.add_histogram_summary, {"name": "n", "prefix": "p"}, "p/n"),
        (summaries.add_scalar_summary, {"prefix": "p"}, "p/x"),
        (summaries.add_image_summary, {"prefix": "p"}, "p/x"),
        (summaries.add_zero_fraction_summary, {"name": "q", "prefix": "r"}, "r/q/Fraction_of_Zero_Values"),
    ],
)
def test_one(add: Any, options: Any, expected: str) -> None:
    shape = {"add_scalar_summary": [], "add_image_summary": [1, 2, 2, 3]}.get(add.__name__, [2, 3])
    summary = add(tf.zeros(shape, name="x"), **options)
    assert summary.op.name == expected
    assert names() == [expected]


@pytest.mark.parametrize("kind", ["scalar", "image", "zero_fraction"])
def test_one_that_is_printed(kind: str) -> None:
    shape = {"scalar": [], "image": [1, 2, 2, 3]}.get(kind, [2, 3])
    summary = getattr(summaries, f"add_{kind}_summary")(tf.zeros(shape), print_summary=True)
    assert summary.op.type == "Print"
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == [summary]


@pytest.mark.parametrize("kind", ["histogram", "scalar", "image", "zero_fraction"])
def test_several(kind: str) -> None:
    shape = {"scalar": [], "image": [1, 2, 2, 3]}.get(kind, [2, 3])
    tensors = [tf.zeros(shape, name="x"), tf.zeros(shape, name="y")]
    getattr(summaries, f"add_{'zero_fraction' if kind == 'zero_fraction' else kind}_summaries")(tensors, "p")
    end = "/Fraction_of_Zero_Values" if kind == "zero_fraction" else ""
    assert names() == [f"p/x{end}", f"p/y{end}"]


def test_the_fraction_of_zeros() -> None:
    summary = summaries.add_zero_fraction_summary(tf.constant([0.0, 1.0, 0.0, 2.0]))
    with tf.Session() as session:
        value = tf.Summary.FromString(session.run(summary)).value[0]
    assert value.simple_value == 0.5
