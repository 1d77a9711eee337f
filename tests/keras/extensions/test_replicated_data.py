"""Batches of models of several replicas."""

from __future__ import annotations

from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf
from flowstone.contrib.distribute import core
from flowstone.contrib.distribute.strategies import MirroredStrategy

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]
DEVICES = ["/cpu:0", "/cpu:1"]
X = np.arange(10, dtype=np.float32).reshape(10, 1)


def batches_for(*arguments: Any, **options: Any) -> Any:
    # Which is imported once tf.keras is there.
    replicated_data = import_module("flowstone.keras.extensions.replicated_data")
    return replicated_data.batches_for(*arguments, **options)


def model(strategy: Any) -> Any:
    with strategy.scope():
        made = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
        made.compile("sgd", "mse")
    return made


def sizes(batches: Any, count: int) -> list[int]:
    return [len(x[0]) for x in islice(batches.read(inputs_only=True), count)]


def test_batches_have_all_examples_of_an_epoch_in_order_or_shuffled() -> None:
    made = model(core.MirroredStrategy(DEVICES))
    batches = batches_for(made, X, X, batch_size=4)
    assert len(batches) == 3 and sizes(batches, 4) == [4, 4, 2, 4]
    x, y, weights = next(batches.read())
    np.testing.assert_array_equal([x[0], y[0]], [X[:4], X[:4]])
    assert weights == []  # the model has none yet
    np.random.seed(0)
    shuffled = list(islice(batches_for(made, X, X, batch_size=4, shuffle=True).read(True), 3))
    found = np.concatenate([each[0] for each in shuffled])
    assert not np.array_equal(found, X)
    np.testing.assert_array_equal(np.sort(found, 0), X)


def test_a_rest_that_is_too_small_joins_the_batch_before() -> None:
    made = model(core.MirroredStrategy(DEVICES))
    assert sizes(batches_for(made, X[:9], batch_size=4), 3) == [4, 5, 4]


def test_sizes_and_batches_of_each_replica() -> None:
    made = model(MirroredStrategy(DEVICES))
    assert sizes(batches_for(made, X, batch_size=2), 3) == [4, 4, 2]
    dataset = tf.data.Dataset.from_tensor_slices((X, {"y": X})).batch(2)
    batches = batches_for(made, dataset)
    assert len(batches) == 2
    x, y = next(batches.read())
    np.testing.assert_array_equal([x, y["y"]], [X[:4], X[:4]])
    assert [float(each[0, 0]) for each in islice(batches.read(inputs_only=True), 3)] == [0, 4, 0]
