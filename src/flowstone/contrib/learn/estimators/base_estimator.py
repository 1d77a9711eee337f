"""`BaseEstimator`: training, evaluation and prediction on arrays or on input functions.

Each method builds a graph of its own, as those of `tf.estimator` do, and runs it as they do; values pass
between them through the checkpoints in `model_dir`.
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import flowstone as tf
from flowstone.contrib.learn.constants import NotFittedError
from flowstone.contrib.learn.estimators._sklearn import _BaseEstimator
from flowstone.contrib.learn.estimators.input_functions import fed, input_fn_of, joined, verify_input_args
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps
from flowstone.contrib.learn.estimators.run_config import RunConfig
from flowstone.contrib.learn.estimators.tensor_signature import (
    create_example_parser_from_signatures,
    create_signatures,
    tensors_compatible,
)
from flowstone.contrib.learn.evaluable import Evaluable
from flowstone.contrib.learn.trainable import Trainable
from flowstone.contrib.learn.utils import export as export_lib
from flowstone.estimator.estimator_config import parameter_servers
from flowstone.estimator.evaluation import StopAfterNEvalsHook, evaluate_once
from flowstone.estimator.evaluation_results import write_results
from flowstone.estimator.outputs import examples, split_metrics
from flowstone.estimator.training_session import run_training
from flowstone.estimator.training_task import TrainingTask
from flowstone.training.hooks.global_step_reading import get_or_create_global_step_read

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["BaseEstimator"]


class BaseEstimator(_BaseEstimator, Evaluable, Trainable):
    """What all Estimators share; a subclass has `_get_train_ops`, `_get_eval_ops` and `_get_predict_ops`.

    Args:
        model_dir: the folder of checkpoints and logs; that of `config`, or a temporary one, if None.
        config: a RunConfig.

    Raises ValueError for two different folders.
    """

    def __init__(self, model_dir: Any = None, config: Any = None) -> None:
        config = RunConfig() if config is None else config
        self._session_config = config.session_config or tf.ConfigProto(allow_soft_placement=True)
        if model_dir is not None and config.model_dir not in (None, model_dir):
            raise ValueError(
                "model_dir are set both in constructor and RunConfig, but with different values. In "
                f"constructor: '{model_dir}', in RunConfig: '{config.model_dir}' "
            )
        self._model_dir = model_dir or config.model_dir
        if self._model_dir is None:
            self._model_dir = tempfile.mkdtemp()
            tf.logging.warning("Using temporary folder as model directory: %s", self._model_dir)
        self._model_dir = os.fspath(self._model_dir)
        self._config = config if config.model_dir else config.replace(model_dir=self._model_dir)
        tf.logging.info("Using config: %s", str(vars(self._config)))
        self._device_fn = self._config.device_fn or parameter_servers(self._config)
        self._features_info: Any = None
        self._labels_info: Any = None
        self._graph: Any = None

    @property
    def config(self) -> Any:
        """A copy of the RunConfig."""
        return copy.deepcopy(self._config)

    @property
    def model_dir(self) -> str:
        """The folder of checkpoints and logs."""
        return self._model_dir  # type: ignore[no-any-return]

    @property
    def model_fn(self) -> Callable[..., ModelFnOps]:
        """The model as a function of (features, labels, mode, config)."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
            return self._call_model_fn(features, labels, mode, config=config)

        return public_model_fn

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the latest checkpoint; ValueError without a checkpoint."""
        return [name for name, _ in tf.train.list_variables(self.model_dir)]

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the latest checkpoint, an array; ValueError without a checkpoint."""
        return tf.train.load_variable(self.model_dir, name)

    # ---- training

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Any = None,
        max_steps: int | None = None,
    ) -> Self:
        """Trains; goes on from the latest checkpoint.

        Args:
            x, y: arrays of examples and their labels, or dicts of arrays; `batch_size`: how many of them a
                step takes, all if None.
            input_fn: in their place, a function that returns tensors: features and labels.
            steps: how many further steps; `max_steps`: the global step to end at; None: to the input's end.
            monitors: monitors and SessionRunHooks.

        Returns the Estimator. Raises ValueError unless either x or input_fn is given, and for both numbers.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        verify_input_args(x, y, input_fn, None, batch_size)
        if x is not None:
            feed, input_fn = fed(x, y, batch_size, shuffle=True, epochs=None)
            monitors = [*feed, *(monitors or ())]
        if max_steps is not None and _saved_step(self._model_dir) >= max_steps:
            tf.logging.info("Skipping training since max_steps has already saved.")
            return self
        hooks = _as_hooks(monitors, self)
        if steps is not None or max_steps is not None:
            hooks.append(tf.train.StopAtStepHook(steps, max_steps))
        loss = self._train_model(input_fn, hooks)
        tf.logging.info("Loss for final step: %s.", loss)
        return self

    def partial_fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: int | None = 1,
        batch_size: int | None = None,
        monitors: Any = None,
    ) -> Self:
        """Trains on one batch of examples; see `fit`."""
        tf.logging.warning(
            "The current implementation of partial_fit is not optimized for use in a loop. Consider using "
            "fit() "
            "instead."
        )
        return self.fit(x, y, input_fn, steps, batch_size, monitors)

    def _train_model(self, input_fn: Callable[[], Any], hooks: list[Any]) -> Any:
        self._graph = tf.Graph()
        with self._graph.as_default() as graph, graph.device(self._device_fn):
            tf.set_random_seed(self._config.tf_random_seed)
            step = tf.train.create_global_step(graph)
            features, labels = input_fn()
            self._check_inputs(features, labels)
            get_or_create_global_step_read(graph)
            ops = self._get_train_ops(features, labels)
            spec = ops._replace(scaffold=ops.scaffold or tf.train.Scaffold())
            task = TrainingTask(self._config, self._session_config)
            return run_training(spec, hooks, step, [], self._config, task, summarises=False)

    def _check_inputs(self, features: Any, labels: Any) -> None:
        """Remembers types and shapes; ValueError if they are not those of earlier inputs."""
        for kind, tensors in (("Features", features), ("Labels", labels)):
            name = f"_{kind.lower()}_info"
            known = getattr(self, name)
            if known is None:
                setattr(self, name, create_signatures(tensors))
            elif not tensors_compatible(tensors, known):
                raise ValueError(
                    f"{kind} are incompatible with given information. Given {kind.lower()}: {tensors}, "
                    f"required "
                    f"signatures: {known}."
                )

    # ---- evaluation

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
        checkpoint_path: Any = None,
        hooks: Iterable[Any] | None = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """Evaluates a checkpoint.

        Args:
            x, y, batch_size, input_fn: see `fit`; arrays are gone through once.
            feed_fn: a function that returns the feeds of a step.
            steps: how many steps; None: to the input's end.
            metrics: further metrics, MetricSpecs by name.
            name: of the evaluation, whose results are logged in a folder of this name.
            checkpoint_path: the checkpoint; the latest if None.
            hooks: SessionRunHooks; `log_progress`: whether progress is logged.

        Returns the metrics by name, with "loss" and "global_step". Raises NotFittedError without a
        checkpoint, ValueError unless either x or input_fn is given.
        """
        verify_input_args(x, y, input_fn, feed_fn, batch_size)
        input_fn, feed_fn = input_fn_of(x, y, input_fn, feed_fn, batch_size)
        values, step = self._evaluate_model(
            input_fn, steps, feed_fn, metrics, name or "", checkpoint_path, hooks, log_progress
        )
        values["global_step"] = step
        return values

    def _evaluate_model(
        self,
        input_fn: Callable[[], Any],
        steps: int | None,
        feed_fn: Any = None,
        metrics: Any = None,
        name: str = "",
        checkpoint_path: Any = None,
        hooks: Iterable[Any] | None = None,
        log_progress: bool = True,
    ) -> tuple[dict[str, Any], Any]:
        checkpoint_path = self._checkpoint(checkpoint_path)
        folder = os.path.join(self._model_dir, f"eval_{name}" if name else "eval")
        all_hooks = list(hooks or ())
        if feed_fn:
            all_hooks.append(tf.train.FeedFnHook(feed_fn))
        if steps:
            all_hooks.append(StopAfterNEvalsHook(steps, log_progress))
        with tf.Graph().as_default() as graph, graph.device(self._device_fn):
            tf.set_random_seed(self._config.tf_random_seed)
            step = tf.train.create_global_step(graph)
            features, labels = input_fn()
            self._check_inputs(features, labels)
            ops = self._get_eval_ops(features, labels, metrics)
            updates, results = _split_metrics(ops.eval_metric_ops)
            values = evaluate_once(
                checkpoint_path,
                self._config.evaluation_master,
                ops.scaffold,
                updates,
                final_ops={**results, "global_step": step},
                hooks=all_hooks,
                config=self._session_config,
            )
        found = values.pop("global_step")
        write_results(folder, {**values, "global_step": found}, found)
        return values, found

    def _checkpoint(self, path: Any = None) -> Any:
        """The path, or the latest checkpoint; NotFittedError without one."""
        path = path or tf.train.latest_checkpoint(self._model_dir)
        if not path:
            raise NotFittedError(f"Couldn't find trained model at {self._model_dir}.")
        return path

    # ---- prediction

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Iterable[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The predictions for all examples.

        Args:
            x, batch_size, input_fn: see `fit`. The tensors of an input function without queues are taken
                once.
            outputs: the names of predictions; all if None.
            as_iterable: whether they come one by one; otherwise as arrays. `iterate_batches`: batch by batch.

        Raises NotFittedError without a checkpoint, ValueError for unknown names, and unless either x or
        input_fn is given.
        """
        verify_input_args(x, None, input_fn, None, batch_size)
        input_fn, feed_fn = input_fn_of(x, None, input_fn, None, batch_size)
        return self._infer_model(input_fn, feed_fn, outputs, as_iterable, iterate_batches)

    def _infer_model(
        self,
        input_fn: Callable[[], Any],
        feed_fn: Any = None,
        outputs: Iterable[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        checkpoint_path = self._checkpoint()
        batches = self._predicted(input_fn, feed_fn, outputs, checkpoint_path)
        next(batches)  # builds the graph: errors come now, not when the first example is asked for
        if not as_iterable:
            return joined(list(batches))
        return batches if iterate_batches else (each for batch in batches for each in examples(batch))

    def _predicted(
        self, input_fn: Callable[[], Any], feed_fn: Any, outputs: Any, checkpoint_path: Any
    ) -> Iterator[Any]:
        """Yields None, when the graph is built, then the predictions of each batch."""
        graph = tf.Graph()
        with graph.as_default(), graph.device(self._device_fn):
            tf.set_random_seed(self._config.tf_random_seed)
            tf.train.create_global_step(graph)
            ops = self._get_predict_ops(self._features_of(input_fn()))
            predictions = _filtered(ops.predictions, outputs)
            is_constant = feed_fn is None and not graph.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        yield None
        with graph.as_default():
            creator = tf.train.ChiefSessionCreator(
                checkpoint_filename_with_path=checkpoint_path,
                scaffold=ops.scaffold,
                config=self._session_config,
            )
            hooks = [tf.train.FeedFnHook(feed_fn)] if feed_fn else []
            with tf.train.MonitoredSession(creator, hooks) as session:
                while not session.should_stop():
                    yield session.run(predictions)
                    if is_constant:
                        return

    @staticmethod
    def _features_of(result: Any) -> Any:
        """The features of an input function's result."""
        return result[0] if isinstance(result, (list, tuple)) else result

    # ---- what a subclass has

    def _get_train_ops(self, features: Any, labels: Any) -> ModelFnOps:
        raise NotImplementedError(f"{type(self).__name__} must define _get_train_ops")

    def _get_eval_ops(self, features: Any, labels: Any, metrics: Any) -> ModelFnOps:
        raise NotImplementedError(f"{type(self).__name__} must define _get_eval_ops")

    def _get_predict_ops(self, features: Any) -> ModelFnOps:
        raise NotImplementedError(f"{type(self).__name__} must define _get_predict_ops")

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, metrics: Any = None, config: Any = None
    ) -> ModelFnOps:
        raise NotImplementedError(f"{type(self).__name__} must define _call_model_fn")

    def _get_feature_ops_from_example(self, examples_batch: Any) -> Any:
        """The features, as those of training were, of serialized examples [batch]."""
        if self._features_info is None:
            raise ValueError("Features information missing, was fit() ever called?")
        return create_example_parser_from_signatures(self._features_info, examples_batch)

    def export(
        self,
        export_dir: Any,
        input_fn: Callable[..., Any] = export_lib._default_input_fn,
        input_feature_key: str | None = None,
        use_deprecated_input_fn: bool = True,
        signature_fn: Callable[..., Any] | None = None,
        prediction_key: str | None = None,
        default_batch_size: int | None = 1,
        exports_to_keep: int | None = None,
        checkpoint_path: Any = None,
    ) -> bytes:
        """Exports the model as a session bundle; `export_savedmodel` is what followed.

        Args:
            input_fn: from (estimator, examples) to features; with `use_deprecated_input_fn` False, a function
                of no arguments that gives features and labels, with the examples under `input_feature_key`.
            prediction_key: which of the predictions is exported; None: all.
            checkpoint_path: the checkpoint; the latest if None.

        Other arguments: see `tf.contrib.learn.utils.export_estimator`.
        """
        return export_lib._export_estimator(
            self, export_dir, signature_fn, input_fn, default_batch_size, exports_to_keep, input_feature_key,
            use_deprecated_input_fn, prediction_key, checkpoint_path,
        )  # fmt: skip


def _as_hooks(monitors: Any, estimator: Any) -> list[Any]:
    """SessionRunHooks in place of monitors."""
    found = list(monitors or ())
    if all(isinstance(each, tf.train.SessionRunHook) for each in found):
        return found
    return list(tf.contrib.learn.monitors.replace_monitors_with_hooks(found, estimator))


def _split_metrics(metrics: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The updates of metrics, pairs of value and update, and the values; a tensor alone is its value."""
    pairs = {name: metric for name, metric in metrics.items() if isinstance(metric, tuple)}
    updates, values = split_metrics(pairs)
    return updates, {**values, **{name: metric for name, metric in metrics.items() if name not in pairs}}


def _saved_step(model_dir: str) -> int:
    try:
        return int(tf.train.load_variable(model_dir, tf.GraphKeys.GLOBAL_STEP))
    except (tf.errors.NotFoundError, ValueError):
        return 0


def _filtered(predictions: Any, outputs: Any) -> Any:
    """The predictions of these names; ValueError if there are none."""
    if not outputs:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("outputs argument is not valid in case of non-dict predictions.")
    found = {name: value for name, value in predictions.items() if name in set(outputs)}
    if not found:
        raise ValueError(
            f"Expected to run at least one output from {predictions.keys()}, provided {outputs}."
        )
    return found
