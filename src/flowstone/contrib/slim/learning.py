"""Training with slim: the operation of a step, and the loop that runs it under a `Supervisor`.

    train_op = slim.learning.create_train_op(total_loss, optimizer)
    slim.learning.train(train_op, "folder", number_of_steps=1000)

The loop calls `train_step` until it says that the training should end, and saves a checkpoint then.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.client.timeline import Timeline
from flowstone.contrib.training import training
from flowstone.contrib.training.training import clip_gradient_norms as clip_gradient_norms
from flowstone.contrib.training.training import multiply_gradients as multiply_gradients
from flowstone.contrib.training.training import summaries_of_gradients

__all__ = [
    "add_gradients_summaries",
    "clip_gradient_norms",
    "create_train_op",
    "multiply_gradients",
    "train",
    "train_step",
]

_USE_GLOBAL_STEP = 0
_USE_DEFAULT = 0


def add_gradients_summaries(grads_and_vars: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Summaries of gradients: a histogram and the norm of each. Returns the summaries' tensors."""
    return summaries_of_gradients(grads_and_vars, "/")


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Sequence[Any] | None = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = tf.train.Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    check_numerics: bool = True,
) -> Any:
    """A tensor with the value of the loss; fetching it takes a step of the optimiser.

    `clip_gradient_norm`: the most that the norm of a gradient may be, 0 for no limit; `gradient_multipliers`:
    factors of gradients, as of `multiply_gradients`. The other arguments, and the errors, are those of
    `tf.contrib.training.create_train_op`.
    """

    def transform(gradients: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        if gradient_multipliers:
            with tf.name_scope("multiply_grads"):
                gradients = multiply_gradients(gradients, gradient_multipliers)
        if clip_gradient_norm > 0:
            with tf.name_scope("clip_grads"):
                gradients = clip_gradient_norms(gradients, clip_gradient_norm)
        return gradients

    return training.create_train_op(
        total_loss, optimizer, global_step, update_ops, variables_to_train, transform, summarize_gradients,
        gate_gradients, aggregation_method, colocate_gradients_with_ops, check_numerics,
    )  # fmt: skip


def train_step(
    sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Takes a step; returns (the loss, whether the training should end).

    `train_step_kwargs` may have ``should_stop``, ``should_log`` and ``should_trace``, bool tensors, and the
    ``logdir`` and ``summary_writer`` that a trace goes to.
    """
    began = time.time()
    tracing = "should_trace" in train_step_kwargs and sess.run(train_step_kwargs["should_trace"])
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE) if tracing else None
    metadata = tf.RunMetadata() if tracing else None
    loss, step = sess.run([train_op, global_step], options=options, run_metadata=metadata)
    seconds = time.time() - began
    if metadata is not None:
        _write_trace(metadata, step, train_step_kwargs)
    asked = [name for name in ("should_log", "should_stop") if name in train_step_kwargs]
    answers = dict(zip(asked, sess.run([train_step_kwargs[name] for name in asked]) if asked else []))
    if answers.get("should_log", False):
        tf.logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, seconds)
    return loss, bool(answers.get("should_stop", False))


def _write_trace(metadata: Any, step: Any, train_step_kwargs: Mapping[str, Any]) -> None:
    logdir = train_step_kwargs.get("logdir")
    if logdir:
        trace = Timeline(metadata.step_stats).generate_chrome_trace_format()
        with tf.gfile.Open(os.path.join(logdir, f"tf_trace-{step}.json"), "w") as file:
            file.write(trace)
    if train_step_kwargs.get("summary_writer") is not None:
        train_step_kwargs["summary_writer"].add_run_metadata(metadata, f"run_metadata-{step}")


def train(
    train_op: Any,
    logdir: Any,
    train_step_fn: Callable[..., Any] = train_step,
    train_step_kwargs: Any = _USE_DEFAULT,
    log_every_n_steps: int = 1,
    graph: Any = None,
    master: str = "",
    is_chief: bool = True,
    global_step: Any = None,
    number_of_steps: int | None = None,
    init_op: Any = _USE_DEFAULT,
    init_feed_dict: Any = None,
    local_init_op: Any = _USE_DEFAULT,
    init_fn: Callable[[Any], Any] | None = None,
    ready_op: Any = _USE_DEFAULT,
    summary_op: Any = _USE_DEFAULT,
    save_summaries_secs: float = 600,
    summary_writer: Any = _USE_DEFAULT,
    startup_delay_steps: int = 0,
    saver: Any = None,
    save_interval_secs: float = 600,
    sync_optimizer: Any = None,
    session_config: Any = None,
    session_wrapper: Callable[[Any], Any] | None = None,
    trace_every_n_steps: int | None = None,
    ignore_live_threads: bool = False,
) -> Any:
    """Trains until a step says that it should end, or the input ends; returns the last loss.

    Args:
        train_op: a tensor as of `create_train_op`.
        logdir: the folder of checkpoints and summaries; None: none are written.
        train_step_fn: takes a step, ``train_step_fn(session, train_op, global_step, train_step_kwargs)``, and
            returns (loss, whether to end).
        train_step_kwargs: its dict; by default what `train_step` looks for. ``summary_writer`` is added.
        log_every_n_steps, trace_every_n_steps: how often the loss is logged, a step traced into `logdir`.
        graph, master, session_config: of the session; the default graph if None.
        is_chief: whether this process initialises and saves.
        number_of_steps: the global step at which the training ends; None: never.
        startup_delay_steps: the global step before which one that is not chief does not begin.
        sync_optimizer: a `SyncReplicasOptimizer`, or several.
        session_wrapper: makes another session of the session, such as a debugger's.
        ignore_live_threads: whether threads that do not end are no error.

    The other arguments are those of `Supervisor`. Raises ValueError without `train_op`, for steps that are
    not positive, and for what needs `logdir` without it.
    """
    _check(train_op, logdir, summary_op, saver, trace_every_n_steps, number_of_steps)
    optimizers = _checked_sync_optimizers(sync_optimizer, startup_delay_steps)
    graph = graph or tf.get_default_graph()
    with graph.as_default():
        if global_step is None:
            global_step = tf.train.get_or_create_global_step()
        saver = saver or tf.train.Saver()
        start = _StartOperations(init_op, ready_op, local_init_op, optimizers, is_chief)
        if summary_op == _USE_DEFAULT and isinstance(summary_op, int):
            summary_op = tf.summary.merge_all()
        tokens = [optimizer.get_init_tokens_op() for optimizer in optimizers if is_chief]
        if isinstance(train_step_kwargs, int):
            train_step_kwargs = _step_arguments(
                global_step, number_of_steps, log_every_n_steps, trace_every_n_steps, logdir, is_chief
            )
    supervisor = tf.train.Supervisor(
        graph=graph, is_chief=is_chief, logdir=logdir, init_op=start.init_op, init_feed_dict=init_feed_dict,
        local_init_op=start.local_init_op, ready_for_local_init_op=start.ready_for_local_init_op,
        ready_op=start.ready_op, summary_op=summary_op, summary_writer=summary_writer,
        global_step=global_step, saver=saver, save_summaries_secs=save_summaries_secs,
        save_model_secs=save_interval_secs, init_fn=init_fn,
    )  # fmt: skip
    if supervisor.summary_writer is not None:
        train_step_kwargs["summary_writer"] = supervisor.summary_writer
    loop = _Loop(supervisor, train_op, global_step, train_step_fn, train_step_kwargs)
    delay = 0 if is_chief else min(startup_delay_steps, number_of_steps or sys.maxsize)
    return loop.run(
        master, session_config, session_wrapper, logdir, optimizers, tokens, delay, ignore_live_threads
    )


def _check(
    train_op: Any,
    logdir: Any,
    summary_op: Any,
    saver: Any,
    trace_every_n_steps: int | None,
    number_of_steps: int | None,
) -> None:
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if logdir is None:
        if not isinstance(summary_op, int) and summary_op is not None:
            raise ValueError("Cannot provide summary_op because logdir=None")
        if saver is not None:
            raise ValueError("Cannot provide saver because logdir=None")
        if trace_every_n_steps is not None:
            raise ValueError("Cannot provide trace_every_n_steps because logdir=None")
    if number_of_steps is not None and number_of_steps <= 0:
        raise ValueError("`number_of_steps` must be either None or a positive number.")


def _checked_sync_optimizers(sync_optimizer: Any, startup_delay_steps: int) -> list[Any]:
    if sync_optimizer is None:
        return []
    optimizers = list(sync_optimizer) if isinstance(sync_optimizer, (list, tuple)) else [sync_optimizer]
    if not all(isinstance(each, tf.train.SyncReplicasOptimizer) for each in optimizers):
        raise ValueError("`sync_optimizer` must be a tf.train.SyncReplicasOptimizer.")
    if startup_delay_steps > 0:
        raise ValueError("startup_delay_steps must be zero when sync_optimizer is supplied.")
    return optimizers


class _StartOperations:
    """The operations that a training begins with, those that were not given made."""

    def __init__(
        self, init_op: Any, ready_op: Any, local_init_op: Any, optimizers: Sequence[Any], is_chief: bool
    ) -> None:
        with tf.name_scope("init_ops"):
            self.init_op = tf.global_variables_initializer() if isinstance(init_op, int) else init_op
            self.ready_op = tf.report_uninitialized_variables() if isinstance(ready_op, int) else ready_op
            if isinstance(local_init_op, int):
                local_init_op = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
            self.local_init_op = local_init_op
            self.ready_for_local_init_op = None
            if optimizers and isinstance(self.local_init_op, tf.Operation):
                steps = [each.chief_init_op if is_chief else each.local_step_init_op for each in optimizers]
                self.local_init_op = tf.group(self.local_init_op, *steps)
                self.ready_for_local_init_op = optimizers[0].ready_for_local_init_op


def _step_arguments(
    global_step: Any,
    number_of_steps: int | None,
    log_every_n_steps: int,
    trace_every_n_steps: int | None,
    logdir: Any,
    is_chief: bool,
) -> dict[str, Any]:
    """What `train_step` looks for."""
    arguments: dict[str, Any] = {}
    with tf.name_scope("train_step"):
        if number_of_steps:
            arguments["should_stop"] = tf.greater_equal(global_step, number_of_steps)
        else:
            arguments["should_stop"] = tf.constant(False)
        if log_every_n_steps > 0:
            arguments["should_log"] = tf.equal(tf.mod(global_step, log_every_n_steps), 0)
        if is_chief and trace_every_n_steps is not None:
            arguments["should_trace"] = tf.equal(tf.mod(global_step, trace_every_n_steps), 0)
            arguments["logdir"] = logdir
    return arguments


class _Loop:
    """The loop over steps, in sessions of a supervisor."""

    def __init__(
        self,
        supervisor: Any,
        train_op: Any,
        global_step: Any,
        train_step_fn: Callable[..., Any],
        train_step_kwargs: dict[str, Any],
    ) -> None:
        self._supervisor = supervisor
        self._train_op, self._global_step = train_op, global_step
        self._train_step_fn, self._train_step_kwargs = train_step_fn, train_step_kwargs
        self._loss: Any = None

    def run(
        self,
        master: str,
        config: Any,
        session_wrapper: Callable[[Any], Any] | None,
        logdir: Any,
        optimizers: Sequence[Any],
        tokens: Sequence[Any],
        delay: int,
        ignore_live_threads: bool,
    ) -> Any:
        """Trains, anew from the last checkpoint when a step lost a process; returns the last loss."""
        supervisor = self._supervisor
        while True:
            try:
                with supervisor.managed_session(
                    master, start_standard_services=False, config=config
                ) as session:
                    tf.logging.info("Starting Session.")
                    if session_wrapper is not None:
                        session = session_wrapper(session)
                    if supervisor.is_chief and logdir:
                        supervisor.start_standard_services(session)
                    elif delay > 0:
                        _wait_for_step(session, self._global_step, delay)
                    threads = self._start_queues(session, optimizers, tokens)
                    self._take_steps(session)
                    try:
                        # The thread that saves checkpoints may still write an earlier one.
                        supervisor.stop(threads, True, ignore_live_threads)
                    finally:
                        if logdir and supervisor.is_chief:
                            self._save(session)
                return self._loss
            except tf.errors.AbortedError:
                tf.logging.info("Retrying training!")

    def _start_queues(self, session: Any, optimizers: Sequence[Any], tokens: Sequence[Any]) -> list[Any]:
        supervisor = self._supervisor
        threads: list[Any] = supervisor.start_queue_runners(session)
        tf.logging.info("Starting Queues.")
        for optimizer, token in zip(optimizers, tokens):
            supervisor.start_queue_runners(session, [optimizer.get_chief_queue_runner()])
            session.run(token)
        return threads

    def _save(self, session: Any) -> None:
        tf.logging.info("Finished training! Saving model to disk.")
        supervisor = self._supervisor
        supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)

    def _take_steps(self, session: Any) -> None:
        supervisor = self._supervisor
        try:
            while not supervisor.should_stop():
                self._loss, should_stop = self._train_step_fn(
                    session, self._train_op, self._global_step, self._train_step_kwargs
                )
                if should_stop:
                    tf.logging.info("Stopping Training.")
                    supervisor.request_stop()
                    break
        except tf.errors.OutOfRangeError as error:
            tf.logging.info("Caught OutOfRangeError. Stopping Training. %s", error)


def _wait_for_step(sess: Any, global_step: Any, step: int) -> None:
    """Waits until the global step is as large as `step`."""
    while True:
        now = tf.train.global_step(sess, global_step)
        if now >= step:
            return
        tf.logging.info("Waiting for step %d before starting training, now at %d.", step, now)
        time.sleep(1)
