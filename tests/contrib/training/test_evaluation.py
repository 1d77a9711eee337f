"""Evaluation of checkpoints: how often operations run, and what is returned and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.contrib import training


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A checkpoint with w = 7 and the global step 5."""
    with tf.Graph().as_default():
        tf.get_variable("w", initializer=7.0)
        step = tf.train.get_or_create_global_step()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(tf.assign(step, 5))
            return str(tf.train.Saver().save(session, str(tmp_path / "model.ckpt"), 5))


def model() -> tuple[Any, Any, Any]:
    """A variable, how often the update has run, the update."""
    w = tf.get_variable("w", initializer=0.0)
    tf.train.get_or_create_global_step()
    runs = tf.get_local_variable("runs", initializer=0)
    return w, runs, tf.assign_add(runs, 1)


@pytest.mark.parametrize("form", [lambda op: op, lambda op: [op], lambda op: {"update": op}])
def test_the_operations_run_so_often(checkpoint: str, form: Any) -> None:
    w, runs, update = model()
    final = training.evaluate_once(
        checkpoint,
        eval_ops=form(update),
        final_ops={"w": w, "runs": runs},
        hooks=[training.StopAfterNEvalsHook(3)],
    )
    assert final == {"w": 7.0, "runs": 3}
    assert training.get_or_create_eval_step().op.name == "eval_step"


def test_without_a_checkpoint_or_operations() -> None:
    w, _, _ = model()
    assert training.evaluate_once(None, final_ops=w) == 0.0


def test_every_checkpoint_is_evaluated(checkpoint: str) -> None:
    w, runs, update = model()
    folder = str(Path(checkpoint).parent)
    options = {"eval_ops": update, "final_ops": [w, runs], "hooks": [training.StopAfterNEvalsHook(2, False)]}
    assert training.evaluate_repeatedly(folder, max_number_of_evaluations=1, **options) == [7.0, 2]


def test_no_checkpoint_comes(tmp_path: Path) -> None:
    w, _, update = model()
    assert training.evaluate_repeatedly(tmp_path, eval_ops=update, final_ops=w, timeout=0) is None
    assert training.wait_for_new_checkpoint(tmp_path, timeout=0) is None
    assert list(training.checkpoints_iterator(tmp_path, timeout=0)) == []


def test_the_new_checkpoint_is_found(checkpoint: str) -> None:
    folder = str(Path(checkpoint).parent)
    assert training.wait_for_new_checkpoint(folder) == checkpoint
    assert training.wait_for_new_checkpoint(folder, checkpoint, timeout=0) is None


def test_summaries_are_written_at_the_end(checkpoint: str, tmp_path: Path) -> None:
    w, _, update = model()
    tf.summary.scalar("w_value", w)
    hooks = [training.StopAfterNEvalsHook(1), training.SummaryAtEndHook(str(tmp_path / "log"))]
    training.evaluate_once(checkpoint, eval_ops=update, hooks=hooks)
    (log,) = (tmp_path / "log").iterdir()
    values = {
        (value.tag, value.simple_value, event.step)
        for event in tf.train.summary_iterator(str(log))
        for value in event.summary.value
    }
    assert values == {("w_value", 7.0, 5)}


def test_one_log_only() -> None:
    with pytest.raises(ValueError, match="exactly one of log_dir and summary_writer"):
        training.SummaryAtEndHook("folder", object())


def test_two_evaluation_steps() -> None:
    for value in (1, 2):
        tf.add_to_collection("eval_step", value)
    with pytest.raises(ValueError, match="Multiple tensors"):
        training.get_or_create_eval_step()
