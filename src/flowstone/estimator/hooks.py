"""Hooks of Estimators: evaluation within training, and the end at a checkpoint's step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import flowstone as tf
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.estimator_arguments import checked_hooks
from flowstone.estimator.evaluation import StopAfterNEvalsHook
from flowstone.estimator.evaluation_results import write_results
from flowstone.estimator.training_task import TrainingTask, has_several_replicas
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = ["InMemoryEvaluatorHook", "make_stop_at_checkpoint_step_hook"]


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates during training, with the values that the training session has, without a checkpoint.

    Args:
        estimator: the Estimator that trains.
        input_fn: the evaluation's input.
        steps: the evaluation's steps; None: to the input's end.
        hooks: SessionRunHooks of the evaluation.
        name: of the evaluation.
        every_n_iter: the steps between two evaluations; ValueError if not positive.
    """

    def __init__(
        self, estimator: Estimator, input_fn: Callable[..., Any], steps: int | None = None,
        hooks: Iterable[Any] | None = None, name: str | None = None, every_n_iter: int = 100,
    ) -> None:  # fmt: skip
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if estimator.config.num_ps_replicas > 0 or estimator.config.num_worker_replicas > 1:
            raise ValueError("InMemoryEvaluatorHook supports only a single process")
        if has_several_replicas(estimator.config.train_distribute):
            raise ValueError("InMemoryEvaluatorHook supports no strategy of several replicas")
        self._estimator, self._input_fn, self._name = estimator, input_fn, name
        self._steps, self._hooks = steps, checked_hooks(hooks)
        self._every_n_iter = every_n_iter
        self._timer = tf.train.SecondOrStepTimer(every_steps=every_n_iter)
        self._iter_count = 0

    def begin(self) -> None:
        """Builds the evaluation's graph."""
        self._timer.reset()
        self._iter_count = 0
        self._graph = tf.Graph()
        with self._graph.as_default():
            spec, hooks, updates, results = self._estimator._build_evaluation(
                self._input_fn, "in memory", TrainingTask(self._estimator.config, None)
            )
            self._scaffold, self._updates, self._results = spec.scaffold, updates, results
            self._input_hooks = [*hooks, *spec.evaluation_hooks]
            variables = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
            self._names = [variable.op.name for variable in variables]
            self._values = [tf.placeholder(each.dtype.base_dtype, each.shape) for each in variables]
            pairs = zip(variables, self._values, strict=True)
            self._assign = tf.group(*[tf.assign(variable, value) for variable, value in pairs])

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Evaluates what training begins with; ValueError where it lacks one of the variables."""
        del coord
        found = {each.op.name: each for each in session.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)}
        missing = [name for name in self._names if name not in found]
        if missing:
            raise ValueError(f"the training graph lacks variables of the evaluation: {missing}")
        self._trained = [found[name] for name in self._names]
        self._evaluate(session)

    def _evaluate(self, session: Any) -> None:
        values = session.run(self._trained)
        feed = dict(zip(self._values, values, strict=True))
        with self._graph.as_default():
            hooks = [*self._hooks, *self._input_hooks]
            scaffold = tf.train.Scaffold(
                init_op=self._assign,
                init_feed_dict=feed,
                local_init_op=self._scaffold.local_init_op,
                saver=self._scaffold.saver,
            )
            if self._steps is not None:
                hooks.append(StopAfterNEvalsHook(self._steps))
            results = _evaluated(scaffold, self._updates, self._results, hooks)
        write_results(self._estimator.eval_dir(self._name), results, results["global_step"])
        self._timer.update_last_triggered_step(self._iter_count)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Evaluates if it is time."""
        del run_values
        self._iter_count += 1
        if self._timer.should_trigger_for_step(self._iter_count):
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        """Evaluates what training ended with."""
        self._evaluate(session)


def _evaluated(scaffold: Any, updates: Any, results: Any, hooks: list[Any]) -> Any:
    """The results of an evaluation, which leaves the graph as it is."""
    final = tf.train.FinalOpsHook(results)
    step = tf.get_collection(tf.GraphKeys.EVAL_STEP)
    counted = tf.assign_add(step[0], 1) if step else None
    if counted is None:
        local = tf.get_variable(
            "eval_step", [], tf.int64, tf.zeros_initializer(), trainable=False,
            collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.EVAL_STEP],
        )  # fmt: skip
        counted = tf.assign_add(local, 1)
    for hook in hooks:
        if hasattr(hook, "_set_evals_completed_tensor"):
            hook._set_evals_completed_tensor(counted)
    creator = tf.train.ChiefSessionCreator(scaffold)
    with tf.train.MonitoredSession(creator, [*hooks, final]) as session:
        while not session.should_stop():
            session.run([updates, counted])
    return final.final_ops_values


class _StopAtCheckpointStepHook(SessionRunHook):
    """Ends training when the latest checkpoint is of a step or later."""

    def __init__(self, model_dir: Any, last_step: int, wait_secs: float) -> None:
        if last_step is None:
            raise ValueError("last_step must be specified.")
        if model_dir is None:
            raise ValueError("model_dir must be specified.")
        self._model_dir, self._last_step, self._wait_secs = model_dir, last_step, wait_secs

    def begin(self) -> None:
        self._global_step_tensor = tf.train.get_global_step()
        if self._global_step_tensor is None:
            raise RuntimeError("Global step should be created to use StopAtCheckpointStepHook.")

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.train.SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.results + 1 < self._last_step:
            return
        if run_context.session.run(self._global_step_tensor) < self._last_step:
            return
        latest = tf.train.latest_checkpoint(self._model_dir)
        if latest and int(tf.train.load_variable(latest, tf.GraphKeys.GLOBAL_STEP)) >= self._last_step:
            run_context.request_stop()
        else:
            time.sleep(self._wait_secs)


def make_stop_at_checkpoint_step_hook(
    estimator: Any, last_step: int, wait_after_file_check_secs: float = 30
) -> Any:
    """A hook that ends training at a step, for a worker once the chief has saved it.

    Args:
        estimator: the Estimator; `last_step`: the step.
        wait_after_file_check_secs: how long to wait before looking for the checkpoint again.
    """
    if estimator.config.is_chief:
        return tf.train.StopAtStepHook(last_step=last_step)
    return _StopAtCheckpointStepHook(estimator.model_dir, last_step, wait_after_file_check_secs)
