"""The two halves of an edge between devices."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.partition.send_receive import host_receive, host_send, receive, send
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.steps.step import Step

WAY = {"tensor_name": "x", "send_device": "/cpu:0", "recv_device": "/cpu:1", "name": "way"}


def test_a_send_in_a_segment_leaves_its_value_at_the_rendezvous() -> None:
    with tf.Graph().as_default():
        (node,) = [n for n in prune([], [send(tf.constant(1.0), **WAY)], []).nodes if n.type == "_Send"]
    call = node.declaration.kernels["CPU"](node, None)
    step, received = Step(), []
    call.function(step, "value")
    step.rendezvous.receive((("x", "/cpu:0", "/cpu:1"), ()), lambda *arrived: received.append(arrived))
    assert received == [(("value",), None)]


def test_the_receive_of_a_segment_waits_at_the_steps_rendezvous() -> None:
    with tf.Graph().as_default():
        node = receive(tensor_type=tf.float32, **WAY).op
    kernel = receive.kernels["CPU"](node, None)
    step = Step()
    received: list[object] = []
    kernel.function(step, lambda values, error=None: received.append((values, error)))
    assert not received
    step.rendezvous.send((("x", "/cpu:0", "/cpu:1"), ()), 5)
    assert received == [((5,), None)]


def test_the_others_are_the_executors() -> None:
    for declaration in (host_send, host_receive):
        assert declaration.asynchronous and not declaration.is_pure
        with tf.Graph().as_default(), pytest.raises(AssertionError, match="the executor sends and receives"):
            declaration.kernels["CPU"](tf.constant(1.0).op, None)


def test_a_receive_has_the_type_that_was_sent() -> None:
    with tf.Graph().as_default():
        assert receive(tensor_type=tf.int32, **WAY).dtype == tf.int32
        assert receive(tensor_type=tf.int32, **WAY).shape.ndims is None
