"""Loops over a graph that is there already: `train`, `evaluate`, `infer` and `run_feeds`.

`train` saves checkpoints into a folder and goes on from its latest one; `evaluate` and `infer` restore one.
The global step counts the steps of training; monitors watch them. Values pass between the three in
checkpoints only.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.framework.deprecation import deprecated
from flowstone.contrib.learn.monitors.base_monitor import _as_graph_element
from flowstone.contrib.learn.monitors.saving_monitors import get_default_monitors
from flowstone.contrib.learn.summary_writer_cache import clear_summary_writers, get_summary_writer

__all__ = [
    "clear_summary_writers",
    "deprecated",
    "evaluate",
    "get_summary_writer",
    "infer",
    "load_variable",
    "run_feeds",
    "run_feeds_iter",
    "run_n",
    "train",
]


def load_variable(checkpoint_dir: str, name: str) -> Any:
    """A variable's value by its name with or without ':0', in a checkpoint or a folder's latest."""
    return tf.train.load_variable(checkpoint_dir, name)


def _check_given(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is None:
            raise ValueError(f"Missing {name}.")


def _check_folder(folder: str | None) -> None:
    if not folder:
        raise ValueError(f"Output directory should be non-empty {folder}.")


def _first_of(collection: str, make: Callable[[], Any]) -> Any:
    """The collection's first element; without one what `make` makes, which is added."""
    found = tf.get_collection(collection)
    if found:
        return found[0]
    made = make()
    if made is not None:
        tf.add_to_collection(collection, made)
    return made


def _local_init_op() -> Any:
    def make() -> Any:
        return tf.group(tf.local_variables_initializer(), tf.tables_initializer())

    return _first_of(tf.GraphKeys.LOCAL_INIT_OP, make)


def _saver(keep: int = 5) -> Any:
    """The graph's saver, or a new one that keeps so many checkpoints; None without variables."""

    def make() -> Any:
        return tf.train.Saver(sharded=True, max_to_keep=keep) if tf.global_variables() else None

    return _first_of(tf.GraphKeys.SAVERS, make)


def _last_step(folder: str, global_step: Any) -> int:
    """The global step of the folder's latest checkpoint; 0 without one."""
    latest = tf.train.latest_checkpoint(folder)
    return 0 if latest is None else int(load_variable(latest, global_step.name))


def train(
    graph: Any,
    output_dir: str,
    train_op: Any,
    loss_op: Any,
    global_step_tensor: Any = None,
    init_op: Any = None,
    init_feed_dict: Any = None,
    init_fn: Callable[[Any], Any] | None = None,
    log_every_steps: int = 10,
    supervisor_is_chief: bool = True,
    supervisor_master: str = "",
    supervisor_save_model_secs: float = 600,
    keep_checkpoint_max: int = 5,
    supervisor_save_summaries_steps: int = 100,
    feed_fn: Callable[[], Any] | None = None,
    steps: int | None = None,
    fail_on_nan_loss: bool = True,
    monitors: Any = None,
    max_steps: int | None = None,
) -> Any:
    """Trains from the latest checkpoint of `output_dir`, and saves one when it ends.

    Args:
        graph: the graph; it is finalised.
        output_dir: the folder of checkpoints and events.
        train_op: what a step runs; it counts the global step.
        loss_op: the scalar loss.
        global_step_tensor: the global step; None takes the graph's.
        init_op, init_feed_dict, init_fn: initialise, where there is no checkpoint.
        log_every_steps: how many steps lie between two losses in the log.
        supervisor_is_chief: whether this process initialises and saves.
        supervisor_master: the session's target.
        supervisor_save_model_secs: the seconds between two checkpoints.
        keep_checkpoint_max: how many checkpoints stay.
        supervisor_save_summaries_steps: how many steps lie between two summaries.
        feed_fn: gives a feed for each step; training ends when it raises StopIteration.
        steps: how many steps to train from the checkpoint.
        fail_on_nan_loss: whether a loss that is not a number raises NanLossDuringTrainingError, or only ends.
        monitors: what watches; see `tf.contrib.learn.monitors`.
        max_steps: the global step at which training ends. Without it and `steps`, it ends with the input.

    Returns the last loss; None if no step was left. Raises ValueError for missing arguments, both of `steps`
    and `max_steps`, and a graph without a global step.
    """
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    _check_folder(output_dir)
    _check_given(train_op=train_op, loss_op=loss_op)
    with graph.as_default():
        global_step = tf.train.get_global_step(graph) if global_step_tensor is None else global_step_tensor
        if global_step is None:
            raise ValueError('No "global_step" was provided or found in the graph.')
        start = _last_step(output_dir, global_step)
        last = start + steps if steps is not None else max_steps
        watching = _watching(
            monitors or [], loss_op, output_dir, supervisor_is_chief, supervisor_save_summaries_steps
        )
        for monitor in watching:
            monitor.begin(max_steps=last)
        supervisor = tf.train.Supervisor(
            graph,
            **({} if init_op is None else {"init_op": init_op}),
            init_feed_dict=init_feed_dict,
            is_chief=supervisor_is_chief,
            local_init_op=_local_init_op(),
            logdir=output_dir,
            saver=_saver(keep_checkpoint_max),
            global_step=global_step,
            summary_op=None,
            summary_writer=get_summary_writer(output_dir) if supervisor_is_chief else None,
            save_model_secs=supervisor_save_model_secs,
            init_fn=init_fn,
        )
        training = _Training(supervisor, train_op, loss_op, watching, fail_on_nan_loss)
        return _train(
            supervisor,
            supervisor_master,
            watching,
            lambda session: training.run(session, last, feed_fn, log_every_steps),
        )


def _watching(
    monitors: Iterable[Any], loss: Any, folder: str, is_chief: bool, save_summary_steps: int
) -> list[Any]:
    if not is_chief:
        return [monitor for monitor in monitors if monitor.run_on_all_workers]
    summary_op = _first_of(tf.GraphKeys.SUMMARY_OP, tf.summary.merge_all)
    default = get_default_monitors(loss, summary_op, save_summary_steps, folder, get_summary_writer(folder))
    return [*monitors, *default]


def _train(
    supervisor: Any,
    master: str,
    monitors: list[Any],
    run_steps: Callable[[Any], Any],
) -> Any:
    """What `run_steps` of a supervised session returns; however it ends, a checkpoint is saved."""
    with supervisor.prepare_or_wait_for_session(master, start_standard_services=True) as session:
        supervisor.start_queue_runners(session)
        failed = True
        try:
            result = run_steps(session)
            failed = False
            return result
        finally:
            # Only once its threads have ended is nobody else writing into the folder.
            with contextlib.suppress(Exception) if failed else contextlib.nullcontext():
                supervisor.stop(close_summary_writer=False)
            if supervisor.is_chief:
                supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
                supervisor.summary_writer.flush()
            for monitor in monitors:
                monitor.end(session)


class _Training:
    """The steps of a training: each runs the training op and tells the monitors."""

    def __init__(
        self, supervisor: Any, train_op: Any, loss_op: Any, monitors: list[Any], fail_on_nan_loss: bool
    ) -> None:
        self._supervisor = supervisor
        self._fetches = {loss_op.name: loss_op, train_op: train_op}
        self._loss_name = loss_op.name
        self._monitors = monitors
        self._fail_on_nan_loss = fail_on_nan_loss

    def run(self, session: Any, last: int | None, feed_fn: Any, log_every_steps: int) -> Any:
        """Trains up to the step `last`, or as long as there is input. Returns the last loss, or None."""
        loss: Any = None
        step = int(session.run(self._supervisor.global_step))
        tf.logging.info("Training steps [%d,%s)", step, "inf" if last is None else str(last))
        stops = False
        for count in itertools.count():
            if stops or self._supervisor.should_stop() or (last is not None and step >= last):
                return loss
            began = time.time()
            try:
                loss, stops = self._step(session, step + 1, feed_fn() if feed_fn else None)
            except (StopIteration, tf.errors.OutOfRangeError):
                tf.logging.info("The input has ended at step %d.", step)
                return loss
            step = int(session.run(self._supervisor.global_step))
            if count % log_every_steps == 0 or step == last:
                tf.logging.info(
                    "training step %d, loss = %.5f (%.3f sec/batch).", step, loss, time.time() - began
                )

    def _step(self, session: Any, step: int, feed: Any) -> tuple[Any, bool]:
        """The step's loss, and whether a monitor wants to stop. NanLossDuringTrainingError for a loss NaN."""
        requests = [request for each in self._monitors for request in each.step_begin(step) or []]
        wanted = {request: _as_graph_element(request) for request in requests}
        outputs = session.run({**wanted, **self._fetches}, feed)
        stops = any([monitor.step_end(step, outputs) for monitor in self._monitors])
        for monitor in self._monitors:
            monitor.post_step(step, session)
        loss = outputs[self._loss_name]
        if not np.isnan(loss):
            return loss, stops
        if self._fail_on_nan_loss:
            tf.logging.error("Model diverged with loss = NaN.")
            raise tf.train.NanLossDuringTrainingError
        tf.logging.warning("Model diverged with loss = NaN.")
        return loss, True


def evaluate(
    graph: Any,
    output_dir: str,
    checkpoint_path: str | None,
    eval_dict: Mapping[str, Any],
    update_op: Any = None,
    global_step_tensor: Any = None,
    supervisor_master: str = "",
    log_every_steps: int = 10,
    feed_fn: Callable[[], Any] | None = None,
    max_steps: int | None = None,
) -> tuple[dict[str, Any], int]:
    """Evaluates a checkpoint, and writes a summary of the results.

    Args:
        graph: the graph.
        output_dir: the folder of the summary.
        checkpoint_path: the checkpoint; None evaluates what the variables begin with.
        eval_dict: the results, tensors by name.
        update_op: what each step runs; without it each step computes the results.
        global_step_tensor: the global step; None takes the graph's, which is made if there is none.
        supervisor_master: the session's target.
        log_every_steps: how many steps lie between two lines of the log.
        feed_fn: gives a feed for each step; evaluation ends when it raises StopIteration.
        max_steps: how many steps; None goes on to the end of the input.

    Returns the results of the last step, and the checkpoint's global step. Raises ValueError without a
    folder, or if the checkpoint is not there.
    """
    _check_folder(output_dir)
    with graph.as_default():
        step = global_step_tensor if global_step_tensor is not None else tf.train.get_or_create_global_step()
        local_init_op, saver = _local_init_op(), _saver()
        initializer = tf.global_variables_initializer()
        with _restored(checkpoint_path, saver, initializer, local_init_op, supervisor_master) as session:
            trained = int(session.run(step))
            tf.logging.info(
                "Eval steps [0,%s) for training step %d.",
                "inf" if max_steps is None else str(max_steps),
                trained,
            )
            run = _Evaluation(session, dict(eval_dict), update_op, feed_fn)
            results = run.run(max_steps, log_every_steps)
    _write_summary_results(output_dir, results, trained)
    return results, trained


class _Evaluation:
    """The steps of an evaluation."""

    def __init__(self, session: Any, results: dict[str, Any], update_op: Any, feed_fn: Any) -> None:
        self._session = session
        self._results = results
        self._update_op = update_op
        self._feed_fn = feed_fn
        self._feed: Any = None

    def run(self, max_steps: int | None, log_every_steps: int) -> dict[str, Any]:
        """The results after so many steps, or at the end of the input."""
        results: dict[str, Any] | None = None
        try:
            for step in itertools.count() if max_steps is None else range(max_steps):
                if self._feed_fn is not None:
                    self._feed = self._feed_fn()
                fetches = self._results if self._update_op is None else self._update_op
                found = self._session.run(fetches, self._feed)
                results = found if self._update_op is None else None
                if (step + 1) % log_every_steps == 0:
                    tf.logging.info("Results after %d steps.", step + 1)
        except (StopIteration, tf.errors.OutOfRangeError):
            tf.logging.info("The input has ended.")
        if results is None:
            results = self._session.run(self._results, self._feed)
        return results


def _write_summary_results(output_dir: str, results: Mapping[str, Any], step: int) -> None:
    """Writes the results that are numbers as a summary at that step."""
    described = ", ".join(f"{name} = {results[name]!s}" for name in sorted(results))
    tf.logging.info("Saving evaluation summary for step %d: %s", step, described)
    summary = tf.Summary()
    for name, value in results.items():
        if np.ndim(value) == 0 and isinstance(value, float | np.floating):
            summary.value.add(tag=name, simple_value=float(value))
        else:
            tf.logging.warning("Skipping summary for %s, must be a float.", name)
    writer = get_summary_writer(output_dir)
    writer.add_summary(summary, step)
    writer.flush()


@contextlib.contextmanager
def _restored(
    checkpoint: str | None, saver: Any, initializer: Any, local_init_op: Any, master: str = ""
) -> Iterator[Any]:
    """A session of the default graph with a checkpoint's values, whose queues are being filled."""
    with tf.Session(master) as session:
        if checkpoint is None:
            session.run(initializer)
        elif saver is not None:
            tf.logging.info("Loading model from checkpoint: %s.", checkpoint)
            saver.restore(session, checkpoint)
        session.run(local_init_op)
        coordinator = tf.train.Coordinator()
        threads = []
        if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
            threads = tf.train.start_queue_runners(session, coordinator)
        try:
            yield session
        finally:
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=120, ignore_live_threads=True)


def run_feeds_iter(
    output_dict: Mapping[str, Any], feed_dicts: Iterable[Any], restore_checkpoint_path: str | None = None
) -> Iterator[dict[str, Any]]:
    """The outputs for each feed in turn, of one session of the default graph.

    Args:
        output_dict: tensors by name.
        feed_dicts: the feeds; None feeds nothing.
        restore_checkpoint_path: the checkpoint to restore; None initialises the variables.

    Raises ValueError without outputs.
    """
    if not output_dict:
        raise ValueError(f"output_dict is invalid: {output_dict}.")
    graph = next(iter(output_dict.values())).graph
    with graph.as_default():
        local_init_op = _local_init_op()
        saver = None if restore_checkpoint_path is None else _saver()
        initializer = tf.global_variables_initializer()
        with _restored(restore_checkpoint_path, saver, initializer, local_init_op) as session:
            for feed in feed_dicts:
                yield session.run(dict(output_dict), feed)


def run_feeds(
    output_dict: Mapping[str, Any], feed_dicts: Iterable[Any], restore_checkpoint_path: str | None = None
) -> list[dict[str, Any]]:
    """What `run_feeds_iter` yields, as a list."""
    return list(run_feeds_iter(output_dict, feed_dicts, restore_checkpoint_path))


def run_n(
    output_dict: Mapping[str, Any],
    feed_dict: Any = None,
    restore_checkpoint_path: str | None = None,
    n: int = 1,
) -> list[dict[str, Any]]:
    """The outputs of `n` runs with the same feed; the arguments are `run_feeds_iter`'s."""
    return run_feeds(output_dict, itertools.repeat(feed_dict, n), restore_checkpoint_path)


def infer(
    restore_checkpoint_path: str | None, output_dict: Mapping[str, Any], feed_dict: Any = None
) -> dict[str, Any]:
    """The outputs of one run; the arguments are `run_feeds_iter`'s."""
    return run_n(output_dict, feed_dict, restore_checkpoint_path)[0]
