"""`tf.keras.metrics`: classes of any type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
@pytest.mark.parametrize("classes", [[1, 0], [[1], [0]]])
def test_sparse_accuracy_of_classes_of_any_type(dtype: str, classes: Any) -> None:
    true, predicted = tf.cast(tf.constant(classes), dtype), tf.constant([[0.1, 0.9], [0.2, 0.8]])
    found = tf.keras.metrics.sparse_categorical_accuracy(true, predicted)
    assert found.dtype == tf.float32
    np.testing.assert_array_equal(tf.keras.backend.get_session().run(found), [1, 0])


def test_metrics_of_a_configuration() -> None:
    """Models with such metrics are loaded."""
    metric = tf.keras.metrics.AUC(name="area", num_thresholds=20)
    again = tf.keras.metrics.get(tf.keras.metrics.serialize(metric))
    assert isinstance(again, tf.keras.metrics.AUC) and again.get_config() == metric.get_config()
