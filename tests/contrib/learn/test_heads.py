"""Heads of tf.contrib.learn: names and values of what they make are TensorFlow's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.learn import learn_models

import flowstone as tf
from flowstone.contrib.learn.estimators import head as head_lib

GOLDEN = Path(__file__).parents[2] / "golden" / "contrib_learn"
ANSWERS = json.loads((GOLDEN / "answers.json").read_text())["heads"]


def assert_same(found: Any, expected: Any, path: str = "") -> None:
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected), path
        for key, value in expected.items():
            assert_same(found[key], value, f"{path}/{key}")
    elif isinstance(expected, (list, float)) and not _has_text(expected):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=path)
    elif isinstance(expected, list) and isinstance(expected[-1], dict):
        assert found[0] == expected[0], path
        assert_same(found[1], expected[1], path)
    else:
        assert found == expected, path


def _has_text(value: Any) -> bool:
    return (
        any(_has_text(each) for each in value) if isinstance(value, list) else isinstance(value, (str, dict))
    )


@pytest.mark.parametrize(
    ("name", "mode"), [(name, mode) for name in sorted(ANSWERS) for mode in ANSWERS[name]]
)
def test_a_head_makes_what_tensorflows_does(name: str, mode: str) -> None:
    assert_same(learn_models.head_answer(tf, name, mode), ANSWERS[name][mode])


def test_heads_of_several_problems_are_evaluated_together() -> None:
    found, trained = learn_models.head_answer(tf, "several", "eval"), ANSWERS["several"]["train"]
    assert found["train"] is None
    assert_same(found["metrics"], trained["metrics"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda h: h.multi_class_head(1), "n_classes must be > 1"),
        (lambda h: h.multi_class_head(3, metric_class_ids=[5]), r"Class ID 5 not in \[0, 3\)"),
        (lambda h: h.multi_class_head(2, metric_class_ids=[1]), "metric_class_ids invalid"),
        (lambda h: h.multi_class_head(2, label_keys=["a", "b"]), "label_keys is not supported"),
        (lambda h: h.multi_class_head(3, loss_fn=lambda labels, logits: 0), "Argument weights not found"),
        (lambda h: h.multi_label_head(1), "n_classes must be > 1"),
        (lambda h: h.regression_head(label_dimension=0), "Invalid logits_dimension 0"),
        (lambda h: h.multi_head([h.regression_head()]), "must have names"),
        (lambda h: h.multi_head([h.regression_head(head_name="a")], [1.0, 2.0]), "same size"),
    ],
)
def test_heads_that_cannot_be_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(head_lib)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "infer"}, "Neither logits nor logits_input"),
        ({"mode": "infer", "logits": [[1.0]], "logits_input": [[1.0]]}, "Both logits and logits_input"),
        ({"mode": "other", "logits": [[1.0]]}, "mode=other unrecognized"),
        ({"mode": "train", "logits": [[1.0]]}, "Missing train_op"),
        ({"mode": "train", "logits": [[1.0]], "labels": [[1.0]]}, "train_op_fn can not be None"),
        ({"mode": "eval", "logits": [[1.0, 2.0]], "labels": [[1.0]]}, "not compatible"),
    ],
)
def test_calls_that_lack_something_are_refused(arguments: dict[str, Any], message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        head_lib.regression_head().create_model_fn_ops({}, **arguments)


def test_a_last_layer_makes_the_logits() -> None:
    with tf.Graph().as_default():
        ops = head_lib.regression_head().create_model_fn_ops({}, "infer", logits_input=tf.ones([2, 4]))
        assert ops.predictions["scores"].shape == [2]
        assert [v.name for v in tf.global_variables()] == [
            "regression_head/logits/weights:0", "regression_head/logits/biases:0",
        ]  # fmt: skip


def test_a_loss_of_the_programs_own_and_sparse_labels() -> None:
    head = head_lib.multi_class_head(3, loss_fn=lambda labels, logits, weights=None: tf.reduce_sum(logits))
    with tf.Graph().as_default(), tf.Session() as session:
        ops = head.create_model_fn_ops({}, "eval", tf.constant([0]), logits=tf.ones([1, 3]))
        assert session.run(ops.loss) == 3
    with tf.Graph().as_default(), tf.Session() as session:
        labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 0], [2, 2])
        ops = head_lib.multi_label_head(3).create_model_fn_ops({}, "eval", labels, logits=tf.ones([2, 3]))
        assert session.run(ops.loss) == pytest.approx(0.81326175)  # three of six classes: log(1 + e) - 1/2


def test_no_op_train_fn_does_nothing() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(head_lib.no_op_train_fn(tf.constant(1.0))) is None
