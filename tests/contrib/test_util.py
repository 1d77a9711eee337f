"""`tf.contrib.util`: what TensorFlow 1.15.5 says of the same graphs."""

import pytest

import flowstone as tf
from flowstone.framework.functions.function import Defun

util = tf.contrib.util


def test_ops_that_a_graph_uses():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2])
        tf.multiply(x, x)
    message = graph.as_graph_def()
    assert sorted(util.ops_used_by_graph_def(message)) == ["Mul", "Placeholder"]
    ops = util.stripped_op_list_for_graph(message).op
    assert [op.name for op in ops] == ["Mul", "Placeholder"]
    assert [each.name for each in ops[0].input_arg] == ["x", "y"]
    message.node[0].op = "Unheard"
    assert sorted(util.ops_used_by_graph_def(message)) == ["Mul", "Unheard"]
    with pytest.raises(ValueError, match="Unheard"):
        util.stripped_op_list_for_graph(message)


def test_a_functions_body_counts_for_its_name():
    with tf.Graph().as_default() as graph:

        @Defun(tf.float32)
        def sine(x):
            return tf.sin(x)

        sine(tf.constant(1.0))
    assert sorted(util.ops_used_by_graph_def(graph.as_graph_def())) == ["Const", "Sin"]


def test_constants_and_their_messages():
    with tf.Graph().as_default():
        assert util.constant_value(tf.constant([1, 2])).tolist() == [1, 2]
    assert util.make_ndarray(util.make_tensor_proto([1, 2])).tolist() == [1, 2]
