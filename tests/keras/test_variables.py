"""Variables, constants and placeholders of Keras."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.keras import variables

pytestmark = pytest.mark.usefixtures("graph")


def test_a_variable_notes_its_shape() -> None:
    v = variables.variable(np.ones([2, 3]), name="v")
    assert (v.name, v.dtype.base_dtype, v._keras_shape) == ("v:0", tf.float32, (2, 3))
    assert tf.global_variables() == [v]
    assert not variables.is_sparse(v)


def test_values_are_read_and_given_in_one_step() -> None:
    a, b = variables.variable([1.0]), variables.variable(2.0)
    variables.batch_set_value([(a, [5]), (b, 6)])
    variables.batch_set_value([(a, [7]), (b, 8)])
    read = variables.batch_get_value([a, b])
    assert [value.tolist() for value in read] == [[7], 8]
    assert variables.batch_get_value([]) == []


def test_of_a_variable_that_comes_twice_the_last_value_counts() -> None:
    a, b = variables.variable(1.0), variables.variable(2.0)
    variables.batch_set_value([(a, 3), (b, 4), (a, 5)])
    assert variables.batch_get_value([a, b]) == [5, 4]


def test_values_are_given_in_the_session_that_is_chosen() -> None:
    a = variables.variable(1.0)
    for value in (5, 6):
        with tf.Session():
            assert variables.get_value(a) == 1
            variables.set_value(a, value)
            assert variables.get_value(a) == value


def test_constants_and_placeholders() -> None:
    assert variables.constant(3).dtype == tf.float32
    assert variables.placeholder((2, None)).shape.as_list() == [2, None]
    assert variables.placeholder(ndim=3, dtype="int32").shape.as_list() == [None, None, None]
    sparse = variables.placeholder(ndim=2, sparse=True)
    assert variables.is_sparse(sparse)
    with pytest.raises(ValueError, match="ragged"):
        variables.placeholder(ndim=2, ragged=True)
