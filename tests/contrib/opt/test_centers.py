"""Optimisers of `tf.contrib.opt` with a center: trainings as TensorFlow 1.15.5 does them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.opt.center_programs import cases, trajectory

import flowstone as tf

ANSWERS = json.loads((Path(__file__).parents[2] / "golden" / "contrib" / "centers.json").read_text())


@pytest.mark.parametrize("name", cases())
def test_trajectories(name: str) -> None:
    found, expected = trajectory(tf, name), ANSWERS[name]
    assert sorted(found) == sorted(expected)
    assert found.pop("local") == expected["local"]
    for key, values in found.items():
        np.testing.assert_allclose(values, expected[key], rtol=1e-5, atol=1e-6, err_msg=key)


def _in_container(container: str) -> Any:
    """Puts variables into a worker's own container, as a worker's own device has them."""

    def create(next_creator: Any, **kwargs: Any) -> Any:
        with tf.container(container):
            return next_creator(**kwargs)

    return create


class _Shared(tf.contrib.opt.ModelAverageCustomGetter):
    """Centers that both workers see, though their variables are in containers of their own."""

    def _add_copies(self, name: str, local: Any) -> None:
        with tf.container("centers"):
            super()._add_copies(name, local)


def test_two_workers_get_the_mean_of_their_variables() -> None:
    def worker(number: int, found: list[Any]) -> None:
        with tf.Graph().as_default(), tf.Session("local") as session:
            getter = _Shared(worker_device="")
            with tf.container(f"worker{number}"), tf.variable_scope("", custom_getter=getter):
                x = tf.get_variable("averaged", initializer=0.0)
            optimizer = tf.contrib.opt.ModelAverageOptimizer(
                tf.train.GradientDescentOptimizer(1.0), 2, number == 0, getter, interval_steps=2
            )
            with tf.variable_creator_scope(_in_container(f"worker{number}")):
                train = optimizer.apply_gradients([(tf.constant(-1.0 - number), x)])
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            barrier.wait(20)
            session.run(train)
            before = session.run(x)
            session.run(train)
            found.append((before, session.run(x)))

    barrier = threading.Barrier(2)
    found: list[list[Any]] = [[], []]
    threads = [threading.Thread(target=worker, args=(i, found[i])) for i in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert found == [[(1.0, 3.0)], [(2.0, 3.0)]]


def test_centers_are_saved_under_the_names_of_variables(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        getter = tf.contrib.opt.ElasticAverageCustomGetter(worker_device="")
        with tf.variable_scope("", custom_getter=getter):
            x = tf.get_variable("x", initializer=4.0)
        optimizer = tf.contrib.opt.ElasticAverageOptimizer(
            tf.train.GradientDescentOptimizer(1.0), 1, getter, communication_period=10
        )
        train = optimizer.minimize(x * 3.0, var_list=[x])
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(train)
        assert session.run(x) == 1.0
        path = optimizer.swapping_saver().save(session, str(tmp_path / "model"))
    assert tf.train.load_variable(path, "x") == 4.0


def test_variables_of_another_getter_are_refused() -> None:
    with tf.Graph().as_default():
        x = tf.get_variable("x", initializer=4.0)
        optimizer = tf.contrib.opt.AGNOptimizer(
            tf.train.GradientDescentOptimizer(1.0), 1, tf.contrib.opt.AGNCustomGetter("")
        )
        with pytest.raises(ValueError, match="x:0 was not made with the custom getter"):
            optimizer.minimize(x * x)
