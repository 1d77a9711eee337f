"""Histograms' public functions."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

VALUES = np.array([[-1.0, 0.0, 0.99], [1.0, 4.5, 9.0]], "f")


def test_counts_and_bins_say_the_same() -> None:
    values = tf.placeholder(tf.float32)
    counts = tf.histogram_fixed_width(values, [0.0, 5.0], nbins=5, dtype=tf.int64)
    bins = tf.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5)
    assert counts.dtype is tf.int64
    assert counts.shape.as_list() == [5]
    assert bins.dtype is tf.int32
    with tf.Session() as session:
        found = session.run([counts, bins], {values: VALUES})
    np.testing.assert_array_equal(found[0], [3, 1, 0, 0, 2])
    np.testing.assert_array_equal(found[1], [[0, 0, 0], [1, 4, 4]])


def test_a_hundred_bins_by_default() -> None:
    assert tf.histogram_fixed_width(VALUES, [0.0, 5.0]).shape.as_list() == [100]
    bins = tf.histogram_fixed_width_bins(VALUES, [0.0, 5.0], dtype=tf.int64)
    assert bins.dtype is tf.int32  # whatever is asked for, as in TensorFlow
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(bins), [[0, 0, 19], [20, 90, 99]])


def test_bins_of_integers_are_refused() -> None:
    with pytest.raises(TypeError):
        tf.histogram_fixed_width_bins([1, 2], [0, 5])
    counts = tf.histogram_fixed_width([1, 2, 7], [0, 5], nbins=5)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(counts), [0, 1, 1, 0, 1])


def test_the_step_names_what_is_wrong() -> None:
    low, count = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    counts = tf.histogram_fixed_width(VALUES, [low, 1.0], count)
    with tf.Session() as session:
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"value_range\[0\] < value_range\[1\].*'\[2\.0, 1"
        ):
            session.run(counts, {low: 2.0, count: 3})
        with pytest.raises(tf.errors.InvalidArgumentError, match="positive number, but got '-3'"):
            session.run(counts, {low: 0.0, count: -3})
