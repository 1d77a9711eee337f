"""The order of examples in epochs: TensorFlow 1.15's, by NumPy's seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]

X = np.arange(20).reshape(10, 2).astype("f")


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def _model() -> Any:
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))
    model = tf.keras.Sequential([dense])
    model.compile(tf.keras.optimizers.SGD(1e-4), "mse")
    return model


def test_each_epoch_shuffles_the_examples_as_they_are_given() -> None:
    np.random.seed(3)
    history = _model().fit(X, X[:, :1], batch_size=3, epochs=3, verbose=0).history
    # From TensorFlow 1.15.5.
    np.testing.assert_allclose(history["loss"], [118.535, 72.286, 48.807], atol=1e-3)
    assert np.random.rand() == pytest.approx(0.40236064355895806)


def test_validation_draws_an_order_as_well() -> None:
    if not hasattr(tf.keras.losses, "MeanSquaredError"):
        pytest.skip("validation keeps the order over Keras 2.2")
    np.random.seed(3)
    model = _model()
    data = (X, X[:, :1])
    history = model.fit(*data, batch_size=3, epochs=3, verbose=0, validation_data=data).history
    np.testing.assert_allclose(history["loss"], [118.535, 72.782, 52.687], atol=1e-3)
    assert np.random.rand() == pytest.approx(0.7135657471534964)
    model.evaluate(*data, batch_size=3, verbose=0)
    model.predict(X, batch_size=3)
    before = np.random.get_state()[1:3]
    model.fit(*data, batch_size=3, epochs=1, verbose=0, shuffle=False)
    after = np.random.get_state()[1:3]
    assert np.array_equal(before[0], after[0]) and before[1] == after[1]


def test_batches_are_shuffled_anew() -> None:
    seen = []
    model = _model()
    np.random.seed(5)
    orders = []
    for _ in range(2):
        order = np.arange(9).reshape(3, 3)
        np.random.shuffle(order)
        orders.append(order.ravel().tolist())
    model._make_train_function()
    train = model.train_function

    def recorded(inputs: Any) -> Any:
        seen.append(inputs[0][:, 0])
        return train(inputs)

    model.train_function = recorded
    np.random.seed(5)
    model.fit(X[:9], X[:9, :1], batch_size=3, epochs=2, verbose=0, shuffle="batch")
    assert [np.concatenate(seen[i : i + 3]).tolist() for i in (0, 3)] == [
        X[order, 0].tolist() for order in orders
    ]
