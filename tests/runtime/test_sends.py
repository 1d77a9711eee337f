"""Sends inside segments: a value is under way while its segment computes others."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def session():
    return tf.Session(config=tf.ConfigProto(device_count={"CPU": 2, "GPU": 0}))


def test_the_other_device_has_a_value_before_its_segment_ends():
    arrived = threading.Event()

    def take(a):
        arrived.set()
        return a

    def wait(x):
        return np.float32(arrived.wait(20))

    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device("/cpu:0"):
        a = tf.exp(x, name="a")
        b = tf.py_func(wait, [x], tf.float32, name="b")
    with tf.device("/cpu:1"):
        c = tf.py_func(take, [a], tf.float32, name="c")
    with session() as sess:
        assert sess.run([b, c], {x: 0.0}) == [1.0, 1.0]
        sends = [line for line in sess.explain([b, c], [x]).splitlines() if "send(step" in line]
    assert len(sends) == 1


def test_what_was_sent_is_not_overwritten():
    x = tf.placeholder(tf.float32, [1000], name="x")
    with tf.device("/cpu:0"):
        a = tf.exp(x, name="a")
        b = tf.negative(a, name="b")
    with tf.device("/cpu:1"):
        c = tf.reduce_sum(tf.identity(a), name="c")
    with session() as sess:
        for _ in range(20):
            ours, theirs = sess.run([b, c], {x: np.zeros(1000, np.float32)})
            assert theirs == 1000.0 and ours.sum() == -1000.0


def test_a_variable_is_sent_as_it_is_then():
    with tf.device("/cpu:0"):
        v = tf.Variable(np.zeros(1000, np.float32), name="v")
        r = tf.get_variable("r", [1000], use_resource=True, initializer=tf.zeros_initializer())
        read, resource_read = tf.identity(v), tf.identity(r)
    with tf.device("/cpu:1"):
        sums = tf.reduce_sum(read), tf.reduce_sum(resource_read)
    with tf.control_dependencies(sums), tf.device("/cpu:0"):
        more = tf.assign_add(v, tf.ones([1000])).op, r.assign_add(tf.ones([1000]))
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(10):
            assert sess.run([*sums, *more])[:2] == [1000.0 * step, 1000.0 * step]
