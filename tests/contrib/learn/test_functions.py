"""tf.contrib.learn.ops and models give what TensorFlow's give, with its variables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.learn import learn_functions

import flowstone as tf

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "contrib_learn" / "functions.json").read_text())


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_answers_are_those_of_tensorflow(name: str) -> None:
    with tf.Graph().as_default():
        is_model = name in learn_functions.models(tf)
    kind = learn_functions.models if is_model else learn_functions.operations
    variables, summaries, values = learn_functions.answers(tf, kind, name)
    expected_variables, expected_summaries, expected = GOLDEN[name]
    assert variables == expected_variables
    assert summaries == expected_summaries
    assert len(values) == len(expected)
    for found, value in zip(values, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=2e-5, atol=1e-6)


def run(build: Any) -> Any:
    with tf.Graph().as_default():
        outputs = build()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(list(learn_functions.filled(tf)))
            return session.run(outputs)


def test_a_sentinel_stands_for_both_ends() -> None:
    x = np.zeros([2, 3, 2], np.float32)
    _, inputs, targets = run(
        lambda: tf.contrib.learn.ops.seq2seq_inputs(x, tf.constant(x), 3, 3, tf.constant([[9.0, 9.0]] * 2))
    )
    assert inputs[0].tolist() == targets[-1].tolist() == [[9.0, 9.0]] * 2


def test_class_weights_are_factors_of_the_logits() -> None:
    def probabilities(weights: Any) -> Any:
        x, y = tf.constant(learn_functions.X), tf.constant(learn_functions.CLASSES)
        return tf.contrib.learn.models.logistic_regression(x, y, tf.constant(weights))[0]

    even, weighted = run(lambda: probabilities([1.0, 1.0])), run(lambda: probabilities([2.0, 2.0]))
    np.testing.assert_allclose(
        np.log(weighted[:, 0] / weighted[:, 1]), 2 * np.log(even[:, 0] / even[:, 1]), rtol=1e-4
    )


def test_lengths_reverse_what_is_within_them() -> None:
    """TensorFlow's own fails here: it calls functions of an earlier version."""

    def outputs(steps: int, lengths: Any) -> Any:
        cells = [tf.nn.rnn_cell.GRUCell(2) for _ in range(2)]
        inputs = [tf.constant(learn_functions.X + i) for i in range(steps)]
        return tf.contrib.learn.models.bidirectional_rnn(
            *cells, inputs=inputs, dtype=tf.float32, sequence_length=lengths
        )

    (first, second), state = run(lambda: outputs(2, tf.constant([1, 2, 2])))
    (alone,), state_alone = run(lambda: outputs(1, None))
    (whole, _), _ = run(lambda: outputs(2, None))
    np.testing.assert_allclose(first[0], alone[0], rtol=1e-6)
    np.testing.assert_allclose(state[0], state_alone[0], rtol=1e-6)
    np.testing.assert_allclose(first[1:], whole[1:], rtol=1e-6)
    assert not second[0].any()


def test_what_a_network_is_not_made_of() -> None:
    models = tf.contrib.learn.models
    with pytest.raises(ValueError, match="cell_type zz is not supported"):
        models.get_rnn_model(2, "zz", 1, list, False, None, None, None, None, None, None)([], None)
    cell = tf.nn.rnn_cell.GRUCell(2)
    with pytest.raises(TypeError, match="must be instances of RNNCell"):
        models.bidirectional_rnn(cell, 3, [])
    with pytest.raises(TypeError, match="inputs must be a list"):
        models.bidirectional_rnn(cell, cell, tf.zeros([2, 2]))
    with pytest.raises(ValueError, match="inputs must not be empty"):
        models.bidirectional_rnn(cell, cell, [])
