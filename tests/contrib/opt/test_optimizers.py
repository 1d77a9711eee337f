"""`tf.contrib.opt`: trainings as TensorFlow 1.15.5 does them, and the wrappers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.contrib.opt.opt_programs import cases, trajectory

import flowstone as tf

ANSWERS = json.loads((Path(__file__).parents[2] / "golden" / "contrib" / "opt.json").read_text())


@pytest.mark.parametrize(("name", "resource", "sparse"), cases())
def test_trajectories(name: str, resource: bool, sparse: bool) -> None:
    expected = ANSWERS[f"{name} {resource} {sparse}"]
    found = trajectory(tf, name, resource, sparse)
    assert sorted(found) == sorted(expected)
    for key, values in expected.items():
        np.testing.assert_allclose(found[key], values, rtol=2e-5, atol=2e-6, err_msg=key)


@pytest.mark.parametrize("resource", [False, True])
def test_variables_that_decay(resource: bool) -> None:
    def step(minimizes: bool) -> list[list[float]]:
        tf.reset_default_graph()
        values = [tf.get_variable(n, initializer=np.float32([1, 2]), use_resource=resource) for n in "ab"]
        optimizer = tf.contrib.opt.MomentumWOptimizer(0.1, 0.1, 0.9)
        if minimizes:
            update = optimizer.minimize(tf.reduce_sum(values), decay_var_list=values[:1])
        else:
            gradients = [(tf.ones([2]), value) for value in values]
            update = optimizer.apply_gradients(gradients, decay_var_list=values[:1])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(update)
            return [np.round(value, 4).tolist() for value in session.run(values)]

    half = [pytest.approx([0.8, 1.7], abs=1e-4), pytest.approx([0.9, 1.9], abs=1e-4)]
    assert step(minimizes=False) == half
    assert step(minimizes=True) == [half[0], half[0]]  # as in TensorFlow 1.15, where all decay
