"""What one run of a node costs by its shapes: operations by op type, and bytes."""

from __future__ import annotations

import doctest

import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.placement import operation_cost
from flowstone.placement.operation_cost import state_size, tensor_size, work

pytestmark = pytest.mark.usefixtures("graph")


def zeros(*shape, dtype=tf.float32):
    return tf.placeholder(dtype, shape)


OPERATIONS = {
    "product": (lambda: tf.matmul(zeros(2, 3), zeros(3, 4)), 2 * 2 * 3 * 4),
    "transposed product": (lambda: tf.matmul(zeros(3, 2), zeros(4, 3), True, True), 2 * 2 * 3 * 4),
    "batch of products": (lambda: tf.matmul(zeros(5, 2, 3), zeros(5, 3, 4)), 5 * 2 * 2 * 3 * 4),
    "convolution": (
        lambda: tf.nn.conv2d(zeros(2, 8, 8, 3), zeros(3, 3, 3, 16), [1, 2, 2, 1], "SAME"),
        2 * (2 * 4 * 4 * 16) * (3 * 3 * 3),
    ),
    "depthwise convolution": (
        lambda: tf.nn.depthwise_conv2d_native(zeros(2, 8, 8, 3), zeros(3, 3, 3, 2), [1, 1, 1, 1], "SAME"),
        2 * (2 * 8 * 8 * 6) * (3 * 3),
    ),
    "pooling": (lambda: tf.nn.max_pool(zeros(1, 8, 8, 4), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), 4 * 4 * 4 * 4),
    "elements": (lambda: zeros(10, 10) + zeros(10, 10), 100),
    "reduction": (lambda: F.Sum(zeros(10, 10), tf.constant([0, 1])), 100),
    "transcendental": (lambda: tf.exp(zeros(10)), 80),
    "rows": (lambda: tf.gather(zeros(1000, 8), zeros(2, dtype=tf.int32)), 2 * 8 * 4 * 2 / 4),
    "view": (lambda: tf.reshape(zeros(10, 10), [100]), 0),
    "free": (lambda: tf.identity(zeros(10, 10)), 0),
    "unknown size": (lambda: tf.negative(zeros(None, 10)), 320),
    "unknown rank": (lambda: tf.negative(tf.placeholder(tf.float32)), 1024),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name):
    build, expected = OPERATIONS[name]
    assert work(build().op).operations == pytest.approx(expected)


def test_the_gradients_of_a_convolution_cost_what_it_costs():
    x, w = zeros(2, 8, 8, 3), zeros(3, 3, 3, 16)
    y = tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME")
    for gradient in tf.gradients(y, [x, w]):
        assert gradient.op.type.startswith("Conv2DBackprop")
        assert work(gradient.op).operations == work(y.op).operations


def test_bytes():
    x = zeros(4, 5, dtype=tf.float64)
    assert tensor_size(x) == 160
    assert tensor_size(tf.placeholder(tf.string, [3])) == 24
    assert work((x + x).op).size == 3 * 160
    assert state_size(tf.get_variable("v", [10], use_resource=True).handle.op) == 40
    assert state_size(tf.get_variable("w", [10], use_resource=False).op) == 40


def test_examples():
    assert doctest.testmod(operation_cost).failed == 0
