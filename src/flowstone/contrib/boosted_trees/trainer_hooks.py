"""`tf.contrib.boosted_trees.estimator_batch.trainer_hooks`: hooks of the training of boosted trees."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.training.hooks.session_run_hook import SessionRunHook

__all__ = [
    "FeatureImportanceSummarySaver",
    "FeedFnHook",
    "StopAfterNTrees",
    "SwitchTrainOp",
]


class FeatureImportanceSummarySaver(SessionRunHook):
    """Writes how important each feature is, from the tensors of the collection of that name.

    Args:
        model_dir: the folder of logs.
        every_n_steps: how often.
    """

    def __init__(self, model_dir: str, every_n_steps: int = 1) -> None:
        self._model_dir, self._every_n_steps = model_dir, every_n_steps
        self._last_triggered_step: int | None = None

    def begin(self) -> None:
        """Finds the global step, and the tensors; RuntimeError without a global step."""
        self._global_step_tensor = tf.train.get_global_step()
        if self._global_step_tensor is None:
            raise RuntimeError("Global step should be created to use FeatureImportanceSummarySaver.")
        graph = tf.get_default_graph()
        self._feature_names_tensor = graph.get_tensor_by_name("gbdt/feature_names:0")
        self._feature_usage_counts_tensor = graph.get_tensor_by_name("gbdt/feature_usage_counts:0")
        self._feature_gains_tensor = graph.get_tensor_by_name("gbdt/feature_gains:0")

    def before_run(self, run_context: Any) -> Any:
        """Asks for names, counts and gains."""
        del run_context
        return tf.train.SessionRunArgs(
            [
                self._global_step_tensor,
                self._feature_names_tensor,
                self._feature_usage_counts_tensor,
                self._feature_gains_tensor,
            ]
        )

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Writes a summary of each feature into a folder of its own."""
        del run_context
        step, names, counts, gains = run_values.results
        last = self._last_triggered_step
        if last is not None and step < last + self._every_n_steps:
            return
        self._last_triggered_step = step
        for name, count, gain in zip(names, counts, gains, strict=True):
            folder = os.path.join(self._model_dir, name.decode() if isinstance(name, bytes) else str(name))
            values = [
                tf.Summary.Value(tag="feature_importance/usage_counts", simple_value=count),
                tf.Summary.Value(tag="feature_importance/usage_fraction", simple_value=count / counts.sum()),
                tf.Summary.Value(tag="feature_importance/gains", simple_value=gain),
                tf.Summary.Value(tag="feature_importance/gains_fraction", simple_value=gain / gains.sum()),
            ]
            with tf.summary.FileWriter(folder) as writer:
                writer.add_summary(tf.Summary(value=values), step)


class FeedFnHook(SessionRunHook):
    """Feeds each step what a function returns, a dict of placeholders."""

    def __init__(self, feed_fn: Callable[[], Mapping[Any, Any]]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: Any) -> Any:
        """What is fed."""
        del run_context
        return tf.train.SessionRunArgs(fetches=None, feed_dict=self.feed_fn())


class StopAfterNTrees(SessionRunHook):
    """Stops once there are enough trees, or twice as many were attempted.

    Args:
        n: how many trees.
        num_attempted_trees_tensor, num_finalized_trees_tensor: how many there are.
        override_global_step_value: what the global step becomes at the end, if a number.
    """

    def __init__(
        self,
        n: int,
        num_attempted_trees_tensor: Any,
        num_finalized_trees_tensor: Any,
        override_global_step_value: int | None = None,
    ) -> None:
        self._num_trees = n
        self._num_attempted_trees_tensor = num_attempted_trees_tensor
        self._num_finalized_trees_tensor = num_finalized_trees_tensor
        self._override_global_step_value = override_global_step_value
        self._set_step: Any = None

    def begin(self) -> None:
        """Makes what overrides the global step; RuntimeError without one."""
        if self._override_global_step_value is None:
            return
        step = tf.train.get_global_step()
        if step is None:
            raise RuntimeError("Global step should be created to override it.")
        self._set_step = tf.assign(step, tf.cast(self._override_global_step_value, step.dtype.base_dtype))

    def before_run(self, run_context: Any) -> Any:
        """Asks for both numbers."""
        del run_context
        return tf.train.SessionRunArgs(
            {
                "num_attempted_trees": self._num_attempted_trees_tensor,
                "num_finalized_trees": self._num_finalized_trees_tensor,
            }
        )

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops if there are enough."""
        attempted = run_values.results["num_attempted_trees"]
        finalized = run_values.results["num_finalized_trees"]
        if finalized >= self._num_trees or attempted > 2 * self._num_trees:
            tf.logging.info("Requesting stop since we have reached %d trees.", finalized)
            if self._set_step is not None:
                tf.logging.info("Overriding global steps value.")
                run_context.session.run(self._set_step)
            run_context.request_stop()


class SwitchTrainOp(SessionRunHook):
    """Runs another operation once a number of steps were trained.

    Args:
        first_train_op: what is run at first.
        train_steps: after how many steps `second_train_op` is run instead.
    """

    def __init__(self, first_train_op: Any, train_steps: int, second_train_op: Any) -> None:
        self._first_train_op, self._second_train_op = first_train_op, second_train_op
        self._train_steps = train_steps

    def begin(self) -> None:
        """Finds the global step; RuntimeError without one."""
        self._global_step_tensor = tf.train.get_global_step()
        if self._global_step_tensor is None:
            raise RuntimeError("Global step should be created to use SwitchTrainOp.")
        self._current_train_op = self._first_train_op

    def before_run(self, run_context: Any) -> Any:
        """The operation of this step."""
        del run_context
        return tf.train.SessionRunArgs({"step": self._global_step_tensor, "op": self._current_train_op})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Changes over when it is time."""
        del run_context
        if run_values.results["step"] + 1 >= self._train_steps:
            self._current_train_op = self._second_train_op
