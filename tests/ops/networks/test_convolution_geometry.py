"""The geometry of convolutions; its values are in the tests of convolutions."""

from __future__ import annotations

import pytest

import flowstone as tf


def test_what_cannot_be_computed_names_its_node() -> None:
    """Passes ask for the geometry, too, of which an error knows no node by itself."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, w = tf.ones([1, 4, 4, 2]), tf.ones([2, 2, 2, 1])
        for options in ({"strides": [2, 1, 1, 1]}, {"strides": [1] * 4, "dilations": [1, 1, 1, 2]}):
            y = tf.nn.conv2d(tf.abs(x), w, padding="SAME", name="wrong", **options)
            with pytest.raises(tf.errors.InvalidArgumentError, match="in the batch and depth") as found:
                session.run(y)
            assert found.value.op is y.op and f"node {y.op.name} (op Conv2D) defined at {__file__}" in str(
                found.value
            )
