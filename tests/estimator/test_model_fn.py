"""What an EstimatorSpec checks; the messages are TensorFlow 1.15.5's."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

Spec = tf.estimator.EstimatorSpec
TRAIN, EVAL, PREDICT = "train", "eval", "infer"


def one() -> Any:
    return tf.constant(1.0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Spec(TRAIN, train_op=tf.no_op()), ValueError, "Missing loss"),
        (lambda: Spec(TRAIN, loss=one()), ValueError, "Missing train_op"),
        (lambda: Spec(EVAL), ValueError, "Missing loss"),
        (lambda: Spec(PREDICT), ValueError, "Missing predictions"),
        (lambda: Spec(EVAL, loss=1.0), TypeError, "loss must be Tensor, given: 1.0"),
        (lambda: Spec(EVAL, loss=tf.ones([2])), ValueError, "Loss must be scalar"),
        (lambda: Spec(TRAIN, loss=one(), train_op="x"), TypeError, "train_op must be Operation or Tensor"),
        (lambda: Spec(EVAL, "s", one()), TypeError, "predictions must be Tensor, given: s"),
        (lambda: Spec(EVAL, {"a": "s"}, one()), TypeError, r"predictions\[a\] must be Tensor"),
        (lambda: Spec(EVAL, loss=one(), eval_metric_ops=3), TypeError, "eval_metric_ops must be a dict"),
        (lambda: Spec(EVAL, loss=one(), eval_metric_ops={"a": one()}), TypeError, "for key: a"),
        (lambda: Spec(EVAL, loss=one(), eval_metric_ops={"a": (1, one())}), TypeError, "of tensors"),
        (lambda: Spec(PREDICT, one(), export_outputs=3), TypeError, "export_outputs must be dict"),
        (lambda: Spec(PREDICT, one(), export_outputs={"a": 1}), TypeError, "must be ExportOutput objects"),
        (lambda: Spec(PREDICT, one(), training_hooks=[3]), TypeError, "must be SessionRunHook instances"),
        (lambda: Spec(PREDICT, one(), scaffold=3), TypeError, "must be tf.train.Scaffold"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_another_graph_is_refused() -> None:
    with tf.Graph().as_default():
        other = one()
    with pytest.raises(ValueError, match='loss with "Const:0" must be from the default graph'):
        Spec(EVAL, loss=other)
    with pytest.raises(ValueError, match='prediction values with "a: Const:0" must be'):
        Spec(PREDICT, {"a": other})


def test_one_output_is_the_default() -> None:
    output = tf.estimator.export.PredictOutput(one())
    assert list(Spec(PREDICT, one(), export_outputs={"a": output}).export_outputs) == ["a", "serving_default"]
    assert list(Spec(PREDICT, one()).export_outputs) == ["serving_default"]
    with pytest.raises(ValueError, match="none of them is specified as the default"):
        Spec(PREDICT, one(), export_outputs={"a": output, "b": output})


def test_a_loss_of_one_element_becomes_a_scalar() -> None:
    spec = Spec(EVAL, loss=tf.ones([1]))
    assert spec.loss.shape == [] and spec.predictions == {} and spec.training_hooks == ()
    with pytest.raises(ValueError, match="mode of EstimatorSpec cannot be changed"):
        spec._replace(mode=TRAIN)
    assert tf.estimator.ModeKeys.TRAIN == "train" and tf.estimator.ModeKeys.EVAL == "eval"


def test_a_logit_function_gets_what_it_takes() -> None:
    call = tf.estimator.experimental.call_logit_fn
    assert call(lambda features, mode: features, tf.ones([1]), "eval", {}, None).shape == [1]
    with pytest.raises(ValueError, match="should return a Tensor or a dictionary of Tensors"):
        call(lambda features: 3, tf.ones([1]), "eval", {}, None)
