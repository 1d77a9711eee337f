"""Modes, tasks and keys of `tf.contrib.learn`, and the modules that tell them."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.framework.names.alias_modules import alias_module


def test_values_are_tensorflows() -> None:
    learn = tf.contrib.learn
    assert [learn.ModeKeys.TRAIN, learn.ModeKeys.EVAL, learn.ModeKeys.INFER] == ["train", "eval", "infer"]
    learn.ModeKeys.validate("infer")
    with pytest.raises(ValueError, match="Invalid mode x"):
        learn.ModeKeys.validate("x")
    assert (learn.TaskType.MASTER, learn.TaskType.PS, learn.TaskType.WORKER) == ("master", "ps", "worker")
    assert learn.ProblemType.LOGISTIC_REGRESSION == 3 and learn.PredictionKey.PROBABILITIES == "probabilities"
    with pytest.raises(AttributeError):
        raise learn.NotFittedError("not fitted")


def test_modules_within() -> None:
    within = "tensorflow.contrib.learn.python.learn"
    assert alias_module(f"{within}.monitored_session").MonitoredSession is tf.train.MonitoredSession
    assert alias_module(f"{within}.estimators.model_fn").ModeKeys is tf.contrib.learn.ModeKeys
    assert alias_module(f"{within}.session_run_hook").SessionRunHook is tf.train.SessionRunHook
