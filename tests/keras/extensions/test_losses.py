"""`tf.keras.losses`: how values of examples are joined."""

from __future__ import annotations

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


@pytest.mark.parametrize(
    ("reduction", "value"), [("AUTO", 2.5), ("NONE", [1, 4]), ("SUM", 5), ("SUM_OVER_BATCH_SIZE", 2.5)]
)
def test_reductions(reduction: str, value: float | list[float]) -> None:
    if not hasattr(tf.keras.losses, "MeanSquaredError"):
        pytest.skip("losses are functions in Keras 2.2")
    chosen = getattr(tf.compat.v2.losses.Reduction, reduction)
    loss = tf.keras.losses.MeanSquaredError(reduction=chosen)([[0.0], [0.0]], [[1.0], [2.0]])
    np.testing.assert_allclose(tf.keras.backend.get_value(loss), value)
