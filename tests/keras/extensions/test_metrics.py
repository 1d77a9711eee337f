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


def _counting_metric(given: str) -> Any:
    """A program's metric, the sum of its values, whose `update_state` gives this of its two updates."""

    class Total(tf.keras.metrics.Metric):
        def __init__(self) -> None:
            super().__init__(name="total")
            self.sum = self.add_weight("sum", initializer="zeros")
            self.calls = self.add_weight("calls", initializer="zeros")

        def update_state(self, y_true: Any, y_pred: Any = None, sample_weight: Any = None) -> Any:
            first = self.sum.assign_add(tf.reduce_sum(y_true))
            second = self.calls.assign_add(1.0)
            gifts = {
                "nothing": None,
                "one": first,
                "operation": first.op,
                "list": [first],
                "tuple": (second,),
            }
            return gifts[given]

        def result(self) -> Any:
            return self.sum + 100 * self.calls

    return Total()


@pytest.mark.parametrize("given", ["nothing", "one", "operation", "list", "tuple"])
def test_all_updates_of_a_metric_happen(given: str) -> None:
    """Whatever `update_state` gives: TensorFlow 1.15 runs it as a function, whose changes all happen."""
    metric = _counting_metric(given)
    value = metric(tf.constant([1.0, 2.0]))
    session = tf.keras.backend.get_session()
    session.run(tf.global_variables_initializer())
    assert [session.run(value), session.run(value)] == [103.0, 206.0]


@pytest.mark.parametrize("given", ["nothing", "one"])
def test_metrics_of_a_program_in_a_model(given: str) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse", metrics=[_counting_metric(given), tf.keras.metrics.MeanIoU(2)])
    assert model.evaluate(np.ones([4, 2]), np.ones([4, 1]), batch_size=2, verbose=0)[1] == 204.0


def test_binary_accuracy_is_by_the_threshold() -> None:
    """Predictions above 1 are of the class 1: rounded they would be of none."""
    accuracy = tf.keras.metrics.binary_accuracy(
        np.array([[1.0, 1.0, 0.0]], "f"), np.array([[2.7, 0.4, -3.0]], "f")
    )
    with tf.Session() as session:
        assert session.run(accuracy).tolist() == pytest.approx([2 / 3])


def test_state_is_in_no_collection() -> None:
    metrics = tf.keras.metrics
    for metric in (metrics.AUC(), metrics.Mean(), metrics.MeanIoU(2)):
        assert metric.variables
    assert not tf.global_variables() and not tf.local_variables()
