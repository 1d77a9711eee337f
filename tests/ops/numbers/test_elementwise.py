"""What element-wise families share: broadcast gradients, in-place variants, identities, unsigned integers."""

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.ops.numbers.elementwise import keeps_shape, reduced_axes
from flowstone.ops.numbers.unsigned_integers import divide_uint64

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.parametrize(
    ("x", "dz", "other", "expected"),
    [
        ((3,), (2, 3), (2, 3), (0,)),
        ((2, 1), (2, 3), None, (1,)),
        ((2, 3), (2, 3), None, ()),
        ((), (None, 3), None, (0, 1)),
        ((None, 3), (None, 3), (3,), ()),
        ((None, 3), (None, 3), (1, 3), ()),
        ((None, 3), (None, 3), (None, 3), None),
        ((None, 3), (4, 3), (4, 3), None),
        (None, (2, 3), None, None),
        ((1, 1), (1, 3), None, (1,)),
    ],
)
def test_axes_that_were_broadcast(x: object, dz: object, other: object, expected: object) -> None:
    assert reduced_axes(x, dz, other) == expected


def test_shapes_that_broadcasting_keeps() -> None:
    assert keeps_shape((2, 3), (3,)) and keeps_shape((None, 3), (1, 3)) and keeps_shape((2,), ())
    assert not keeps_shape((1, 3), (2, 3)) and not keeps_shape((3,), (2, 3))
    assert not keeps_shape((None,), (None,)) and not keeps_shape(None, ())


@pytest.mark.parametrize("static", [[2, 3], [None, 3], [None, None], None])
@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (2, 1)])
def test_gradients_of_broadcasts_for_any_static_shape(static: object, shape: tuple[int, int]) -> None:
    if static == [2, 3] and shape != (2, 3):
        static = list(shape)
    if static == [None, 3] and shape[1] != 3:
        static = [None, 1]
    x = tf.placeholder(tf.float32, static)
    y = tf.placeholder(tf.float32, None if static is None else [None] * 2)
    dx, dy = tf.gradients(x * y, [x, y])
    values = (
        np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape),
        np.full((2, 3), 2.0, np.float32),
    )
    with tf.Session() as session:
        found = session.run([dx, dy], {x: values[0], y: values[1]})
    expected = np.full((2, 3), 2.0, np.float32)
    for axis in (0, 1):
        if shape[axis] == 1:
            expected = expected.sum(axis, keepdims=True)
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_allclose(found[1], np.broadcast_to(values[0], (2, 3)))


def test_in_place_variants_change_neither_feeds_nor_constants_nor_values_used_later() -> None:
    x = tf.placeholder(tf.float32, [3])
    c = tf.constant([1.0, 2.0, 3.0])
    y = tf.exp(x * c)
    z = tf.sqrt(y) + y
    fed = np.array([0.0, 1.0, 2.0], np.float32)
    with tf.Session() as session:
        for _ in range(2):
            first, second, third = session.run([y, z, c], {x: fed})
            np.testing.assert_allclose(first, np.exp(fed * [1, 2, 3]), rtol=1e-6)
            np.testing.assert_allclose(second, np.sqrt(first) + first, rtol=1e-6)
            assert fed.tolist() == [0.0, 1.0, 2.0] and third.tolist() == [1.0, 2.0, 3.0]


def test_a_broadcast_view_is_not_overwritten() -> None:
    x = tf.placeholder(tf.float32, [1, 3])
    y = tf.broadcast_to(x + 1.0, [2, 3]) + tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.Session() as session:
        assert session.run(y, {x: [[0.0, 0.0, 0.0]]}).tolist() == [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]


def test_neutral_constants_leave_no_call() -> None:
    x = tf.placeholder(tf.float32, [2])
    y = (x * 1.0 + 0.0 - 0.0) / 1.0
    with tf.Session() as session:
        text = session.explain(y, [x])
        assert session.run(y, {x: [1.0, 2.0]}).tolist() == [1.0, 2.0]
    assert "mul(" not in text and "add(" not in text and "div(" not in text


def test_unsigned_64_bit_division() -> None:
    random = np.random.RandomState(5)
    x = random.randint(0, 2**64, 500, dtype=np.uint64)
    y = random.randint(0, 2**64, 500, dtype=np.uint64) >> random.randint(0, 64, 500).astype(np.uint64)
    y[y == 0] = 7
    quotient, remainder = divide_uint64(torch.from_numpy(x), torch.from_numpy(y))
    np.testing.assert_array_equal(quotient.numpy(), x // y)
    np.testing.assert_array_equal(remainder.numpy(), x % y)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_the_least_integer_divided_by_minus_one_wraps(dtype: str) -> None:
    least = np.iinfo(dtype).min
    x = tf.placeholder(dtype, [2])
    with tf.Session() as session:
        quotient = session.run(
            tf.truncatediv(x, tf.constant([-1, 2], dtype)), {x: np.array([least, 7], dtype)}
        )
    assert quotient.tolist() == [least, 3]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int32", "int64"])
@pytest.mark.by_aten
def test_squares_of_short_numbers_and_integers_are_products(dtype: str) -> None:
    """ATen's square of them is a power without vectors, of the same value."""
    x = np.array([0, -3, 7, 10, -12, 2.5]).astype(tf.as_dtype(dtype).as_numpy_dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(dtype, [6])
        is_product = dtype in ("float16", "int8", "int32", "int64")
        square = tf.square(given)
        assert ("mul(a0, a0)" in session.explain(square, {given: x})) == is_product
        found = [square, tf.square(given + 1) - given]
        found += [] if dtype[:3] == "int" else [given**2]
        found += [] if dtype == "int8" else [tf.squared_difference(given, 1)]
        if dtype.startswith("float"):
            found.append(tf.raw_ops.ReciprocalGrad(y=given, dy=given))
        values = session.run(found, {given: x})
    expected = [x * x, (x + 1) * (x + 1) - x]
    expected += [] if dtype[:3] == "int" else [x * x]
    expected += [] if dtype == "int8" else [(x - 1) * (x - 1)]
    expected += [-x * (x * x)]
    for value, wanted in zip(values, expected):
        np.testing.assert_array_equal(value, wanted)
