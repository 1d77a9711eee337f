"""Optimizers of `tf.keras` in the steps of several replicas."""

from __future__ import annotations

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf
from flowstone.contrib.distribute import core

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.mark.usefixtures("keras_graph")
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_replicas_step_as_one_device_does(kind: str) -> None:
    x = np.random.RandomState(0).randn(4, 3).astype(np.float32)

    def trained(strategy: core.Strategy) -> tuple[list[np.ndarray], list[str]]:
        with tf.Graph().as_default(), strategy.scope():
            optimizer = getattr(tf.keras.optimizers, kind)(0.1)
            iterator = strategy.make_dataset_iterator(tf.data.Dataset.from_tensors(x).repeat())

            def step(rows: tf.Tensor) -> tf.Operation:
                w = tf.get_variable("w", [3, 1], initializer=tf.ones_initializer())
                loss = tf.reduce_sum(tf.square(tf.matmul(rows, w))) / 4
                return optimizer.apply_gradients([(tf.gradients(loss, [w])[0], w)])

            train = strategy.group(strategy.experimental_run(step, iterator))
            with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
                session.run([tf.global_variables_initializer(), iterator.initialize()])
                for _ in range(3):
                    session.run(train)
                parts = strategy.experimental_local_results(tf.global_variables("w")[0])
                names = [each.name for each in tf.global_variables()]
                return [session.run(each) for each in parts], names

    (one,), names = trained(core.OneDeviceStrategy("/cpu:0"))
    found, replicated_names = trained(core.MirroredStrategy(["/cpu:0", "/cpu:1"]))
    assert names == replicated_names
    np.testing.assert_allclose(found, [one] * 2, rtol=1e-5)
