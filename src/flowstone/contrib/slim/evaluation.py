"""Evaluation with slim: of one checkpoint, or of each as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.training import evaluation
from flowstone.contrib.training.evaluation import checkpoints_iterator as checkpoints_iterator
from flowstone.contrib.training.evaluation import wait_for_new_checkpoint as wait_for_new_checkpoint

__all__ = ["checkpoints_iterator", "evaluate_once", "evaluation_loop", "wait_for_new_checkpoint"]

_USE_DEFAULT = 0


def _hooks(
    num_evals: int, logdir: Any, summary_op: Any, summary_op_feed_dict: Any, hooks: Sequence[Any] | None
) -> list[Any]:
    if isinstance(summary_op, int):
        summary_op = tf.summary.merge_all()
    all_hooks: list[Any] = [evaluation.StopAfterNEvalsHook(num_evals)]
    if summary_op is not None:
        all_hooks.append(
            evaluation.SummaryAtEndHook(log_dir=logdir, summary_op=summary_op, feed_dict=summary_op_feed_dict)
        )
    return [*all_hooks, *(hooks or [])]


def _saver(variables_to_restore: Any) -> Any:
    return None if variables_to_restore is None else tf.train.Saver(variables_to_restore)


def evaluate_once(
    master: str,
    checkpoint_path: str | None,
    logdir: Any,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    session_config: Any = None,
    hooks: Sequence[Any] | None = None,
) -> Any:
    """Restores a checkpoint, runs `eval_op` so often, writes summaries, returns the values of `final_op`.

    Args:
        master, session_config: of the session.
        checkpoint_path: the checkpoint.
        logdir: the folder of the summaries.
        num_evals: how often `eval_op` runs.
        initial_op: initialises what is not restored.
        summary_op: what is written at the end; all summaries of the graph by default, none if None.
        variables_to_restore: of the checkpoint; all if None.
        hooks: further hooks of the session.

    The four ``…_feed_dict`` are what each operation is fed.
    """
    scaffold = tf.train.Scaffold(
        init_op=initial_op, init_feed_dict=initial_op_feed_dict, saver=_saver(variables_to_restore)
    )
    all_hooks = _hooks(num_evals, logdir, summary_op, summary_op_feed_dict, hooks)
    return evaluation.evaluate_once(
        checkpoint_path, master, scaffold, eval_op, eval_op_feed_dict, final_op, final_op_feed_dict,
        all_hooks, session_config,
    )  # fmt: skip


def evaluation_loop(
    master: str,
    checkpoint_dir: Any,
    logdir: Any,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    init_fn: Callable[..., Any] | None = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    eval_interval_secs: float = 60,
    max_number_of_evaluations: int | None = None,
    session_config: Any = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
    hooks: Sequence[Any] | None = None,
) -> Any:
    """`evaluate_once` of every new checkpoint of a folder; returns the last values of `final_op`.

    `eval_interval_secs`: the least time between two; `max_number_of_evaluations`: after so many it returns;
    `timeout`, `timeout_fn`: as of `checkpoints_iterator`; `init_fn`: as of `Scaffold`. The other arguments
    are those of `evaluate_once`.
    """
    saver = _saver(variables_to_restore)
    scaffold = tf.train.Scaffold(
        init_op=initial_op, init_feed_dict=initial_op_feed_dict, init_fn=init_fn, saver=saver
    )
    all_hooks = _hooks(num_evals, logdir, summary_op, summary_op_feed_dict, hooks)
    return evaluation.evaluate_repeatedly(
        checkpoint_dir, master, scaffold, eval_op, eval_op_feed_dict, final_op, final_op_feed_dict,
        eval_interval_secs, all_hooks, session_config, max_number_of_evaluations, timeout, timeout_fn,
    )  # fmt: skip
