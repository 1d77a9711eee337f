"""The nodes that layers of `tf.keras` make in TensorFlow 1.15: tests/golden/keras/layer_nodes.json.

    python tests/golden/make_keras_node_goldens.py     # with TensorFlow 1.15

`result(tf, case)` is how many nodes a model of that case has, and a checksum of their types and names, in any
order; tests/keras/extensions/test_recurrent_steps.py asks flowstone.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "keras" / "layer_nodes.json"
SEQUENCE, IMAGES = (4, 2), (5, 5, 2)

CASES: dict[str, tuple[tuple[int, ...], Callable[[Any], list[Any]]]] = {
    "lstm": (SEQUENCE, lambda k: [k.LSTM(3)]),
    "lstm_together": (SEQUENCE, lambda k: [k.LSTM(3, implementation=2, return_sequences=True)]),
    "lstm_unrolled": (SEQUENCE, lambda k: [k.LSTM(3, unroll=True)]),
    "lstm_backwards": (SEQUENCE, lambda k: [k.LSTM(3, go_backwards=True, use_bias=False)]),
    "lstm_dropout": (SEQUENCE, lambda k: [k.LSTM(3, dropout=0.2, recurrent_dropout=0.3)]),
    "lstm_masked": (SEQUENCE, lambda k: [k.Masking(), k.LSTM(3)]),
    "lstm_masked_unrolled": (SEQUENCE, lambda k: [k.Masking(), k.LSTM(3, unroll=True)]),
    "gru": (SEQUENCE, lambda k: [k.GRU(3)]),
    "gru_together": (SEQUENCE, lambda k: [k.GRU(3, implementation=2, dropout=0.2)]),
    "gru_after": (SEQUENCE, lambda k: [k.GRU(3, reset_after=True)]),
    "gru_after_together": (SEQUENCE, lambda k: [k.GRU(3, reset_after=True, implementation=2)]),
    "gru_dropout": (SEQUENCE, lambda k: [k.GRU(3, dropout=0.2, recurrent_dropout=0.3)]),
    "simple": (SEQUENCE, lambda k: [k.SimpleRNN(3)]),
    "simple_dropout": (SEQUENCE, lambda k: [k.SimpleRNN(3, dropout=0.2, recurrent_dropout=0.2)]),
    "stacked": (SEQUENCE, lambda k: [k.RNN([k.LSTMCell(3), k.GRUCell(2)])]),
    "bidirectional": (SEQUENCE, lambda k: [k.Bidirectional(k.LSTM(3))]),
    "bidirectional_sum": (SEQUENCE, lambda k: [k.Bidirectional(k.GRU(3), merge_mode="sum"), k.Dense(2)]),
    "distributed": (SEQUENCE, lambda k: [k.TimeDistributed(k.Dense(3))]),
    "separable_1d": (SEQUENCE, lambda k: [k.SeparableConv1D(3, 2)]),
    "separable": (IMAGES, lambda k: [k.SeparableConv2D(3, 2)]),
    "depthwise": (IMAGES, lambda k: [k.DepthwiseConv2D(3)]),
    "transposed": (IMAGES, lambda k: [k.Conv2DTranspose(3, 2, strides=2)]),
    "transposed_3d": ((3, *IMAGES), lambda k: [k.Conv3DTranspose(3, 2)]),
    "local": (SEQUENCE, lambda k: [k.LocallyConnected1D(3, 2)]),
    "local_2d": (IMAGES, lambda k: [k.LocallyConnected2D(3, 2)]),
    "regularized": (IMAGES, lambda k: [k.Conv2D(3, 2, kernel_regularizer="l2", bias_regularizer="l1")]),
}
OTHER_NAMES = ("bidirectional", "bidirectional_sum", "distributed")  # as many, in other scopes


def result(tf: Any, case: str) -> list[int]:
    shape, make = CASES[case]
    tf.keras.backend.clear_session()
    layers = tf.keras.layers
    tf.keras.Sequential([layers.InputLayer(shape), *make(layers)])
    nodes = sorted(f"{op.type} {op.name}" for op in tf.get_default_graph().get_operations())
    return [len(nodes), zlib.crc32("\n".join(nodes).encode())]


def main() -> None:
    import tensorflow as tf

    TARGET.write_text(json.dumps({case: result(tf, case) for case in CASES}, indent=0) + "\n")


if __name__ == "__main__":
    main()
