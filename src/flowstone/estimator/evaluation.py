"""The evaluation of one checkpoint: steps of the updates, then the values.

`evaluate_once` counts its steps in a local variable, which hooks find in the collection EVAL_STEP.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

import flowstone as tf
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = [
    "StopAfterNEvalsHook",
    "evaluate_once",
    "get_or_create_eval_step",
    "with_own_local_variables",
]


class StopAfterNEvalsHook(SessionRunHook):
    """Ends an evaluation after a number of steps (None: with its input).

    `log_progress`: whether about ten lines of progress are logged.
    """

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals, self._log_progress = num_evals, log_progress
        self._evals_completed: Any = None
        few = num_evals is None or num_evals < 20
        self._log_frequency = 1 if few or num_evals is None else math.floor(num_evals / 10.0)

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._evals_completed = updated_eval_step

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.train.SessionRunArgs({"evals_completed": self._evals_completed})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        completed = run_values.results["evals_completed"]
        if self._log_progress:
            if self._num_evals is None:
                tf.logging.info("Evaluation [%d]", completed)
            elif completed % self._log_frequency == 0 or completed == self._num_evals:
                tf.logging.info("Evaluation [%d/%d]", completed, self._num_evals)
        if self._num_evals is not None and completed >= self._num_evals:
            run_context.request_stop()


def get_or_create_eval_step() -> Any:
    """The counter of the graph's evaluation steps, an int64 local variable.

    ValueError if the collection EVAL_STEP has more than one.
    """
    graph = tf.get_default_graph()
    steps = graph.get_collection(tf.GraphKeys.EVAL_STEP)
    if len(steps) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if steps:
        return steps[0]
    return tf.get_variable(
        "eval_step", [], tf.int64, tf.zeros_initializer(), trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.EVAL_STEP],
    )  # fmt: skip


def evaluate_once(
    checkpoint_path: Any,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    hooks: Iterable[Any] | None = None,
    config: Any = None,
) -> Any:
    """Evaluates a checkpoint and returns the values of `final_ops`.

    Args:
        checkpoint_path: the checkpoint; None: the variables are initialised.
        master: the session's target; `config`: its ConfigProto; `scaffold`: a Scaffold.
        eval_ops: what is run a step: an operation, or a list or dict of them; fed with `feed_dict`.
        final_ops: what is run at the end, fed with `final_ops_feed_dict`.
        hooks: SessionRunHooks; one of them, or the input's end, stops the evaluation.
    """
    step = get_or_create_eval_step()
    all_hooks = list(hooks or ())
    counted = tf.assign_add(step, tf.ones_like(step)) if hasattr(step, "initializer") else step
    eval_ops = _counted(eval_ops, counted)
    for hook in all_hooks:
        if hasattr(hook, "_set_evals_completed_tensor"):
            hook._set_evals_completed_tensor(counted)
    tf.logging.info("Starting evaluation at " + time.strftime("%Y-%m-%dT%H:%M:%SZ", time.localtime()))
    creator = tf.train.ChiefSessionCreator(
        scaffold=scaffold, checkpoint_filename_with_path=checkpoint_path, master=master, config=config
    )
    final = tf.train.FinalOpsHook(final_ops, final_ops_feed_dict)
    all_hooks.append(final)
    with tf.train.MonitoredSession(creator, all_hooks) as session:
        if eval_ops is not None:
            while not session.should_stop():
                session.run(eval_ops, feed_dict)
    tf.logging.info("Finished evaluation at " + time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime()))
    return final.final_ops_values


def _counted(eval_ops: Any, counted: Any) -> Any:
    """The operations of a step, with the one that counts it."""
    if isinstance(eval_ops, dict):
        return {**eval_ops, "update_eval_step": counted}
    if isinstance(eval_ops, (tuple, list)):
        return [*eval_ops, counted]
    return None if eval_ops is None else [eval_ops, counted]


def with_own_local_variables(scaffold: Any) -> Any:
    """The scaffold, whose operation for local variables initialises those of the evaluation as well."""
    if scaffold is None or scaffold.local_init_op is None:
        return scaffold
    get_or_create_eval_step()
    local_init_op = tf.group(scaffold.local_init_op, tf.train.Scaffold.default_local_init_op())
    return tf.train.Scaffold(local_init_op=local_init_op, copy_from_scaffold=scaffold)
