"""Losses of embeddings have 1.15.5's names, values and gradients."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.contrib.losses.metric_learning_programs import answers

import flowstone as tf

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden/contrib/metric_learning.json").read_text(encoding="utf-8")
)


def test_names_values_and_gradients() -> None:
    found = answers(tf)
    assert list(found) == list(GOLDEN)
    for name, (op, value, slope) in GOLDEN.items():
        assert found[name][0] == op
        assert found[name][1:] == pytest.approx([value, slope], rel=1e-4), name


def test_npairs_prints_its_parts(capfd: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(np.eye(2, dtype=np.float32))
        session.run(tf.contrib.losses.metric_learning.npairs_loss([0, 1], x, x, print_losses=True))
    assert "cross entropy" in capfd.readouterr().err


def test_npairs_of_several_classes() -> None:
    """TensorFlow 1.15.5 gave these for the same draws of NumPy."""
    rng = np.random.RandomState(1)
    anchor, positive = rng.randn(4, 3).astype(np.float32), rng.randn(4, 3).astype(np.float32)
    loss = tf.contrib.losses.metric_learning.npairs_loss_multilabel
    with tf.Graph().as_default(), tf.Session() as session:
        classes = [[1], [0, 1], [2], [0, 2]]
        labels = [tf.SparseTensor([[0, c] for c in row], [1] * len(row), [1, 3]) for row in classes]
        found = session.run([loss(labels, anchor, positive), loss(labels, anchor, positive, reg_lambda=0.1)])
        np.testing.assert_allclose(found, [2.3709075, 2.54323], rtol=1e-5)
        with pytest.raises(TypeError, match="list of SparseTensors"):
            loss([[0, 1, 0]], anchor, positive)
