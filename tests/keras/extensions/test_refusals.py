"""What `tf.keras` says to mistaken programs: TensorFlow 1.15's classes of errors and words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]
X, Y = np.zeros((4, 3), "f"), np.zeros((4, 1), "f")


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def model(compiled: bool = True) -> Any:
    made = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))])
    if compiled:
        made.compile("sgd", "mse")
    return made


def inputs(*shape: Any) -> Any:
    return tf.keras.Input(shape)


def of_a_program() -> Any:
    class OfAProgram(tf.keras.Model):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x

    return OfAProgram()


def constrained(**spec: Any) -> Any:
    class Constrained(tf.keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x

    layer = Constrained(name="a")
    layer.input_spec = tf.keras.layers.InputSpec(**spec)
    return layer(inputs(3))


def batches() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(2)


def generator() -> Any:
    while True:
        yield X, Y


COMPILE = "You must compile your model before training/testing. Use `model.compile(optimizer, loss)`."
BETWEEN = "Input 0 of layer a is incompatible with the layer: "
MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: model(False).fit(X, Y), RuntimeError, COMPILE),
    (lambda: model(False).evaluate(X, Y), RuntimeError, COMPILE),
    (lambda: model(False).train_on_batch(X, Y), RuntimeError, COMPILE),
    (lambda: model(False).fit_generator(generator(), 1), RuntimeError, COMPILE),
    (
        lambda: constrained(ndim=3),
        ValueError,
        BETWEEN + "expected ndim=3, found ndim=2. Full shape received: [None, 3]",
    ),
    (
        lambda: constrained(min_ndim=3),
        ValueError,
        BETWEEN + ": expected min_ndim=3, found ndim=2. Full shape received: [None, 3]",
    ),
    (lambda: constrained(max_ndim=1), ValueError, BETWEEN + "expected max_ndim=1, found ndim=2"),
    (
        lambda: constrained(axes={-1: 5}),
        ValueError,
        BETWEEN + "expected axis -1 of input shape to have value 5 but received input with shape [None, 3]",
    ),
    (
        lambda: constrained(shape=(None, 4)),
        ValueError,
        "Input 0 is incompatible with layer a: expected shape=(None, 4), found shape=[None, 3]",
    ),
    (
        lambda: constrained(dtype="int32"),
        ValueError,
        BETWEEN + "expected dtype=int32, found dtype=<dtype: 'float32'>",
    ),
    (
        lambda: tf.layers.dense(tf.zeros([3]), 2, name="d"),
        ValueError,
        "Input 0 of layer d is incompatible with the layer: : expected min_ndim=2, found ndim=1. "
        "Full shape received: [3]",
    ),
    (
        lambda: tf.keras.layers.Dense(2, name="d")([inputs(3), inputs(3)]),
        ValueError,
        "Layer d expects 1 inputs",
    ),
    (
        lambda: tf.keras.layers.Dense(2)(inputs(None)),
        ValueError,
        "The last dimension of the inputs to `Dense` should be defined. Found `None`.",
    ),
    (
        lambda: tf.keras.layers.TimeDistributed(tf.keras.layers.Dense(2))(inputs(3)),
        ValueError,
        "`TimeDistributed` Layer should be passed an `input_shape ` with at least 3 dimensions, "
        "received: [None, 3]",
    ),
    (
        lambda: tf.keras.layers.TimeDistributed(3),
        ValueError,
        "Please initialize `TimeDistributed` layer with a `Layer` instance. You passed: 3",
    ),
    (
        lambda: tf.keras.layers.Bidirectional(3),
        ValueError,
        "Please initialize `Bidirectional` layer with a `Layer` instance. You passed: 3",
    ),
    (
        lambda: tf.keras.layers.Dropout(1.0)(inputs(3)),
        ValueError,
        "rate must be a scalar tensor or a float in the range [0, 1), got 1",
    ),
    (
        lambda: tf.keras.layers.Dense(2, name="d").count_params(),
        ValueError,
        "You tried to call `count_params` on d, but the layer isn't built.",
    ),
    (
        lambda: tf.keras.Input(),
        ValueError,
        "Please provide to Input either a `shape` or a `tensor` argument.",
    ),
    (
        lambda: tf.keras.Input(shape=(3,), batch_shape=(2, 3)),
        ValueError,
        "Only provide the `shape` OR `batch_input_shape` argument to Input",
    ),
    (
        lambda: tf.keras.models.clone_model(of_a_program()),
        ValueError,
        "Expected `model` argument to be a functional `Model` instance, but got a subclass model instead.",
    ),
    (
        lambda: model().fit(X, Y, foo=1, bar=2),
        TypeError,
        "Unrecognized keyword arguments: {'foo': 1, 'bar': 2}",
    ),
    (
        lambda: model().fit(batches(), batch_size=3),
        ValueError,
        "The `batch_size` argument must not be specified for the given input type. Received input: ",
    ),
    (
        lambda: model().fit(batches(), validation_split=0.1),
        ValueError,
        "`validation_split` argument is not supported when input `x` is a dataset or a dataset iterator.",
    ),
    (
        lambda: model().fit(generator(), steps_per_epoch=1, validation_split=0.1),
        ValueError,
        "If your data is in the form of a Python generator, you cannot use `validation_split`.",
    ),
    (
        lambda: model().fit(generator(), Y),
        ValueError,
        "`y` argument is not supported when data is a generator",
    ),
]


@pytest.mark.parametrize(("mistake", "kind", "words"), MISTAKES)
def test_words_are_tensorflows(mistake: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as found:
        mistake()
    assert str(found.value).startswith(words)


def test_a_layer_without_a_constructor_of_its_own_has_a_configuration() -> None:
    class Plain(tf.keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * 2

    made = tf.keras.Sequential([Plain(input_shape=(3,), name="p"), tf.keras.layers.Dense(1)])
    again = type(made).from_config(made.get_config(), custom_objects={"Plain": Plain})
    assert Plain(name="b").get_config() == {"name": "b", "trainable": True, "dtype": None}
    again.set_weights(made.get_weights())
    np.testing.assert_array_equal(again.predict(X + 1), made.predict(X + 1))
