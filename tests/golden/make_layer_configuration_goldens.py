"""Configurations of the layers of tf.layers and of recurrent cells: tests/golden/layers/configurations.json.

    python tests/golden/make_layer_configuration_goldens.py     # with TensorFlow 1.15

tests/layers/test_configurations.py makes the same layers with flowstone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "layers" / "configurations.json"


def layers(tf: Any) -> Any:
    made, cells = tf.layers, tf.nn.rnn_cell
    yield made.Dense(3, activation=tf.nn.relu)
    yield made.Dense(
        3, kernel_initializer=tf.random_normal_initializer(0.0, 2.0, 7), dtype=tf.float64, name="d"
    )
    yield made.Conv1D(3, 3)
    yield made.Conv2D(3, 3, padding="same", use_bias=False)
    yield made.Conv3D(3, 3)
    yield made.Conv2DTranspose(3, 3)
    yield made.Conv3DTranspose(3, 3)
    yield made.SeparableConv1D(3, 3)
    yield made.SeparableConv2D(3, 3)
    yield made.MaxPooling2D(2, 2)
    yield made.AveragePooling1D(2, 2)
    yield made.MaxPooling3D(2, 2)
    yield made.Dropout(0.3)
    yield made.Flatten()
    yield made.BatchNormalization()
    yield cells.BasicRNNCell(3)
    yield cells.GRUCell(3)
    yield cells.LSTMCell(3, use_peepholes=True)
    yield cells.BasicLSTMCell(3)
    yield cells.DropoutWrapper(cells.GRUCell(3), 0.5)
    yield cells.ResidualWrapper(cells.BasicLSTMCell(3))
    yield cells.MultiRNNCell([cells.GRUCell(3)])


def configurations(tf: Any) -> Any:
    """The class and the configuration of each layer, in a graph of their own."""
    with tf.Graph().as_default():
        return json.loads(json.dumps([[type(each).__name__, each.get_config()] for each in layers(tf)]))


if __name__ == "__main__":
    import tensorflow

    TARGET.write_text(json.dumps(configurations(tensorflow), indent=1, sort_keys=True) + "\n")
