"""Networks as TensorFlow 1.15.5 has them: the order of weights, checkpoints, summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def blocks() -> Any:
    layers = tf.keras.layers

    class Block(layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.normal = layers.Dense(2), layers.BatchNormalization(center=False, scale=False)

        def call(self, x: Any) -> Any:
            return self.normal(self.dense(x))

    class Blocks(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(name="net")
            self.blocks = [Block(), Block()]

        def call(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return x

    return Blocks()


def test_weights_that_training_changes_come_first_of_layers_in_a_list() -> None:
    model = blocks()
    model.predict(np.ones([1, 2], "float32"))
    assert [weight.name for weight in model.weights] == [
        "net/block/dense/kernel:0",
        "net/block/dense/bias:0",
        "net/block_1/dense_1/kernel:0",
        "net/block_1/dense_1/bias:0",
        "net/block/batch_normalization/moving_mean:0",
        "net/block/batch_normalization/moving_variance:0",
        "net/block_1/batch_normalization_1/moving_mean:0",
        "net/block_1/batch_normalization_1/moving_variance:0",
    ]


def test_layers_of_a_model_that_data_have_built_have_no_shapes() -> None:
    model, lines = blocks(), []
    model.predict(np.ones([1, 2], "float32"))
    model.summary(print_fn=lines.append)
    assert [line.split()[2] for line in lines if "(Block)" in line] == ["multiple", "multiple"]


def test_weights_that_two_layers_share_are_there_twice_and_trained_once() -> None:
    tf.set_random_seed(1)
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    x = tf.keras.Input((1,))
    inner = tf.keras.Model(x, dense(x))
    model = tf.keras.Model(x, tf.keras.layers.add([inner(x), dense(x)]))
    assert len(model.get_weights()) == 2 and model.count_params() == 2
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    model.train_on_batch(np.ones([1, 1]), np.zeros([1, 1]))
    np.testing.assert_allclose(np.ravel(model.get_weights()), [0.2, 0.2], rtol=1e-6)


def test_weights_below_a_relative_folder_are_its_latest_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    Path("saved").mkdir()
    model.save_weights("saved/w.ckpt")
    assert tf.train.latest_checkpoint("saved") == "saved/w.ckpt"
    assert Path("saved/checkpoint").read_text().startswith('model_checkpoint_path: "w.ckpt"\n')


def test_sequences_of_both_directions_are_zeros_where_they_are_masked() -> None:
    layers = tf.keras.layers
    cell = layers.SimpleRNN(1, return_sequences=True, kernel_initializer="ones", recurrent_initializer="ones")
    model = tf.keras.Sequential([layers.Masking(0.0, input_shape=(3, 2)), layers.Bidirectional(cell)])
    outputs = model.predict(np.array([[[0.5, 0.1], [0, 0], [0.2, 0.3]]]))
    expected = [[[0.53704965, 0.78647286], [0, 0], [0.7767204, 0.46211717]]]
    np.testing.assert_allclose(outputs, expected, rtol=1e-6)
    assert layers.LSTM(2, zero_output_for_mask=True).get_config()["zero_output_for_mask"]
