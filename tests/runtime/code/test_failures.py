"""Failures name the node, its op, the inputs and the user's line, in TensorFlow's class of error."""

from __future__ import annotations

import errno
import re

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.declarations.operation import OpDeclaration
from flowstone.framework.tensors.tensor import Tensor

pytestmark = pytest.mark.usefixtures("graph")


def failing_op(error: Exception, when_planned: bool = False) -> Tensor:
    """A node of an op, in no registry, whose kernel raises."""
    declaration = OpDeclaration("Failing", "x: T -> y: T", T=None)
    declaration.infer(lambda node: node.dims(0))

    @declaration.kernel(CPU)
    def _(node, env):
        if when_planned:
            raise error

        def kernel(x):
            raise error

        return kernel

    return declaration(tf.placeholder_with_default(np.float32([1, 2]), [2]), name="failing")


@pytest.mark.parametrize("when_planned", [False, True])
@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError("v"), errors.InvalidArgumentError),
        (RuntimeError("r"), errors.InvalidArgumentError),
        (IndexError("i"), errors.InvalidArgumentError),
        (MemoryError("m"), errors.ResourceExhaustedError),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), errors.ResourceExhaustedError),
        (RuntimeError("not enough memory: you tried"), errors.ResourceExhaustedError),
        (NotImplementedError("n"), errors.UnimplementedError),
        (KeyError("k"), errors.UnknownError),
        (errors.OutOfRangeError(None, None, "o"), errors.OutOfRangeError),
    ],
)
def test_class_node_and_line(raised, expected, when_planned):
    node = failing_op(raised, when_planned)
    with tf.Session() as session:
        with pytest.raises(expected) as caught:
            session.run(node)
        assert type(caught.value) is expected
        assert caught.value.op is node.op and caught.value.node_def.name == "failing"
        assert f"[[node failing (op Failing) defined at {__file__}:" in caught.value.message
        said = not when_planned and expected is not errors.OutOfRangeError
        assert ("float32[2]" in caught.value.message) == said
        assert session.run(tf.constant(1)) == 1


def test_an_error_with_a_node_of_its_own_is_kept():
    other = tf.constant(1).op
    node = failing_op(errors.AbortedError(None, other, "it was another"))
    with tf.Session() as session, pytest.raises(errors.AbortedError) as caught:
        session.run(node)
    assert caught.value.op is other


def test_interrupts_pass_through():
    declaration = OpDeclaration("Interrupted", "x: T -> y: T", T=None)
    declaration.infer(lambda node: ())

    @declaration.kernel(CPU)
    def _(node, env):
        def kernel(x):
            raise KeyboardInterrupt

        return kernel

    node = declaration(tf.placeholder_with_default(1.0, []))
    with tf.Session() as session, pytest.raises(KeyboardInterrupt):
        session.run(node)


def test_an_uninitialised_variable_is_named():
    v = tf.Variable(1.0, name="never_set")
    with tf.Session() as session:
        for fetch in (v, v + 1.0, v.assign_add(1.0)):
            with pytest.raises(
                errors.FailedPreconditionError, match="Attempting to use uninitialized value never_set"
            ):
                session.run(fetch)
        session.run(v.initializer)
        assert session.run(v + 1.0) == 2.0


def test_a_resource_without_a_value_is_not_found_where_it_is_looked_up():
    v = tf.get_variable("never_set", [3], use_resource=True)
    changed = [v.assign_add(tf.ones([3])), tf.scatter_add(v, [0], [1.0]), v[:2].assign([1.0, 2.0])]
    conditional = tf.cond(tf.constant(True), lambda: v.assign_add(tf.ones([3])), lambda: v.read_value())
    read = [v + 1.0, tf.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.ones([3]), v)])]
    for kind, fetches in (
        (errors.NotFoundError, [*changed, tf.gather(v, [0]), conditional]),
        (errors.FailedPreconditionError, read),
    ):
        for fetch in fetches:
            with tf.Session() as session, pytest.raises(kind, match="uninitialized value never_set"):
                session.run(fetch)


def test_shapes_of_views_and_strings_are_described():
    text = tf.placeholder(tf.string, [2])
    number = tf.py_func(lambda words: 1 // 0, [text], tf.int64)
    with tf.Session() as session, pytest.raises(errors.OpError, match=r"string\[2\]"):
        session.run(number, {text: ["a", "b"]})
    x = tf.placeholder(tf.float32)
    with tf.Session() as session, pytest.raises(errors.InvalidArgumentError, match=r"float32\[3, 2\]"):
        session.run(tf.matmul(tf.transpose(x), tf.transpose(x)), {x: np.zeros((2, 3))})
    assert torch.is_inference_mode_enabled() is False


@pytest.mark.parametrize("times", [1, 4])
def test_the_node_that_failed_of_those_that_were_joined(times):
    labels = tf.placeholder(tf.int64, [None])
    logits = tf.ones([3, 4])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xent")
    loss = tf.reduce_mean(losses * 2.0)
    with tf.Session() as session:
        for _ in range(times):
            with pytest.raises(errors.InvalidArgumentError) as caught:
                session.run(loss, {labels: [1, 2, 7]})
        assert "(inputs: float32[3, 4], int64[3])" in caught.value.message
        named = r"\[\[node xent\S* \(op SparseSoftmaxCrossEntropyWithLogits\) defined at "
        assert re.search(named, caught.value.message)
        assert session.run(loss, {labels: [1, 2, 3]}) > 0


def test_messages_have_no_words_of_plans():
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    with tf.Session() as session, pytest.raises(errors.InvalidArgumentError) as caught:
        session.run(tf.reduce_sum(tf.exp(x) * tf.tanh(y) + 1.0), {x: [1, 2], y: [1, 2, 3]})
    assert "(op _" not in caught.value.message and "Incompatible shapes: [2] vs. [3]" in caught.value.message


def test_ends_of_data_say_nothing_of_inputs():
    following = tf.data.Dataset.range(1).make_one_shot_iterator().get_next()
    queue = tf.FIFOQueue(2, tf.int32, [[]])
    taken = queue.dequeue_many(tf.placeholder_with_default(2, []))
    with tf.Session() as session:
        session.run([following, queue.close()])
        for fetch in (following, taken):
            with pytest.raises(errors.OutOfRangeError) as raised:
                session.run(fetch)
            assert "inputs" not in raised.value.message


def _zeros(*dims):
    return np.zeros(dims, np.float32)


_ints = np.int32


@pytest.mark.parametrize(
    ("build", "fed", "words"),
    [
        (
            tf.reshape,
            [_zeros(3, 10), _ints([4, 7])],
            "a tensor with 30 values, but the requested shape has 28",
        ),
        (tf.reshape, [_zeros(3, 10), _ints([-1, 7])], "but the requested shape requires a multiple of 7"),
        (
            lambda a, b, c: tf.concat([a, b, c], 1),
            [_zeros(3, 2), _zeros(3, 1), _zeros(4, 2)],
            r"shape\[0\] = \[3,2\] vs. shape\[2\] = \[4,2\]",
        ),
        (
            lambda a, b: tf.stack([a, b]),
            [_zeros(3, 2), _zeros(4, 2)],
            r"values\[0\].shape = \[3,2\] != values\[1\].shape = \[4,2\]",
        ),
        (tf.tile, [_zeros(2, 3), _ints(2)], r"Expected multiples to be 1-D, but got shape \[\]"),
        (tf.broadcast_to, [_zeros(2), _ints([3, 3])], r"Incompatible shapes: \[2\] vs. \[3,3\]"),
        (
            lambda a, i: tf.gather(a, i, axis=1),
            [_zeros(2, 3), _ints([0, 7])],
            r"indices\[1\] = 7 is not in \[0, 3\)",
        ),
        (
            lambda i, a: tf.scatter_nd(i, a, [2]),
            [_ints([[5]]), _zeros(1)],
            r"indices\[0\] = \[5\] does not index into shape \[2\]",
        ),
        (
            lambda x, y: tf.nn.conv2d_transpose(x, y, [2, 16, 16, 4], [1, 2, 2, 1]),
            [_zeros(2, 8, 8, 3), _zeros(3, 3, 4, 5)],
            "filter and out_backprop must have the same out_depth",
        ),
        (tf.matrix_diag_part, [_zeros(2)], r"input must be at least 2-dim, received shape: \[2\]"),
        (
            lambda x, w: tf.nn.xw_plus_b(x, w, tf.zeros([3])),
            [_zeros(2, 3), _zeros(4, 3)],
            r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[4,3\]",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_told_in_tensorflows_words(build, fed, words):
    inputs = [tf.placeholder(tf.as_dtype(value.dtype)) for value in fed]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(build(*inputs), dict(zip(inputs, fed)))
