"""Constants and placeholders: what they hold, refuse and ask for."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1.5, "float32", 1.5),
        (3, "int32", 3),
        (2**40, "int64", 2**40),
        (True, "bool", True),
        ("text", "string", b"text"),
        (1 + 2j, "complex128", 1 + 2j),
        ([[1, 2], [3, 4]], "int32", [[1, 2], [3, 4]]),
        ([], "float32", []),
        (np.arange(3, dtype=np.uint16), "uint16", [0, 1, 2]),
    ],
)
def test_a_constant_holds_its_value_and_infers_its_type(value, dtype, expected):
    made = tf.constant(value)
    assert (made.op.type, made.dtype.name) == ("Const", dtype)
    assert made.shape.as_list() == list(np.shape(expected))
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(made), expected)


def test_a_constant_is_filled_up_to_its_shape_with_its_last_element():
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.constant(7, shape=[2, 2])), [[7, 7], [7, 7]])
        np.testing.assert_array_equal(session.run(tf.constant([1, 2], shape=[2, 2])), [[1, 2], [2, 2]])
    with pytest.raises(TypeError, match=r"Expected Tensor's shape"):
        tf.constant([1, 2], shape=[2, 2], verify_shape=True)
    with pytest.raises(ValueError, match="Too many elements"):
        tf.constant([1, 2, 3], shape=[2])


def test_the_users_array_may_change_later():
    array = np.ones(3, np.float32)
    made = tf.constant(array)
    array[:] = 5
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(made), [1, 1, 1])
        session.run(made)[:] = 7
        np.testing.assert_array_equal(session.run(made), [1, 1, 1])


@pytest.mark.parametrize("make", [tf.placeholder, lambda dtype, shape, name: F.PlaceholderV2(
    dtype=dtype, shape=shape, name=name)], ids=["Placeholder", "PlaceholderV2"])  # fmt: skip
def test_a_placeholder_must_be_fed(make):
    tf.get_default_graph().producer = 22  # later ones have no PlaceholderV2
    x = make(tf.float32, (2, 3), name="x")
    assert x.shape.as_list() == [2, 3]
    with tf.Session() as session:
        message = r"must feed a value for placeholder.*'x'"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message) as failure:
            session.run(x + 1.0)
        assert failure.value.op is x.op
        np.testing.assert_array_equal(session.run(x + 1.0, {x: np.zeros((2, 3))}), np.ones((2, 3)))


@pytest.mark.parametrize(
    ("dtype", "shape", "words"),
    [
        (tf.float32, [2], "dtype float and shape [2]"),
        (tf.int64, [None, 3], "dtype int64 and shape [?,3]"),
        (tf.float64, None, "dtype double\n"),
        (tf.string, [], "dtype string\n"),
    ],
)
def test_what_was_not_fed_is_told_in_tensorflows_words(dtype, shape, words):
    x = tf.placeholder(dtype, shape, name="x")
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as failure:
        session.run(tf.identity(x))
    start = f"You must feed a value for placeholder tensor 'x' with {words}"
    assert failure.value.message.startswith(start)


def test_a_placeholder_with_a_default_may_be_fed():
    x = tf.placeholder_with_default([1.0, 2.0], [None])
    assert x.shape.as_list() == [None]
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(x * 2), [2, 4])
        np.testing.assert_array_equal(session.run(x * 2, {x: [5]}), [10])
    with pytest.raises(ValueError, match="Dimension 0 in both shapes must be equal, but are 2 and 3"):
        tf.placeholder_with_default([1.0, 2.0], [3])


def test_a_tensor_is_no_value_of_a_constant():
    tensor = tf.constant(1)
    for value in (tensor, [tensor, 2]):
        with pytest.raises(TypeError, match="not tensors"):
            tf.constant(value)


def test_messages_are_constants_as_they_are() -> None:
    """A converter gives `tf.constant` the TensorProto of a node; type and shape are the message's."""
    message = tf.make_tensor_proto([1, 2])
    assert tf.make_tensor_proto(message, tf.float32) is message
    given = tf.constant(message, tf.float32, [3])
    for tensor in (tf.constant(message), given, tf.convert_to_tensor(message)):
        assert (tensor.dtype, tensor.shape.as_list()) == (tf.int32, [2])
        assert tf.get_static_value(tensor).tolist() == [1, 2]
    moved = tf.space_to_batch_nd(tf.ones([1, 2, 2, 1]), tf.make_tensor_proto([2, 2]), [[0, 0], [0, 0]])
    assert moved.shape.as_list() == [4, 1, 1, 1]
