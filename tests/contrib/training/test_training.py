"""Training operations and the loop: nodes' names are those of TensorFlow 1.15.5, values by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib import training


def squares() -> tuple[Any, Any]:
    w = tf.get_variable("w", initializer=tf.constant([3.0, 4.0]))
    return w, tf.reduce_sum(w * w) / 2


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(fetches)


def test_a_train_op_has_tensorflows_names_and_collections() -> None:
    _, loss = squares()
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op("update"))
    clip = training.clip_gradient_norms_fn(1.0)
    op = training.create_train_op(
        loss, tf.train.GradientDescentOptimizer(0.1), transform_grads_fn=clip, summarize_gradients=True
    )
    assert op.name == "train_op/control_dependency:0"
    names = {each.name for each in tf.get_default_graph().get_operations()}
    assert {"update_barrier", "control_dependency", "clip_by_norm", "train_op/CheckNumerics"} <= names
    summaries = [each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert summaries == ["summarize_grads/w_gradient", "summarize_grads/w_gradient_norm"]
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP)[-1] is op
    assert tf.train.get_global_step() is not None


def test_a_step_is_the_optimisers() -> None:
    w, loss = squares()
    op = training.create_train_op(loss, tf.train.GradientDescentOptimizer(0.5))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(op) == 12.5
        np.testing.assert_allclose(session.run(w), [1.5, 2.0])
        assert session.run(tf.train.get_global_step()) == 1


def test_update_ops_run_before_the_loss_is_computed() -> None:
    _, loss = squares()
    count = tf.get_variable("count", initializer=0.0, trainable=False)
    op = training.create_train_op(
        loss, tf.train.GradientDescentOptimizer(0.5), global_step=None, update_ops=[tf.assign_add(count, 1.0)]
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(op)
        assert session.run(count) == 1.0
    assert tf.train.get_global_step() is None


def test_a_loss_that_is_not_finite_is_an_error() -> None:
    w = tf.get_variable("w", initializer=-1.0)
    checked = training.create_train_op(tf.log(w), tf.train.GradientDescentOptimizer(0.5))
    with pytest.raises(tf.errors.InvalidArgumentError, match="LossTensor"):
        run(checked)
    unchecked = training.create_train_op(
        tf.log(w), tf.train.GradientDescentOptimizer(0.5), check_numerics=False
    )
    assert np.isnan(run(unchecked))


@pytest.mark.parametrize("variables", [[], "untrainable"])
def test_only_trainable_variables_are_trained(variables: Any) -> None:
    _, loss = squares()
    if variables:
        variables = [tf.get_variable("fixed", initializer=1.0, trainable=False)]
    with pytest.raises(AssertionError):
        training.create_train_op(loss, tf.train.GradientDescentOptimizer(0.5), variables_to_train=variables)


def test_gradients_are_multiplied_by_variable_or_name() -> None:
    w, _ = squares()
    gradients = [(tf.constant([1.0, 2.0]), w)]
    for key in (w, "w"):
        ((product, variable),) = training.multiply_gradients(gradients, {key: 3.0})
        assert variable is w
        np.testing.assert_array_equal(run(product), [3.0, 6.0])
    assert training.multiply_gradients(gradients, {"other": 3.0}) == gradients
    rows = tf.IndexedSlices(tf.constant([2.0]), tf.constant([1]), tf.constant([2]))
    ((product, _),) = training.multiply_gradients([(rows, w)], {"w": 3.0})
    np.testing.assert_array_equal(run(product.values), [6.0])


@pytest.mark.parametrize(
    ("gradients", "factors", "message"),
    [
        ((), {"w": 1.0}, "`grads_and_vars` must be a list"),
        ([], {}, "`gradient_multipliers` is empty"),
        ([], 3, "`gradient_multipliers` must be a dict"),
        ([None], {"w": 1.0}, "Requested multiple of `None` gradient"),
    ],
)
def test_what_cannot_be_multiplied(gradients: Any, factors: Any, message: str) -> None:
    w, _ = squares()
    if gradients:
        gradients = [(None, w)]
    with pytest.raises(ValueError, match=message):
        training.multiply_gradients(gradients, factors)


def test_norms_are_clipped() -> None:
    w, _ = squares()
    rows = tf.IndexedSlices(tf.constant([[3.0, 4.0]]), tf.constant([1]))
    (dense, _), (sparse, _), (none, _) = training.clip_gradient_norms(
        [(tf.constant([3.0, 4.0]), w), (rows, w), (None, w)], 1.0
    )
    np.testing.assert_allclose(run(dense), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(run(sparse.values), [[0.6, 0.8]], rtol=1e-6)
    assert none is None


def test_summaries_of_gradients() -> None:
    w, _ = squares()
    rows = tf.IndexedSlices(tf.constant([[3.0, 4.0]]), tf.constant([1]))
    names = [each.op.name for each in training.add_gradients_summaries([(rows, w), (None, w)])]
    assert names == ["w_gradient", "w_gradient_norm"]


def test_the_loop_ends_with_its_hook_and_saves(tmp_path: Path) -> None:
    _, loss = squares()
    op = training.create_train_op(loss, tf.train.GradientDescentOptimizer(0.5))
    last = training.train(
        op, tmp_path, hooks=[tf.train.StopAtStepHook(num_steps=3)], save_summaries_steps=None
    )
    assert last == pytest.approx(12.5 / 16)
    assert str(tf.train.latest_checkpoint(tmp_path)).endswith("model.ckpt-3")


def test_a_period_needs_a_folder() -> None:
    _, loss = squares()
    op = training.create_train_op(loss, tf.train.GradientDescentOptimizer(0.5))
    with pytest.raises(ValueError, match="logdir cannot be None when save_summaries_steps is not None"):
        training.train(op, None)
