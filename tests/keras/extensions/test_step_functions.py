"""Models of `tf.keras` have TensorFlow 1.15's nodes when they are compiled, trained and asked, so that what
is drawn afterwards by the graph's seed is drawn as there.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

if find_spec("keras") is None:
    pytest.skip("needs flowstone[keras]", allow_module_level=True)

if version("keras") < "2.3":
    pytest.skip("models of Keras 2.2 have its steps", allow_module_level=True)

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]

GOLDEN = Path(__file__).parents[2] / "golden"


def _maker() -> Any:
    spec = spec_from_file_location("make_keras_training_goldens", GOLDEN / "make_keras_training_goldens.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = _maker()
EXPECTED = json.loads((GOLDEN / "keras" / "training_nodes.json").read_text())
OTHER_NAMES = {
    "mape",
    "msle",
    "binary_crossentropy",
    "categorical_crossentropy",
    "kullback_leibler_divergence",
}
OTHER_NAMES |= {"categorical_hinge", "smoothed", "smoothed_binary", "hinge", "squared_hinge", "huber"}


@pytest.mark.parametrize("case", MAKER.CASES)
def test_nodes_are_tensorflows(case: str) -> None:
    found = MAKER.result(tf, case)
    assert found[:-1] == EXPECTED[case][:-1]
    assert case in OTHER_NAMES or found[-1] == EXPECTED[case][-1]


def test_the_next_models_weights_are_those_of_the_graphs_seed() -> None:
    tf.set_random_seed(7)
    layers = tf.keras.layers
    for optimizer in ("adam", tf.train.AdamOptimizer(0.01)):
        model = tf.keras.Sequential(
            [layers.Dense(4, input_shape=(3,), kernel_regularizer="l2"), layers.Dropout(0.2), layers.Dense(1)]
        )
        model.compile(optimizer, "mse", metrics=["mae"])
        model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
        model.evaluate(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
    other = tf.keras.Sequential([layers.Dense(2, input_shape=(1,))])
    assert np.allclose(other.get_weights()[0], [[0.93540108, 0.12619269]], atol=1e-6)


def test_a_wrapped_optimizer_counts_a_step_once() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))])
    model.compile(tf.train.GradientDescentOptimizer(0.1), "mse")
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=4, verbose=0)
    assert tf.keras.backend.get_value(model.optimizer.iterations) == 2
