"""Evaluation with slim: how often, of what, and what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.contrib.slim import evaluation


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A checkpoint with w = 7 and the global step 5."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("w", initializer=7.0)
        step = tf.train.get_or_create_global_step()
        session.run(tf.global_variables_initializer())
        session.run(tf.assign(step, 5))
        return str(tf.train.Saver().save(session, str(tmp_path / "model.ckpt"), 5))


def model() -> tuple[Any, Any, Any]:
    """A variable, how often the update has run, the update."""
    w = tf.get_variable("w", initializer=0.0)
    tf.summary.scalar("w_value", w)
    tf.train.get_or_create_global_step()
    runs = tf.get_local_variable("runs", initializer=0)
    return w, runs, tf.assign_add(runs, 1)


def written(folder: Path) -> set[Any]:
    return {
        (value.tag, value.simple_value, event.step)
        for log in folder.glob("*")
        for event in tf.train.summary_iterator(str(log))
        for value in event.summary.value
    }


def test_a_checkpoint_is_evaluated(checkpoint: str, tmp_path: Path) -> None:
    w, runs, update = model()
    log = tmp_path / "log"
    values = evaluation.evaluate_once("", checkpoint, str(log), 3, eval_op=update, final_op=[w, runs])
    assert values == [7.0, 3]
    assert written(log) == {("w_value", 7.0, 5)}


def test_feeds_and_no_summaries(checkpoint: str, tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, [])
    w, _, update = model()
    with tf.control_dependencies([update]):
        fed = tf.identity(x)
    value = evaluation.evaluate_once(
        "", checkpoint, str(tmp_path / "log"), 1, eval_op=fed, eval_op_feed_dict={x: 1.0},
        final_op=w * x, final_op_feed_dict={x: 2.0}, summary_op=None,
        variables_to_restore=tf.global_variables(),
    )  # fmt: skip
    assert value == 14.0
    assert not (tmp_path / "log").exists()


def test_every_new_checkpoint_is_evaluated(checkpoint: str, tmp_path: Path) -> None:
    w, runs, update = model()
    log, began = tmp_path / "log", []
    values = evaluation.evaluation_loop(
        "", str(tmp_path), str(log), 2, eval_op=update, final_op=[w, runs], max_number_of_evaluations=1,
        hooks=[tf.train.FeedFnHook(lambda: began.append(1) or {})],
    )  # fmt: skip
    assert values == [7.0, 2]
    assert len(began) == 2
    assert written(log) == {("w_value", 7.0, 5)}


def test_waiting(checkpoint: str, tmp_path: Path) -> None:
    assert evaluation.wait_for_new_checkpoint(str(tmp_path), timeout=0) == checkpoint
    assert list(evaluation.checkpoints_iterator(str(tmp_path / "none"), timeout=0)) == []
