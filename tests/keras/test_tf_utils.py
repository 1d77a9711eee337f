"""What depends on what in a graph."""

from __future__ import annotations

from fractions import Fraction

import pytest

import flowstone as tf
from flowstone.keras import tf_utils


def test_what_is_reachable() -> None:
    with tf.Graph().as_default():
        a = tf.placeholder(tf.float32, [2])
        b = a + 1
        c = b * 2
        apart = tf.constant(3.0) + 1
        variable = tf.Variable(1.0)
        read = variable + 1
        reachable = tf_utils.get_reachable_from_inputs([a])
        assert {a, b, c, b.op, c.op} <= reachable
        assert apart not in reachable
        assert b in tf_utils.get_reachable_from_inputs(a, [b])
        assert read in tf_utils.get_reachable_from_inputs([variable])
        with pytest.raises(TypeError, match="Expected Operation"):
            tf_utils.get_reachable_from_inputs(["a"])


def test_what_is_a_tensor() -> None:
    with tf.Graph().as_default():
        a = tf.constant(1.0)
        v = tf.Variable(a)
        assert tf_utils.is_tensor_or_variable(v)
        assert not tf_utils.is_symbolic_tensor(1.0)
        assert not tf_utils.is_symbolic_tensor(Fraction(1))
        tf_utils.register_symbolic_tensor_type(Fraction)
        assert tf_utils.is_symbolic_tensor(Fraction(1))
        assert tf_utils.is_tensor_or_tensor_list([a, [a]])
        assert not tf_utils.is_tensor_or_tensor_list([a, 1])
        assert tf_utils.are_all_symbolic_tensors([a, v])
