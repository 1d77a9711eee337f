"""Training with slim: the operation of a step, the loop, what it writes. Values are by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib import slim
from flowstone.contrib.slim import learning


def train_op(**options: Any) -> Any:
    """A step that halves w, which begins at 4; the loss is half its square."""
    w = tf.get_variable("w", initializer=4.0)
    loss = w * w / 2
    tf.summary.scalar("loss", loss)
    return learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.5), **options)


def test_names_of_a_train_op() -> None:
    train_op(gradient_multipliers={"w": 2.0}, clip_gradient_norm=3, summarize_gradients=True)
    names = {each.name for each in tf.get_default_graph().get_operations()}
    assert {"multiply_grads/mul", "clip_grads/clip_by_norm", "train_op/control_dependency"} <= names
    summaries = [each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)][1:]
    assert summaries == ["summarize_grads/w_gradient", "summarize_grads/w_gradient_norm"]


def test_gradients_are_multiplied_then_clipped() -> None:
    op = train_op(gradient_multipliers={"w": 2.0}, clip_gradient_norm=3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(op)
        assert session.run("w:0") == pytest.approx(4 - 0.5 * 3)


def test_summaries_of_gradients_have_their_own_names() -> None:
    w = tf.get_variable("w", initializer=4.0)
    names = [each.op.name for each in learning.add_gradients_summaries([(tf.constant(1.0), w)])]
    assert names == ["w/gradient", "w/gradient_norm"]
    assert learning.clip_gradient_norms([(None, w)], 1.0) == [(None, w)]
    assert learning.multiply_gradients([(tf.constant(1.0), w)], {"other": 2.0})[0][1] is w


def test_a_training_saves_and_goes_on(tmp_path: Path) -> None:
    assert learning.train(train_op(), str(tmp_path), number_of_steps=3, log_every_n_steps=2) == 0.5
    assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-3")
    with tf.Graph().as_default():
        assert learning.train(train_op(), str(tmp_path), number_of_steps=4) == 0.125
    (log, *_) = sorted(tmp_path.glob("events*"))
    tags = {v.tag for e in tf.train.summary_iterator(str(log)) for v in e.summary.value}
    assert "loss" in tags


def test_without_a_folder_nothing_is_written() -> None:
    assert learning.train(train_op(), None, number_of_steps=3, log_every_n_steps=0) == 0.5


def test_a_step_of_the_programs_own() -> None:
    seen = []

    def step(session: Any, op: Any, global_step: Any, arguments: Any) -> tuple[float, bool]:
        seen.append(sorted(arguments))
        session.run(op)
        return 7.0, len(seen) == 2

    assert learning.train(train_op(), None, step, number_of_steps=5) == 7.0
    assert seen == [["should_log", "should_stop"]] * 2


def test_arguments_of_the_programs_own(tmp_path: Path) -> None:
    seen = []

    def step(session: Any, op: Any, global_step: Any, arguments: Any) -> tuple[float, bool]:
        seen.append(sorted(arguments))
        return 7.0, True

    learning.train(train_op(), str(tmp_path), step, {"mine": 1}, save_summaries_secs=0)
    assert seen == [["mine", "summary_writer"]]


def test_a_step_says_what_it_did() -> None:
    op, global_step = train_op(), tf.train.get_global_step()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert learning.train_step(session, op, global_step, {}) == (8.0, False)
        stop = {"should_stop": tf.greater_equal(global_step, 2)}
        assert learning.train_step(session, op, global_step, stop) == (2.0, True)


def test_traces_are_written(tmp_path: Path) -> None:
    learning.train(train_op(), str(tmp_path), number_of_steps=2, trace_every_n_steps=2)
    assert [path.name for path in tmp_path.glob("tf_trace*")] == ["tf_trace-1.json"]


def test_the_end_of_the_input_ends_the_training(tmp_path: Path) -> None:
    (value,) = tf.train.slice_input_producer([tf.constant([1.0, 2.0])], num_epochs=1, shuffle=False)
    w = tf.get_variable("w", initializer=0.0)
    op = learning.create_train_op(w * value, tf.train.GradientDescentOptimizer(1.0))
    learning.train(op, str(tmp_path))
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert (reader.get_tensor("w"), reader.get_tensor("global_step")) == (-3.0, 2)


def test_how_it_begins() -> None:
    calls = []
    op = train_op()
    w = tf.trainable_variables()[0]
    last = learning.train(
        op, None, number_of_steps=1, session_wrapper=lambda session: calls.append("wrapper") or session,
        init_fn=lambda session: calls.append(float(session.run(w))), local_init_op=tf.no_op(),
    )  # fmt: skip
    assert (last, calls) == (8.0, [4.0, "wrapper"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_op": None}, "train_op cannot be None"),
        ({"number_of_steps": 0}, "must be either None or a positive number"),
        ({"trace_every_n_steps": 1}, "trace_every_n_steps because logdir=None"),
        ({"summary_op": "op"}, "summary_op because logdir=None"),
        ({"saver": object()}, "saver because logdir=None"),
        ({"sync_optimizer": object()}, "must be a tf.train.SyncReplicasOptimizer"),
    ],
)
def test_what_cannot_be_trained(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learning.train(**{"train_op": train_op(), "logdir": None, **options})


def lenet(images: Any) -> Any:
    """A small convolutional network."""
    net = slim.conv2d(images, 8, [5, 5], scope="conv1")
    net = slim.max_pool2d(net, [2, 2], scope="pool1")
    net = slim.conv2d(net, 16, [5, 5], scope="conv2")
    net = slim.max_pool2d(net, [2, 2], scope="pool2")
    net = slim.fully_connected(slim.flatten(net), 32, scope="fc3")
    return slim.fully_connected(net, 10, activation_fn=None, scope="fc4")


def by_hand(images: Any) -> Any:
    """The same network without slim."""

    def variables(name: str, shape: list[int]) -> tuple[Any, Any]:
        with tf.variable_scope(name):
            return tf.get_variable("weights", shape), tf.get_variable("biases", shape[-1:])

    def convolved(net: Any, name: str, shape: list[int]) -> Any:
        weights, biases = variables(name, shape)
        net = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(net, weights, [1, 1, 1, 1], "SAME"), biases))
        return tf.nn.max_pool(net, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")

    net = convolved(convolved(images, "conv1", [5, 5, 1, 8]), "conv2", [5, 5, 8, 16])
    weights, biases = variables("fc3", [784, 32])
    net = tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.reshape(net, [-1, 784]), weights), biases))
    weights, biases = variables("fc4", [32, 10])
    return tf.nn.bias_add(tf.matmul(net, weights), biases)


def plan_of(model: Any, through_slim: bool) -> list[str]:
    """The lines of code of a training step."""
    with tf.Graph().as_default():
        images = tf.placeholder(tf.float32, [64, 28, 28, 1])
        labels = tf.placeholder(tf.int64, [64])
        loss = tf.losses.sparse_softmax_cross_entropy(labels, model(images))
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        step = tf.train.get_or_create_global_step()
        if through_slim:
            fetch = learning.create_train_op(loss, optimizer, check_numerics=False)
        else:
            with tf.control_dependencies([optimizer.minimize(loss, step)]):
                fetch = tf.identity(loss)
        feeds = {images: np.zeros([64, 28, 28, 1], np.float32), labels: np.zeros(64, np.int64)}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            text = str(session.explain(fetch, feeds))
    code = text[text.rindex("def segment") :]
    return [line for line in code.splitlines() if line.strip()]


def test_a_step_through_slim_is_the_step_by_hand() -> None:
    ours, theirs = plan_of(lenet, True), plan_of(by_hand, False)
    assert len(theirs) > 10
    assert len(ours) == len(theirs)
