"""What training, testing and predicting print; the words are TensorFlow 1.15's. Times are left out."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]
X = np.ones([8, 4], "f")
Y = np.ones([8, 1], "f")


def model() -> Any:
    ones = tf.keras.initializers.Constant(0.25)
    made = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,), kernel_initializer=ones)])
    made.compile("sgd", "mse", metrics=["mae"])
    return made


def dataset() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat()


def keras_method(name: str) -> Any:
    return getattr(import_module("keras").Model, name)


RESULTS = "loss: 0.0000e+00 - mean_absolute_error: 0.0000e+00"
VALIDATED = RESULTS + " - val_loss: 0.0000e+00 - val_mean_absolute_error: 0.0000e+00"
BAR = "[==============================] - 0s T"
CASES = [
    ("fit", (X, Y), {"verbose": 2}, ["Train on 8 samples", f"8/8 - 0s - {RESULTS}"]),
    ("fit", (X, Y), {"batch_size": 8}, ["Train on 8 samples", "", f"8/8 {BAR}/sample - {RESULTS}"]),
    (
        "fit",
        (X, Y),
        {"verbose": 2, "epochs": 2, "validation_split": 0.5},
        [
            "Train on 4 samples, validate on 4 samples",
            *("Epoch 1/2", f"4/4 - 0s - {VALIDATED}", "Epoch 2/2", f"4/4 - 0s - {VALIDATED}"),
        ],
    ),
    (
        "fit",
        (X, Y),
        {"verbose": 2, "validation_data": dataset, "validation_steps": 2},
        ["Train on 8 samples, validate on 2 samples", f"8/8 - 0s - {VALIDATED}"],
    ),
    (
        "fit",
        (dataset,),
        {"verbose": 2, "steps_per_epoch": 2, "validation_data": dataset, "validation_steps": 1},
        ["Train on 2 steps, validate on 1 steps", f"2/2 - 0s - {VALIDATED}"],
    ),
    ("evaluate", (X, Y), {"verbose": 2}, [f"8/8 - 0s - {RESULTS}"]),
    ("evaluate", (X, Y), {}, ["", f"8/8 {BAR}/sample - {RESULTS}"]),
    ("evaluate", (dataset,), {"steps": 1}, ["", f"1/1 {BAR}/step - {RESULTS}"]),
    ("predict", (X,), {"verbose": 1}, ["", f"8/8 {BAR}/sample"]),
    ("predict", (dataset,), {"verbose": 2, "steps": 2}, ["2/2 - 0s"]),
]


@pytest.mark.parametrize("method, arguments, options, lines", CASES)
def test_lines(method: str, arguments: Any, options: Any, lines: list[str], capsys: Any) -> None:
    made = model()
    if method != "fit" and "callbacks" not in inspect.signature(keras_method(method)).parameters:
        pytest.skip("Keras 2.2 has no callbacks here, and prints itself")
    made.fit(X, Y, verbose=0)  # the first call takes longer
    given = [argument() if callable(argument) else argument for argument in arguments]
    named = {name: value() if callable(value) else value for name, value in options.items()}
    getattr(made, method)(*given, **named)
    printed = re.sub(r"- \d+s", "- 0s", capsys.readouterr().out)
    printed = re.sub(r" \d+(s|ms|us)/(step|sample)", r" T/\2", printed)
    assert printed.splitlines() == lines


def test_messages_of_callbacks_come_before_the_lines_of_an_epoch(capsys: Any) -> None:
    callbacks = tf.keras.callbacks
    given = [
        callbacks.LearningRateScheduler(lambda epoch: 0.5, verbose=1),
        callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(list(logs))),
    ]
    model().fit(X, Y, epochs=3, initial_epoch=2, verbose=2, validation_data=(X, Y), callbacks=given)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == [
        "Train on 8 samples, validate on 8 samples",
        "",
        "Epoch 00003: LearningRateScheduler reducing learning rate to 0.5.",
        "Epoch 3/3",
        "['loss', 'mean_absolute_error', 'val_loss', 'val_mean_absolute_error', 'lr']",
    ]
    assert lines[-1].startswith("8/8 - ")


def test_a_dataset_validates_what_arrays_train_in_the_epochs_that_are_said() -> None:
    data = (X, Y + 1)
    made = model()
    history = made.fit(
        X, Y, epochs=4, verbose=0, validation_data=dataset(), validation_steps=2, validation_freq=2
    )
    assert list(history.history) == ["loss", "mean_absolute_error", "val_loss", "val_mean_absolute_error"]
    assert [len(values) for values in history.history.values()] == [4, 4, 2, 2]
    history = made.fit(
        X, Y, verbose=0, validation_data=tf.data.Dataset.from_tensors(data), validation_freq=[1]
    )
    assert history.history["val_loss"] == made.evaluate(*data, verbose=0)[:1]
    kinds = {name: values[0].dtype for name, values in history.history.items()}
    assert kinds["val_loss"] == np.float64 and kinds["val_mean_absolute_error"] == np.float32


def test_a_bar_without_a_target_and_a_duration() -> None:
    bar = tf.keras.utils.Progbar(None, unit_name="row")
    assert bar._bar(3) == "      3/Unknown"
    assert bar._times(3, 6.0, False) == " - 6s 2s/row"
    assert tf.keras.utils.Progbar(4000)._times(1, 1.5, False) == " - ETA: 1:39:58"
    assert tf.keras.utils.Progbar(4000)._bar(1000) == "1000/4000 [======>.......................]"


def test_a_programs_own_logger_keeps_metrics_as_they_are() -> None:
    class Seen(tf.keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            accuracies.append(logs["acc"])

    accuracies: list[float] = []
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, "sigmoid", input_shape=(2,))])
    model.compile("sgd", "binary_crossentropy", ["acc"])
    x, y = np.random.randn(30, 2), np.arange(30) % 3 == 0
    logger = tf.keras.callbacks.BaseLogger()
    history = model.fit(x, y, batch_size=7, verbose=0, shuffle=False, callbacks=[logger, Seen()])
    assert logger.stateful_metrics == {"acc"}
    np.testing.assert_allclose(accuracies[0] * 30, round(accuracies[0] * 30), rtol=1e-6)
    assert history.history["acc"] == accuracies
