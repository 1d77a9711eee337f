"""Tags and steps of `tf.keras.callbacks.TensorBoard`; they are TensorFlow 1.15's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]


def written(folder: Path, epochs: int = 2, **options: Any) -> list[tuple[int, str]]:
    """Steps and tags that two epochs of four batches of eight write."""
    x, y = np.ones([32, 4], "f"), np.ones([32, 1], "f")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")
    board = tf.keras.callbacks.TensorBoard(str(folder), write_graph=False, profile_batch=0, **options)
    data = (x[:16], y[:16])
    model.fit(x, y, batch_size=8, epochs=epochs, verbose=0, validation_data=data, callbacks=[board])
    return events_of(folder)


def events_of(folder: Path) -> list[tuple[int, str]]:
    """Steps and tags of the only file."""
    (path,) = folder.glob("events*")
    events = tf.train.summary_iterator(str(path))
    return [(event.step, value.tag) for event in events for value in event.summary.value]


def test_an_epoch_is_a_step(tmp_path: Path) -> None:
    assert written(tmp_path) == [(s, f"epoch_{name}") for s in (0, 1) for name in ("loss", "val_loss")]


def test_a_callback_of_a_library_writes_values_of_its_own(tmp_path: Path) -> None:
    """As the summaries of sparsity of TensorFlow's toolkit for pruning."""

    class Sparsity(tf.keras.callbacks.TensorBoard):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            super().on_epoch_end(epoch, logs)
            self._write_custom_summaries(epoch + 7, {"sparsity": 0.5})

    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile("sgd", "mse")
    board = Sparsity(str(tmp_path), write_graph=False)
    model.fit(np.ones([4, 1]), np.ones([4, 1]), verbose=0, callbacks=[board])
    assert events_of(tmp_path) == [(0, "epoch_loss"), (7, "sparsity")]


@pytest.mark.parametrize("frequency, batches", [("batch", (0, 1, 2, 3)), (10, (1, 3))])
def test_batches_count_from_zero_and_epochs_by_samples(tmp_path: Path, frequency: Any, batches: Any) -> None:
    found = written(tmp_path, epochs=1, update_freq=frequency)
    assert found == [*((s, "batch_loss") for s in batches), (32, "epoch_loss"), (32, "epoch_val_loss")]


def test_batches_of_datasets_count_as_one(tmp_path: Path) -> None:
    """With TensorFlow 1.15, the loss is 8.5: 1 in the batch of four examples, 16 in that of two."""
    x, y = np.ones([6, 1], "f"), np.array([[1], [1], [1], [1], [4], [4]], "f")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="zeros")])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    board = tf.keras.callbacks.TensorBoard(str(tmp_path), write_graph=False, update_freq=2)
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    history = model.fit(batches, epochs=2, verbose=0, callbacks=[board]).history
    assert events_of(tmp_path) == [
        (1, "batch_loss"), (2, "epoch_loss"), (3, "batch_loss"), (4, "epoch_loss"),
    ]  # fmt: skip
    np.testing.assert_allclose(history["loss"], [8.5, 8.5])


def test_losses_of_datasets_and_generators_are_means_over_batches() -> None:
    """As in TensorFlow 1.15: 8.5 of batches, whatever their sizes; 6 of arrays."""
    x, y = np.ones([6, 1], "f"), np.array([[1], [1], [1], [1], [4], [4]], "f")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="zeros")])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse")
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)

    def pairs() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        while True:
            yield x[:4], y[:4]
            yield x[4:], y[4:]

    class Sizes(tf.keras.callbacks.Callback):
        """Keeps the sizes of batches."""

        def on_test_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            sizes.append(logs["size"])

    sizes: list[float] = []
    assert model.evaluate(batches, verbose=0, callbacks=[Sizes()]) == 8.5
    assert model.evaluate_generator(pairs(), 2, callbacks=[Sizes()]) == 8.5
    assert sizes == [1, 1, 4, 2]
    assert model.evaluate(x, y, batch_size=4, verbose=0) == 6
    history = model.fit(x, y, 4, shuffle=False, verbose=0, validation_data=batches).history
    assert history["val_loss"] == [8.5] and history["loss"] == [6.0]
    history = model.fit(batches, verbose=0, validation_data=batches).history
    assert history["val_loss"] == history["loss"] == [8.5]
    history = model.fit_generator(pairs(), 2, verbose=0, validation_data=pairs(), validation_steps=2).history
    assert history["val_loss"] == [8.5] and history["loss"] == [6.0]


def test_histograms_are_of_each_batch_of_validation(tmp_path: Path) -> None:
    found = written(tmp_path, epochs=3, histogram_freq=2, write_grads=True)
    tags = ["dense/kernel_0", "dense/kernel_0_grad", "dense/bias_0", "dense/bias_0_grad", "dense_out"]
    histograms = [(step, tag) for step, tag in found if not tag.startswith("epoch")]
    assert sorted(histograms) == sorted((step, tag) for step in range(4) for tag in tags)
