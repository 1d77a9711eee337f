"""Nodes of `tf.keras` models that are compiled, trained and asked: tests/golden/keras/training_nodes.json.

    python tests/golden/make_keras_training_goldens.py     # with TensorFlow 1.15

`result(tf, case)` is how many nodes the graph has after each step of `steps`, and a checksum of the types and
names of all nodes, sorted; tests/keras/extensions/test_step_functions.py asks flowstone.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).parent / "keras" / "training_nodes.json"

Case = Any  # of tf.keras to an optimiser, a loss and metrics

OPTIMIZERS: dict[str, Case] = {
    name: lambda k, name=name: (name, "mse", ["mae"])
    for name in ("sgd", "adam", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "ftrl")
}
OPTIONS: dict[str, Case] = {
    "momentum": lambda k: (k.optimizers.SGD(0.1, momentum=0.9, nesterov=True), "mse", []),
    "amsgrad": lambda k: (k.optimizers.Adam(amsgrad=True), "mse", []),
    "with_momentum": lambda k: (k.optimizers.RMSprop(momentum=0.1), "mse", []),
    "centered": lambda k: (k.optimizers.RMSprop(centered=True), "mse", []),
    "decay": lambda k: (k.optimizers.SGD(0.1, decay=0.1), "mse", []),
    "clipped": lambda k: (k.optimizers.Adam(clipvalue=0.5), "mse", []),
    "polynomial": lambda k: (
        k.optimizers.SGD(k.optimizers.schedules.PolynomialDecay(0.1, 5, power=2.0)),
        "mse",
        [],
    ),
    "cycle": lambda k: (
        k.optimizers.SGD(k.optimizers.schedules.PolynomialDecay(0.1, 5, cycle=True)),
        "mse",
        [],
    ),
}
LOSSES: dict[str, Case] = {
    name: lambda k, name=name: ("sgd", name, ["acc"])
    for name in (
        *("mae", "mape", "msle", "binary_crossentropy", "categorical_crossentropy", "hinge", "squared_hinge"),
        *("sparse_categorical_crossentropy", "categorical_hinge", "poisson", "logcosh"),
        "kullback_leibler_divergence",
    )
}
CLASSES: dict[str, Case] = {
    "huber": lambda k: ("sgd", k.losses.Huber(), [k.metrics.RootMeanSquaredError()]),
    "smoothed": lambda k: ("sgd", k.losses.CategoricalCrossentropy(True, 0.1), ["categorical_accuracy"]),
    "smoothed_binary": lambda k: ("sgd", k.losses.BinaryCrossentropy(True, 0.1), ["binary_accuracy"]),
    "not_reduced": lambda k: ("sgd", k.losses.MeanSquaredError(reduction="none"), ["mse"]),
    "summed": lambda k: ("sgd", k.losses.MeanSquaredError(reduction="sum"), ["cosine_proximity"]),
}
CASES = {**OPTIMIZERS, **OPTIONS, **LOSSES, **CLASSES}


def steps(tf: Any, case: str) -> Any:
    """Makes, compiles, trains and asks a model; yields after each."""
    keras = tf.keras
    model = keras.Sequential([keras.layers.Dense(3, activation="softmax", input_shape=(2,))])
    optimizer, loss, metrics = CASES[case](keras)
    yield model.compile(optimizer, loss, metrics)
    x = np.ones((4, 2), "f")
    y = np.ones((4, 1), "f") if loss == "sparse_categorical_crossentropy" else np.ones((4, 3), "f")
    yield model.fit(x, y, verbose=0)
    yield model.evaluate(x, y, verbose=0)
    yield model.predict(x)


def result(tf: Any, case: str) -> list[int]:
    tf.keras.backend.clear_session()
    graph = tf.get_default_graph()
    counts = [len(graph.get_operations()) for _ in steps(tf, case)]
    nodes = [f"{op.type} {op.name}" for op in graph.get_operations()]
    return [*counts, zlib.crc32("\n".join(sorted(nodes)).encode())]


def main() -> None:
    import tensorflow as tf

    found = {case: result(tf, case) for case in CASES}
    lines = ",\n".join(f"{json.dumps(case)}: {json.dumps(numbers)}" for case, numbers in found.items())
    TARGET.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
