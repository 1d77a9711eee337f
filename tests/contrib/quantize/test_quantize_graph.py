"""`tf.contrib.quantize`: the graphs and values that TensorFlow 1.15.5 gives for small models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.contrib.quantize.quantize_programs import CASES, _conv, answer

import flowstone as tf

ANSWERS = json.loads((Path(__file__).parents[2] / "golden" / "contrib" / "quantize.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_rewritten_models(name: str) -> None:
    expected, found = ANSWERS[name], answer(tf, name)
    assert found["nodes"] == expected["nodes"]
    assert found["variables"] == expected["variables"]
    assert found["ranges"].keys() == expected["ranges"].keys()
    for key, value in expected["ranges"].items():
        np.testing.assert_allclose(found["ranges"][key], value, rtol=1e-2, atol=1e-5, err_msg=key)
    # A sum of rounding errors may move a value to the next of its 255 levels.
    scale = np.abs(expected["steps"]).max()
    np.testing.assert_allclose(found["steps"], expected["steps"], atol=scale / 40)


def test_a_step_learns_through_the_quantisation() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(np.linspace(-1, 1, 12).reshape(4, 3), tf.float32)
        logits = tf.layers.dense(x, 2, kernel_initializer=tf.ones_initializer())
        loss = tf.losses.mean_squared_error(tf.ones([4, 2]), tf.nn.relu(logits))
        tf.contrib.quantize.create_training_graph()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, train])[0] for _ in range(60)]
        assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("fused", [True, False])
def test_folding_leaves_gradients_as_they_are(fused: bool) -> None:
    """Before quantisation begins, the folded model is the model, with its dependence on the batch."""
    gradients = []
    for fold in (False, True):
        with tf.Graph().as_default(), tf.Session() as session:
            output = _conv(tf, training=True, fused=fused)
            loss = tf.reduce_mean(tf.square(output - 1.0))
            variables = tf.trainable_variables()
            if fold:
                tf.contrib.quantize.create_training_graph(quant_delay=9)
            wanted = tf.gradients(loss, variables)
            session.run(tf.global_variables_initializer())
            for variable in variables:
                shape = variable.shape.as_list()
                variable.load(np.sin(np.arange(np.prod(shape)) + 0.3).reshape(shape), session)
            gradients.append(session.run(wanted, {"x:0": np.cos(np.arange(384)).reshape(2, 8, 8, 3)}))
    for plain, folded in zip(*gradients, strict=True):
        np.testing.assert_allclose(folded, plain, rtol=2e-4, atol=1e-5)


def test_training_ops_are_refused() -> None:
    with tf.Graph().as_default():
        x = tf.get_variable("x", [2])
        tf.train.AdamOptimizer().minimize(tf.reduce_sum(x))
        with pytest.raises(ValueError, match="ApplyAdam"):
            tf.contrib.quantize.create_training_graph()
        tf.contrib.quantize.create_eval_graph()


def test_batch_norm_needs_moving_averages() -> None:
    with tf.Graph().as_default():
        weights = tf.get_variable("w", [1, 1, 3, 2])
        net = tf.nn.conv2d(tf.zeros([1, 4, 4, 3]), weights, [1, 1, 1, 1], "SAME")
        net, _, _ = tf.nn.fused_batch_norm(net, tf.ones([2]), tf.zeros([2]))
        tf.nn.relu(net)
        with pytest.raises(TypeError, match="moving averages"):
            tf.contrib.quantize.create_training_graph()


def test_dilated_convolutions_fold() -> None:
    """TensorFlow refuses these; the folded layer gives what the two did."""
    slim = tf.contrib.slim
    with tf.Graph().as_default() as graph, tf.Session() as session:
        params = {"is_training": False, "scale": True}
        x = tf.constant(np.sin(np.arange(192)).reshape(1, 8, 8, 3), tf.float32)
        net = slim.conv2d(x, 4, 3, rate=2, normalizer_fn=slim.batch_norm, normalizer_params=params, scope="c")
        session.run(tf.global_variables_initializer())
        before = session.run(net)
        tf.contrib.quantize.experimental_create_eval_graph(graph, weight_bits=16, activation_bits=16)
        assert "c/Conv2D_Fold" in {op.name for op in graph.get_operations()}
        session.run([v.initializer for v in tf.global_variables() if "quant" in v.name])
        np.testing.assert_allclose(session.run(net), before, atol=1e-2)
