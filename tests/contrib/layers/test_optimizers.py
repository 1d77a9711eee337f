"""`optimize_loss` makes 1.15.5's variables, summaries and steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.layers.step_programs import answers

import flowstone as tf
from flowstone.contrib.layers.optimizers import adaptive_clipping_fn

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/contrib/steps.json").read_text(encoding="utf-8"))
optimize_loss = tf.contrib.layers.optimize_loss


def test_steps() -> None:
    found = answers(tf)
    assert list(found) == list(GOLDEN)
    for name, expected in GOLDEN.items():
        for key in ("op", "variables", "summaries"):
            assert found[name][key] == expected[key], name
        for value, golden in zip(found[name]["values"], expected["values"]):
            np.testing.assert_allclose(value, golden, rtol=1e-4, err_msg=name)


def a_loss() -> Any:
    x = tf.get_variable("x", [2], initializer=tf.constant_initializer([3.0, 4.0]))
    return tf.reduce_sum(x * x)


def after_steps(train: Any, count: int) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(count):
            session.run(train)
        return session.run(tf.trainable_variables()[0])


def test_updates_run_with_the_step() -> None:
    loss = a_loss()
    counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer(), trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(counter, 1.0))
    train = optimize_loss(loss, None, 0.1, "SGD")
    still = optimize_loss(loss, None, 0.1, "SGD", update_ops=[])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        session.run(still)
        assert session.run(counter) == 1.0


def test_gradients_that_grow_are_clipped() -> None:
    clip = adaptive_clipping_fn(report_summary=True, global_step=tf.train.get_or_create_global_step())
    train = optimize_loss(a_loss(), tf.train.get_global_step(), 0.1, "SGD", clip_gradients=clip)
    names = [variable.op.name for variable in tf.global_variables()]
    assert names[-2:] == ["OptimizeLoss/AdaptiveMaxNorm/mean", "OptimizeLoss/AdaptiveMaxNorm/sq_mean"]
    assert [s.op.name for s in tf.get_collection("summaries")][1].endswith("adaptive_max_gradient_norm")
    assert 0 < float(np.linalg.norm(after_steps(train, 2))) < 5


def test_adaptive_clipping_has_the_values_of_1_15() -> None:
    y = tf.get_variable("y", [1], initializer=tf.ones_initializer())
    loss = a_loss() + tf.reduce_sum(y)
    train = optimize_loss(
        loss, tf.train.get_or_create_global_step(), 0.1, "SGD", clip_gradients=adaptive_clipping_fn()
    )
    np.testing.assert_allclose(after_steps(train, 2), [0.97610426], rtol=1e-6)


def test_noise_moves_more_than_the_gradient() -> None:
    train = optimize_loss(a_loss(), None, 0.1, "SGD", gradient_noise_scale=0.5)
    found = after_steps(train, 1)
    assert not np.allclose(found, [2.4, 3.2])
    assert np.allclose(found, [2.4, 3.2], atol=0.11)


@pytest.mark.parametrize(
    ("rate", "keywords", "message"),
    [
        (0.1, {"optimizer": "Nope"}, "Optimizer name should be one of"),
        (None, {"optimizer": "SGD"}, "Learning rate is None"),
        (-0.1, {"optimizer": "SGD"}, "Invalid learning_rate"),
        ("a", {"optimizer": "SGD"}, "0d Tensor or float"),
        (0.1, {"optimizer": 3}, "Unrecognized optimizer"),
        (0.1, {"optimizer": lambda rate: 3}, "should return"),
        (0.1, {"optimizer": "SGD", "clip_gradients": "a"}, "Unknown type"),
        (0.1, {"optimizer": "SGD", "summaries": ["nope"]}, "Summaries should be one of"),
        (0.1, {"optimizer": "SGD", "learning_rate_decay_fn": max}, "global_step is required"),
    ],
)
def test_refused(rate: Any, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        optimize_loss(a_loss(), None, rate, **keywords)
