"""Optimisers of `tf.keras` with a scaled loss; the numbers are TensorFlow 1.15's."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

if find_spec("keras") is None:
    pytest.skip("needs flowstone[keras]", allow_module_level=True)

from flowstone.keras.mixed_precision.experimental import LossScaleOptimizer

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph", "nothing_set")]


def test_steps_with_a_dynamic_scale() -> None:
    scale = tf.train.experimental.DynamicLossScale(8, 2, 2)
    optimizer = LossScaleOptimizer(tf.keras.optimizers.SGD(0.5, momentum=0.9), scale)
    v, factor = tf.Variable([1.0, 2.0], use_resource=True), tf.placeholder_with_default(1.0, [])
    step = optimizer.minimize(lambda: tf.reduce_sum(v * v) * factor, [v])
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for given in (1.0, 1.0, 1.0, np.inf, np.nan, 1.0):
            session.run(step, {factor: given})
            now = session.run([v, optimizer.loss_scale(), optimizer.iterations])
            found.append((round(float(now[0][1]), 4), float(now[1]), int(now[2])))
    assert found == [(0.0, 8, 1), (-1.8, 16, 2), (-1.62, 16, 3), (-1.62, 8, 3), (-1.62, 4, 3), (0.162, 4, 4)]
    assert optimizer.get_slot_names() == ["momentum"]
    with pytest.raises(NotImplementedError, match="not yet implemented for LossScaleOptimizers"):
        optimizer.get_config()


def test_what_is_scaled() -> None:
    optimizer = LossScaleOptimizer(tf.keras.optimizers.SGD(0.5), 4)
    v = tf.Variable([1.0, 2.0], use_resource=True)
    loss = tf.reduce_sum(v)
    unscaled = optimizer.get_unscaled_gradients([tf.constant([8.0]), None])
    assert unscaled[1] is None
    asked = [
        optimizer.get_scaled_loss(loss),
        unscaled[0],
        optimizer.get_gradients(loss, [v])[0],
        optimizer.lr,
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        scaled, gradient, of_loss, rate = session.run(asked)
    assert (scaled, gradient.tolist(), of_loss.tolist(), rate) == (12.0, [2.0], [1.0, 1.0], 0.5)


@pytest.mark.parametrize("optimizer", [3, tf.train.GradientDescentOptimizer(0.1)])
def test_other_optimizers_are_refused(optimizer: Any) -> None:
    with pytest.raises(ValueError, match="must be an instance of OptimizerV2"):
        LossScaleOptimizer(optimizer, 4)


def test_clipping_is_refused() -> None:
    with pytest.raises(ValueError, match="does not support wrapping optimizers with a clipnorm"):
        LossScaleOptimizer(tf.keras.optimizers.SGD(0.5, clipnorm=1.0), 4)


@pytest.mark.parametrize("scale", [16.0, "dynamic"])
def test_models_train_with_it(scale: Any, tmp_path: Path) -> None:
    constant = tf.keras.initializers.Constant(0.1)
    layers = [tf.keras.layers.Dense(8, "relu", kernel_initializer=constant, input_shape=(4,))]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(1, kernel_initializer=constant)])
    wrapped = tf.train.experimental.enable_mixed_precision_graph_rewrite(tf.keras.optimizers.SGD(0.05), scale)
    try:
        assert isinstance(wrapped, LossScaleOptimizer)
        model.compile(wrapped, "mse")
        x = np.arange(32, dtype=np.float32).reshape(8, 4) / 16
        history = model.fit(x, x.sum(1, keepdims=True), epochs=4, batch_size=8, verbose=0, shuffle=False)
    finally:
        tf.train.experimental.disable_mixed_precision_graph_rewrite()
    np.testing.assert_allclose(history.history["loss"], [17.1528, 6.8661, 0.2614, 0.2435], rtol=1e-3)
    model.save_weights(str(tmp_path / "weights"))
    names = [name for name, _ in tf.train.list_variables(str(tmp_path / "weights"))]
    assert "optimizer/base_optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE" in names
    model.load_weights(str(tmp_path / "weights"))
    with pytest.raises(ValueError, match="must not already be an instance"):
        tf.train.experimental.enable_mixed_precision_graph_rewrite(wrapped)
