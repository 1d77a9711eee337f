"""Evaluating checkpoints: once, or each as it comes.

The evaluation's step, in the collection EVAL_STEP, counts how often the evaluation's operations have run;
hooks that end an evaluation look at it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import flowstone as tf

__all__ = [
    "StopAfterNEvalsHook",
    "SummaryAtEndHook",
    "checkpoints_iterator",
    "evaluate_once",
    "evaluate_repeatedly",
    "get_or_create_eval_step",
    "wait_for_new_checkpoint",
]

_EVAL_STEP = "eval_step"


def get_or_create_eval_step() -> Any:
    """The evaluation's step, an int64 scalar local variable, made if the graph has none.

    ValueError if the collection EVAL_STEP has more than one.
    """
    steps = tf.get_collection(_EVAL_STEP)
    if len(steps) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if steps:
        return steps[0]
    return tf.get_variable(
        "eval_step", shape=[], dtype=tf.int64, initializer=tf.zeros_initializer(), trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES, _EVAL_STEP],
    )  # fmt: skip


class StopAfterNEvalsHook(tf.train.SessionRunHook):  # type: ignore[misc]
    """Ends an evaluation after `num_evals` runs of its operations (None: at the end of the input).

    `log_progress`: whether it logs how many have run, ten times at most.
    """

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals = num_evals
        self._evals_completed: Any = None
        self._log_progress = log_progress
        self._log_frequency = 1 if num_evals is None or num_evals < 20 else math.floor(num_evals / 10.0)

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._evals_completed = updated_eval_step

    def before_run(self, run_context: Any) -> Any:
        """Fetches the evaluation's step."""
        return tf.train.SessionRunArgs({"evals_completed": self._evals_completed})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Ends the evaluation when enough have run."""
        completed = run_values.results["evals_completed"]
        if self._log_progress:
            if self._num_evals is None:
                tf.logging.info("Evaluation [%d]", completed)
            elif completed % self._log_frequency == 0 or completed == self._num_evals:
                tf.logging.info("Evaluation [%d/%d]", completed, self._num_evals)
        if self._num_evals is not None and completed >= self._num_evals:
            run_context.request_stop()


class SummaryAtEndHook(tf.train.SessionRunHook):  # type: ignore[misc]
    """Writes summaries at the end of a session, under the global step.

    Args:
        log_dir: the folder of the log, unless `summary_writer` is given.
        summary_op: what to write; all summaries of the graph if None.
        feed_dict: what `summary_op` is fed.

    Raises ValueError if both or none of `log_dir` and `summary_writer` are given when the session ends.
    """

    def __init__(
        self, log_dir: Any = None, summary_writer: Any = None, summary_op: Any = None, feed_dict: Any = None
    ) -> None:
        self._summary_op, self._replace_summary_op = summary_op, summary_op is None
        self._feed_dict, self._log_dir, self._summary_writer = feed_dict, log_dir, summary_writer
        if log_dir and summary_writer:
            raise ValueError("exactly one of log_dir and summary_writer may be specified")

    def begin(self) -> None:
        """Finds what to write."""
        if self._replace_summary_op:
            self._summary_op = tf.summary.merge_all()
        self._global_step = tf.train.get_or_create_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Opens the log."""
        if self._summary_writer is None and self._log_dir:
            self._summary_writer = tf.summary.FileWriterCache.get(self._log_dir)

    def end(self, session: Any) -> None:
        """Writes the summaries."""
        if self._summary_op is None or self._summary_writer is None:
            return
        step = tf.train.global_step(session, self._global_step)
        self._summary_writer.add_summary(session.run(self._summary_op, self._feed_dict), step)
        self._summary_writer.flush()


def wait_for_new_checkpoint(
    checkpoint_dir: Any,
    last_checkpoint: str | None = None,
    seconds_to_sleep: float = 1,
    timeout: float | None = None,
) -> str | None:
    """The latest checkpoint of a folder as soon as it is another than `last_checkpoint`.

    `timeout`: how many seconds to wait, None for ever; None is returned then.
    """
    tf.logging.info("Waiting for new checkpoint at %s", checkpoint_dir)
    end = None if timeout is None else time.time() + timeout
    while True:
        found: str | None = tf.train.latest_checkpoint(checkpoint_dir)
        if found is not None and found != last_checkpoint:
            tf.logging.info("Found new checkpoint at %s", found)
            return found
        if end is not None and time.time() + seconds_to_sleep > end:
            return None
        time.sleep(seconds_to_sleep)


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """The latest checkpoint of a folder, again and again: `tf.train.checkpoints_iterator`."""
    iterator: Iterator[str] = tf.train.checkpoints_iterator(
        checkpoint_dir, min_interval_secs, timeout, timeout_fn
    )
    return iterator


def _with_eval_step(eval_ops: Any, hooks: Sequence[Any]) -> tuple[Any, Any]:
    """(the evaluation's operations with the step's increment, the step after them)."""
    step = get_or_create_eval_step()
    if eval_ops is None:
        return None, step
    update = tf.assign_add(step, tf.ones([], tf.int64), use_locking=True)
    if isinstance(eval_ops, Mapping):
        eval_ops = {**eval_ops, "update_eval_step": update}
        operations = list(eval_ops.values())
    elif isinstance(eval_ops, (list, tuple)):
        operations = [*eval_ops, update]
        eval_ops = operations
    else:
        operations = [eval_ops, update]
        eval_ops = operations
    with tf.control_dependencies(tf.contrib.framework.nest.flatten(operations)):
        latest = tf.identity(step.read_value())
    for hook in hooks:
        if hasattr(hook, "_set_evals_completed_tensor"):
            hook._set_evals_completed_tensor(latest)
    return eval_ops, latest


def _evaluate(creator: Any, eval_ops: Any, feed_dict: Any, hooks: Sequence[Any]) -> None:
    """Runs the operations until a hook or the end of the input stops that."""
    with tf.train.MonitoredSession(session_creator=creator, hooks=hooks) as session:
        if eval_ops is not None:
            while not session.should_stop():
                session.run(eval_ops, feed_dict)


def evaluate_once(
    checkpoint_path: str | None,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    hooks: Sequence[Any] | None = None,
    config: Any = None,
) -> Any:
    """Restores a checkpoint, runs `eval_ops` until a hook stops that, and returns the values of `final_ops`.

    Args:
        checkpoint_path: the checkpoint; None: the variables are initialised.
        eval_ops: an operation, or a list or dict of operations; None: only `final_ops` run.
        feed_dict, final_ops_feed_dict: what the two are fed.
        hooks: hooks of the session, such as a `StopAfterNEvalsHook`.

    `master`, `scaffold`, `config` are those of `tf.train.ChiefSessionCreator`.
    """
    hooks = list(hooks or [])
    eval_ops, _ = _with_eval_step(eval_ops, hooks)
    tf.logging.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    creator = tf.train.ChiefSessionCreator(
        scaffold=scaffold, checkpoint_filename_with_path=checkpoint_path, master=master, config=config
    )
    final = tf.train.FinalOpsHook(final_ops, final_ops_feed_dict)
    _evaluate(creator, eval_ops, feed_dict, [*hooks, final])
    tf.logging.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime()))
    return final.final_ops_values


def evaluate_repeatedly(
    checkpoint_dir: Any,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    eval_interval_secs: float = 60,
    hooks: Sequence[Any] | None = None,
    config: Any = None,
    max_number_of_evaluations: int | None = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Any:
    """`evaluate_once` of every new checkpoint of a folder; returns the last values of `final_ops`.

    `eval_interval_secs`: the least time between two. `max_number_of_evaluations`: after so many it returns.
    `timeout`, `timeout_fn`: as of `checkpoints_iterator`. The operations are made once; hooks begin anew with
    each checkpoint. Returns None if there was no checkpoint.
    """
    hooks = list(hooks or [])
    eval_ops, _ = _with_eval_step(eval_ops, hooks)
    final = tf.train.FinalOpsHook(final_ops, final_ops_feed_dict)
    hooks.append(final)
    scaffold = scaffold or tf.train.Scaffold()
    paths = checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)
    for count, path in enumerate(paths, 1):
        creator = tf.train.ChiefSessionCreator(
            scaffold=scaffold, checkpoint_filename_with_path=path, master=master, config=config
        )
        tf.logging.info("Starting evaluation of %s", path)
        _evaluate(creator, eval_ops, feed_dict, hooks)
        tf.logging.info("Finished evaluation of %s", path)
        if max_number_of_evaluations is not None and count >= max_number_of_evaluations:
            break
    return final.final_ops_values
