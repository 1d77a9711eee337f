"""Data that end before training does, as TensorFlow 1.15.5 answers: the history, results and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]
X = np.arange(40, dtype="float32").reshape(20, 2) / 40
Y = X[:, :1]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def model() -> Any:
    made = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))])
    made.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    return made


def dataset(count: int = 20) -> Any:
    return tf.data.Dataset.from_tensor_slices((X[:count], Y[:count])).batch(5)


def generated(count: int) -> Iterator[Any]:
    for i in range(count):
        yield X[i % 10 : i % 10 + 5], Y[i % 10 : i % 10 + 5]


def agree(history: Any, **expected: list[float]) -> None:
    assert history.epoch == list(range(len(expected["loss"])))
    for name, values in expected.items():
        np.testing.assert_allclose(history.history[name], values, atol=6e-5)


def test_training_by_steps_goes_on_in_a_dataset_until_it_ends() -> None:
    history = model().fit(dataset(), steps_per_epoch=3, epochs=3, verbose=0, validation_data=dataset(10))
    agree(history, loss=[0.1315, 0.278], mean_absolute_error=[0.322, 0.5241])
    np.testing.assert_allclose(history.history["val_loss"], [0.014], atol=6e-5)


def test_an_epoch_without_a_batch_has_the_results_of_the_one_before() -> None:
    history = model().fit(dataset(), steps_per_epoch=4, epochs=3, verbose=0)
    agree(history, loss=[0.1681, 0.042], mean_absolute_error=[0.3725, 0.3725])


def test_training_without_steps_reads_a_dataset_whole_in_each_epoch() -> None:
    assert model().fit(dataset(), epochs=3, verbose=0).epoch == [0, 1, 2]


def test_training_ends_with_a_generator() -> None:
    history = model().fit_generator(generated(5), steps_per_epoch=4, epochs=3, verbose=0)
    agree(history, loss=[0.0291, 0.0383], mean_absolute_error=[0.1544, 0.184])


def test_results_and_outputs_are_those_of_the_batches_that_there_are() -> None:
    np.testing.assert_allclose(model().evaluate(dataset(10), steps=5, verbose=0), [0.03325, 0.25], rtol=1e-4)
    results = model().evaluate_generator(generated(3), steps=5)
    np.testing.assert_allclose(results, [0.022374999, 0.175], rtol=1e-5)
    assert model().predict_generator(generated(3), steps=5).shape == (15, 1)


def test_validation_that_ends_early_ends_the_training() -> None:
    options = {"validation_data": dataset(10), "validation_steps": 5, "shuffle": False}
    history = model().fit(X, Y, batch_size=10, epochs=2, verbose=0, **options)
    agree(history, loss=[0.28], val_loss=[0.0048], val_mean_absolute_error=[0.0951])


def test_classes_do_not_weigh_the_batches_of_a_dataset() -> None:
    weighted = model().fit(dataset(), verbose=0, class_weight={0: 5.0, 1: 7.0}).history
    assert weighted["loss"] == model().fit(dataset(), verbose=0).history["loss"]


def test_a_batch_may_be_tensors() -> None:
    x, y = tf.constant(X[:5]), tf.constant(Y[:5])
    made = model()
    made.fit(x, y, steps_per_epoch=2, verbose=0)
    np.testing.assert_allclose(made.train_on_batch(x, y), [0.011034496, 0.10358617], rtol=1e-5)
    np.testing.assert_allclose(made.test_on_batch(x, y), [0.0086795, 0.076558694], rtol=1e-5)
    outputs = made.predict_on_batch(tf.constant(X[:2]))
    np.testing.assert_allclose(outputs, [[-0.03580575], [0.06321532]], rtol=1e-5)


def test_weights_of_classes_name_outputs() -> None:
    x = tf.keras.Input((2,))
    made = tf.keras.Model(x, [tf.keras.layers.Dense(1, name=name)(x) for name in "ab"])
    made.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"Unknown entries in class_weight dictionary: \['c'\]"):
        made.fit(X, [Y, Y], class_weight={"c": {0: 1.0}}, verbose=0)
