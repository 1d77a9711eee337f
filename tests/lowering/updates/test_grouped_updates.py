"""Grouped updates compute what the updates do one by one, on lists or on joined vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree
from flowstone.lowering.updates.grouped_updates import GROUPED

RNG = np.random.default_rng(19)
OPTIMIZERS = {
    "ApplyGradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "ApplyMomentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "ApplyAdam": lambda: tf.train.AdamOptimizer(0.1),
    "ApplyAdagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "ApplyRMSProp": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "ApplyCenteredRMSProp": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "ApplyAdadelta": lambda: tf.train.AdadeltaOptimizer(1.0, epsilon=1e-3),
    "ApplyFtrl": lambda: tf.train.FtrlOptimizer(0.05, l1_regularization_strength=1e-3),
    "ApplyProximalGradientDescent": lambda: tf.train.ProximalGradientDescentOptimizer(0.1),
    "ApplyProximalAdagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1),
}


def trained(optimizer: Any, use_resource: bool, shapes: Any) -> list[Any]:
    """The variables after a step, with gradients of their own."""
    variables = [
        tf.get_variable(f"v{i}", initializer=RNG.standard_normal(dims).astype("f"), use_resource=use_resource)
        for i, dims in enumerate(shapes)
    ]
    gradients = [tf.constant(RNG.standard_normal(dims).astype("f")) for dims in shapes]
    with tf.control_dependencies([optimizer.apply_gradients(zip(gradients, variables))]):
        return [tf.identity(v.read_value()) for v in variables]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.by_aten
def test_steps_are_those_of_the_single_updates(
    monkeypatch: Any, set_profile: Any, name: str, use_resource: bool
) -> None:
    assert name in GROUPED
    set_profile(grouped_updates=2)
    after = trained(OPTIMIZERS[name](), use_resource, [(3, 2), (5,), ()])
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, after, {}, "group_updates", fires=3, setup=setup, tolerance=1e-6)
    assert f"update='{name}'" in log


@pytest.mark.by_aten
def test_nesterovs_momentum_is_another_step(monkeypatch: Any, set_profile: Any) -> None:
    set_profile(grouped_updates=2)
    after = trained(tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True), False, [(3, 2), (5,)])
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, after, {}, "group_updates", fires=2, setup=setup, tolerance=1e-6)
    assert "use_nesterov=True" in log


@pytest.mark.parametrize("use_nesterov", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_momentum_may_be_zero(monkeypatch: Any, set_profile: Any, count: int, use_nesterov: bool) -> None:
    set_profile(grouped_updates=2)
    variables = [tf.Variable([float(i), 2.0]) for i in range(count)]
    optimizer = tf.train.MomentumOptimizer(0.5, 0.0, use_nesterov=use_nesterov)
    train = optimizer.apply_gradients([(tf.constant([1.0, -2.0]), v) for v in variables])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in (1, 2):
            session.run(train)
            for i, v in enumerate(variables):
                assert session.run(v).tolist() == [i - 0.5 * step, 2.0 + step]
                assert session.run(optimizer.get_slot(v, "momentum")).tolist() == [1.0, -2.0]
