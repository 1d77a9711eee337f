"""Models compiled in the scope of strategies of two replicas: TensorFlow's values, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.distribute.strategy_programs import check, programs
from tests.keras.published import with_keras

import flowstone as tf
from flowstone.contrib.distribute import core

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]
X = np.random.RandomState(0).randn(8, 3).astype(np.float32)
Y = X[:, :1]


PROGRAMS = programs("keras_programs")


@pytest.mark.parametrize("program", PROGRAMS.PROGRAMS, ids=lambda program: program.__name__)
def test_programs_give_what_tensorflow_gives(program: Any, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    check(PROGRAMS, program, "keras_values.json", tmp_path)


@pytest.fixture
def strategy() -> Iterator[Any]:
    yield core.MirroredStrategy(["/cpu:0", "/cpu:1"])


def dense(**options: Any) -> Any:
    zeros = tf.keras.initializers.Zeros()
    return tf.keras.Sequential(
        [tf.keras.layers.Dense(1, kernel_initializer=zeros, input_shape=(3,), **options)]
    )


def compiled(strategy: Any, make: Any = dense, loss: Any = "mse", **options: Any) -> Any:
    with strategy.scope():
        model = make()
        model.compile(tf.keras.optimizers.SGD(0.1), loss, **options)
    return model


def trained(strategy: Any, **options: Any) -> list[np.ndarray]:
    tf.keras.backend.clear_session()
    model = compiled(strategy, lambda: dense(kernel_regularizer=tf.keras.regularizers.l2(0.1)))
    model.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0, **options)
    return model.get_weights()  # type: ignore[no-any-return]


def test_replicas_train_as_one_device_does(strategy: Any) -> None:
    one = trained(core.OneDeviceStrategy("/cpu:0"))
    for found, expected in zip(trained(strategy), one):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for found, expected in zip(trained(core.CentralStorageStrategy(["/cpu:0", "/cpu:1"], "/cpu:0")), one):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_class_weights_and_a_share_for_validation_are_as_of_one_device(strategy: Any) -> None:
    def history(strategy: Any) -> Any:
        tf.keras.backend.clear_session()
        model = compiled(strategy, loss="binary_crossentropy", weighted_metrics=["mse"])
        options = {"class_weight": {0: 1.0, 1: 3.0}, "validation_split": 0.5, "batch_size": 4}
        return model.fit(X, (Y > 0).astype("f"), epochs=2, shuffle=False, verbose=0, **options).history

    one, several = history(core.OneDeviceStrategy("/cpu:0")), history(strategy)
    assert several.keys() == one.keys()
    for key, expected in one.items():
        np.testing.assert_allclose(several[key], expected, rtol=1e-5)


def test_all_copies_of_a_weight_are_set_and_trained(strategy: Any) -> None:
    model = compiled(strategy)
    model.set_weights([np.float32([[1], [2], [3]]), np.float32([4])])
    session = tf.keras.backend.get_session()
    copies = [session.run(each) for each in model.weights[0].values]
    np.testing.assert_array_equal(copies, [[[1], [2], [3]]] * 2)
    model.fit(X, Y, batch_size=4, verbose=0)
    first, second = [session.run(each) for each in model.weights[0].values]
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, copies[0])


def test_the_rest_of_too_few_examples_belongs_to_the_batch_before(
    strategy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    model = compiled(strategy)
    model.fit(X[:5], Y[:5], batch_size=4, verbose=2)
    assert "Train on 1 steps" in capsys.readouterr().out
    assert np.isfinite(model.get_weights()[0]).all()
    assert model.predict(X[:5], batch_size=4).shape == (5, 1)


def test_a_batch_of_too_few_examples_is_refused(strategy: Any) -> None:
    model = compiled(strategy)
    with pytest.raises(ValueError, match="A batch of 1 cannot be split among 2 replicas"):
        model.train_on_batch(X[:1], Y[:1])
    with pytest.raises(ValueError, match="not divisible by steps 3"):
        model.fit(X, Y, steps_per_epoch=3, verbose=0)
    with pytest.raises(ValueError, match="Number of samples 8 is less than"):
        model.fit(X, Y, batch_size=4, steps_per_epoch=3, verbose=0)


def test_a_layer_that_adds_losses_and_metrics_adds_those_of_each_replica(strategy: Any) -> None:
    class Adding(tf.keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            self.add_loss(tf.reduce_mean(inputs))
            self.add_metric(inputs, name="mean", aggregation="mean")
            return inputs

    def make() -> Any:
        inputs = tf.keras.Input((3,))
        model = tf.keras.Model(inputs, Adding()(inputs))
        model.add_loss(lambda: tf.constant(10.0))
        return model

    model = compiled(strategy, make, loss=None)
    found = dict(zip(model.metrics_names, model.evaluate(X, batch_size=4, verbose=0)))
    assert found == {"loss": pytest.approx(10 + X.mean()), "mean": pytest.approx(X.mean())}


def test_what_a_strategy_cannot_train_is_refused(strategy: Any) -> None:
    with pytest.raises(ValueError, match="without `input_shape`"):
        compiled(strategy, lambda: tf.keras.Sequential([tf.keras.layers.Dense(1)]))
    with pytest.raises(ValueError, match="target_tensors is not supported"):
        compiled(strategy, target_tensors=[tf.placeholder(tf.float32, [None, 1])])
    model = dense()
    with strategy.scope(), pytest.raises(ValueError, match="was not created in the scope"):
        model.compile("sgd", "mse")
