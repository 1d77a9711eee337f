"""`Estimator`: a model given by a function, which is trained, evaluated, used and exported.

Each of these builds a graph of its own: the input function's tensors go into the model function, which
returns an `EstimatorSpec`. Values pass from one to the next through the checkpoints in `model_dir`.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import flowstone as tf
from flowstone.estimator.estimator_arguments import (
    check_model_fn,
    check_steps,
    checked_hooks,
    checked_listeners,
)
from flowstone.estimator.estimator_config import (
    maybe_overwrite_model_dir_and_session_config,
    parameter_servers,
)
from flowstone.estimator.evaluation import StopAfterNEvalsHook, evaluate_once, with_own_local_variables
from flowstone.estimator.evaluation_results import write_checkpoint_path, write_results
from flowstone.estimator.function_arguments import argument_names
from flowstone.estimator.input_reading import parse_input_fn_result
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.estimator.model_fn import EstimatorSpec
from flowstone.estimator.outputs import chosen, examples, split_metrics
from flowstone.estimator.run_config import RunConfig
from flowstone.estimator.saved_model_export import export_all_modes
from flowstone.estimator.training_session import run_training
from flowstone.estimator.training_task import TrainingTask, evaluation_task, input_context
from flowstone.estimator.warm_start_settings import VocabInfo, WarmStartSettings, warm_start_settings
from flowstone.training.hooks.global_step_reading import get_or_create_global_step_read

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Estimator", "VocabInfo", "WarmStartSettings", "maybe_overwrite_model_dir_and_session_config"]


class Estimator:
    """A model that a function describes.

    Args:
        model_fn: a function of `features` and any of `labels`, `mode`, `params`, `config` that returns an
            EstimatorSpec.
        model_dir: the folder of checkpoints and logs; that of `config`, or a temporary one, if None.
        config: a RunConfig.
        params: a dict that `model_fn` gets.
        warm_start_from: a checkpoint's path or WarmStartSettings, from which the first training begins.

    Raises ValueError for a function with other arguments, and for contradicting folders.
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: dict[str, Any] | None = None,
        warm_start_from: Any = None,
    ) -> None:
        Estimator._assert_members_are_not_overridden(self)
        self._config = maybe_overwrite_model_dir_and_session_config(config, model_dir)
        self._model_dir = self._config.model_dir
        self._session_config = self._config.session_config
        tf.logging.info("Using config: %s", str(vars(self._config)))
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        check_model_fn(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})
        self._warm_start_settings = warm_start_settings(warm_start_from)
        self._device_fn = self._config.device_fn or parameter_servers(self._config)

    @property
    def model_dir(self) -> Any:
        """The folder of checkpoints and logs."""
        return self._model_dir

    @property
    def config(self) -> RunConfig:
        """A copy of the RunConfig."""
        return copy.copy(self._config)

    @property
    def params(self) -> Any:
        """A copy of the parameters."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The model function, as a function of (features, labels, mode, config)."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return public_model_fn

    def get_variable_value(self, name: str) -> Any:
        """The value of a variable in the latest checkpoint, an array; ValueError without a checkpoint."""
        self._demand_checkpoint()
        return tf.train.load_variable(self.model_dir, name)

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the latest checkpoint; ValueError without a checkpoint."""
        self._demand_checkpoint()
        return [name for name, _ in tf.train.list_variables(self.model_dir)]

    def _latest_or_none(self, purpose: str) -> str | None:
        """The latest checkpoint; without one says that the initial values are used."""
        found = self.latest_checkpoint()
        if not found:
            text = "Could not find trained model in model_dir: %s, running initialization to %s."
            tf.logging.info(text, self._model_dir, purpose)
        return found

    def _demand_checkpoint(self) -> None:
        if not self.latest_checkpoint():
            raise ValueError(f"Could not find trained model in model_dir: {self._model_dir}.")

    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint; None if there is none."""
        found: str | None = tf.train.latest_checkpoint(self.model_dir)
        return found

    def eval_dir(self, name: str | None = None) -> str:
        """The folder of the logs of the evaluation of this name."""
        return os.path.join(self._model_dir, f"eval_{name}" if name else "eval")

    # ---- training

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Iterable[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Iterable[Any] | None = None,
    ) -> Self:
        """Trains until the input ends, or for a number of steps; goes on from the latest checkpoint.

        Args:
            input_fn: returns a Dataset of (features, labels), the pair, or features.
            hooks: SessionRunHooks.
            steps: how many further steps; `max_steps`: the global step to end at. One of them, or none.
            saving_listeners: CheckpointSaverListeners, called around every checkpoint.

        Returns the Estimator. Raises ValueError for numbers of steps that are not positive or both given.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        check_steps(steps, "steps")
        check_steps(max_steps, "max_steps")
        if max_steps is not None and _saved_step(self._model_dir) >= max_steps:
            tf.logging.info("Skipping training since max_steps has already saved.")
            return self
        all_hooks = checked_hooks(hooks)
        if steps is not None or max_steps is not None:
            all_hooks.append(tf.train.StopAtStepHook(steps, max_steps))
        loss = self._train_model(input_fn, all_hooks, checked_listeners(saving_listeners))
        tf.logging.info("Loss for final step: %s.", loss)
        return self

    def _train_model(self, input_fn: Callable[..., Any], hooks: list[Any], listeners: list[Any]) -> Any:
        task = TrainingTask(self._config, self._session_config, self._config.train_distribute)
        with tf.Graph().as_default() as graph, graph.device(self._device_fn), task.scope():
            step = self._begin_graph(graph)
            get_or_create_global_step_read(graph)
            features, labels, input_hooks = self._get_features_and_labels(input_fn, ModeKeys.TRAIN)
            spec = task.replica(self._call_model_fn, features, labels, ModeKeys.TRAIN, self.config)
            self._maybe_warm_start(self.latest_checkpoint())
            loss = run_training(spec, [*input_hooks, *hooks], step, listeners, self._config, task)
        if loss is None:
            tf.logging.warning(
                "Training with estimator made no steps. Perhaps input is empty or misspecified."
            )
        return loss

    def _begin_graph(self, graph: tf.Graph) -> Any:
        """Sets the seed and makes the global step."""
        tf.set_random_seed(self._config.tf_random_seed)
        return self._create_and_assert_global_step(graph)

    def _create_global_step(self, graph: tf.Graph) -> Any:
        """Makes the global step; a subclass may make another one of integers."""
        return tf.train.create_global_step(graph)

    def _create_and_assert_global_step(self, graph: tf.Graph) -> Any:
        step = self._create_global_step(graph)
        if step is not tf.train.get_global_step() or not step.dtype.is_integer:
            raise ValueError("_create_global_step must make the graph's global step, of integers")
        return step

    def _maybe_warm_start(self, checkpoint_path: str | None) -> None:
        if self._warm_start_settings and not checkpoint_path:
            tf.logging.info("Warm-starting with WarmStartSettings: %s", (self._warm_start_settings,))
            tf.train.warm_start(*self._warm_start_settings)

    # ---- inputs and model

    def _get_features_and_labels(self, input_fn: Callable[..., Any], mode: str) -> tuple[Any, Any, list[Any]]:
        return parse_input_fn_result(self._call_input_fn(input_fn, mode))

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        accepted = argument_names(input_fn)
        offered = {"mode": mode, "params": self.params, "config": self.config, **input_context()}
        with tf.device("/cpu:0"):
            return input_fn(**{name: value for name, value in offered.items() if name in accepted})

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        accepted = argument_names(self._model_fn)
        offered = {"labels": labels, "mode": mode, "params": self.params, "config": config}
        if "labels" not in accepted and labels is not None:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        tf.logging.info("Calling model_fn.")
        arguments = {name: value for name, value in offered.items() if name in accepted}
        spec = self._model_fn(features=features, **arguments)
        tf.logging.info("Done calling model_fn.")
        if not isinstance(spec, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return spec

    # ---- evaluation

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Iterable[Any] | None = None,
        checkpoint_path: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluates a checkpoint until the input ends, or for a number of steps.

        Args:
            input_fn, hooks: see `train`.
            steps: how many steps; None: to the input's end.
            checkpoint_path: the checkpoint; the latest if None (the initial values if there is none).
            name: of the evaluation, whose results are logged in a folder of this name.

        Returns the metrics by name, with "loss" and "global_step"; ValueError for steps below 1.
        """
        check_steps(steps, "steps")
        all_hooks = checked_hooks(hooks)
        if steps is not None:
            all_hooks.append(StopAfterNEvalsHook(steps))
        checkpoint_path = checkpoint_path or self._latest_or_none("evaluate")
        task = evaluation_task(self._config, self._session_config)
        with tf.Graph().as_default() as graph, graph.device(self._device_fn):
            with task.scope():
                spec, hooks, updates, results = self._build_evaluation(input_fn, checkpoint_path, task)
            values = evaluate_once(
                checkpoint_path,
                self._config.evaluation_master,
                with_own_local_variables(spec.scaffold),
                updates,
                final_ops=results,
                hooks=[*hooks, *all_hooks, *spec.evaluation_hooks],
                config=task.session_config,
            )
            step = values["global_step"]
            write_results(self.eval_dir(name), values, step)
            if checkpoint_path:
                write_checkpoint_path(self.eval_dir(name), checkpoint_path, step)
        return values  # type: ignore[no-any-return]

    def _build_evaluation(
        self, input_fn: Callable[..., Any], checkpoint_path: Any, task: TrainingTask
    ) -> tuple[EstimatorSpec, list[Any], Any, dict[str, Any]]:
        """The spec, the input's hooks, the operation of a step, and the results' tensors."""
        step = self._begin_graph(tf.get_default_graph())
        features, labels, input_hooks = self._get_features_and_labels(input_fn, ModeKeys.EVAL)
        spec = task.replica(self._call_model_fn, features, labels, ModeKeys.EVAL, self.config)
        metrics = dict(spec.eval_metric_ops)
        for taken in ("loss", "global_step"):
            if taken in metrics:
                raise ValueError(
                    f'Metric with name "{taken}" is not allowed, because Estimator already defines a default '
                    "metric with the same name."
                )
        metrics["loss"] = task.mean(spec.loss)
        self._maybe_warm_start(checkpoint_path)
        updates, results = split_metrics(metrics)
        results["global_step"] = step
        return spec, input_hooks, updates, results

    # ---- prediction

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Iterable[Any] | None = None,
        checkpoint_path: Any = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yields the predictions for each example, or each batch, of the input.

        Args:
            input_fn, hooks: see `train`; labels are not used.
            predict_keys: the names of the predictions to yield; all if None.
            checkpoint_path: see `evaluate`; `yield_single_examples`: examples, not batches.

        ValueError for unknown keys, and for predictions whose first axes differ.
        """
        all_hooks = checked_hooks(hooks)
        checkpoint_path = checkpoint_path or self._latest_or_none("predict")
        with tf.Graph().as_default() as graph, graph.device(self._device_fn):
            self._begin_graph(graph)
            features, input_hooks = self._get_features_to_predict(input_fn)
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT, self.config)
            self._maybe_warm_start(checkpoint_path)
            predictions = chosen(spec.predictions, predict_keys)
            creator = tf.train.ChiefSessionCreator(
                checkpoint_filename_with_path=checkpoint_path,
                master=self._config.master,
                scaffold=spec.scaffold,
                config=self._session_config,
            )
            all_hooks = [*input_hooks, *all_hooks, *spec.prediction_hooks]
            with tf.train.MonitoredSession(creator, all_hooks) as session:
                while not session.should_stop():
                    values = session.run(predictions)
                    if yield_single_examples:
                        yield from examples(values)
                    else:
                        yield values

    def _get_features_to_predict(self, input_fn: Callable[..., Any]) -> tuple[Any, list[Any]]:
        result = self._call_input_fn(input_fn, ModeKeys.PREDICT)
        ends = isinstance(result, tf.data.Dataset) or tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        if not ends and not any(
            op.type == "IteratorGetNext" for op in tf.get_default_graph().get_operations()
        ):
            tf.logging.warning(
                "Input graph does not use tf.data.Dataset or contain a QueueRunner. That means predict "
                "yields "
                "forever. This is probably a mistake."
            )
        if isinstance(result, (list, tuple)):
            return result[0], []
        features, _, hooks = parse_input_fn_result(result)
        return features, hooks

    # ---- export

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Exports the model for serving as a SavedModel, in a new folder of `export_dir_base`.

        Args:
            serving_input_receiver_fn: returns a ServingInputReceiver.
            assets_extra: files by the paths that they get below ``assets.extra``.
            as_text: whether the graph is written as text.
            checkpoint_path: the checkpoint; the latest if None.
            strip_default_attrs: whether attributes with default values are left out.

        Returns the folder's path. Raises ValueError without a receiver function or a checkpoint.
        """
        return self._export(
            export_dir_base, {ModeKeys.PREDICT: serving_input_receiver_fn}, assets_extra, as_text,
            checkpoint_path, strip_default_attrs,
        )  # fmt: skip

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """As `export_savedmodel`, without default attributes, in any one mode."""
        receivers = {experimental_mode: serving_input_receiver_fn}
        return self._export(export_dir_base, receivers, assets_extra, as_text, checkpoint_path, True)

    def experimental_export_all_saved_models(
        self,
        export_dir_base: Any,
        input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
    ) -> bytes:
        """Exports the model in several modes, each with its own tags; the receiver functions by mode."""
        return self._export(
            export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path, True
        )

    def _export(
        self,
        folder: Any,
        receivers: Mapping[str, Any],
        extra: Any,
        as_text: bool,
        checkpoint: Any,
        strip: bool,
    ) -> bytes:
        if any(receiver is None for receiver in receivers.values()):
            raise ValueError("An input_receiver_fn must be defined.")
        checkpoint = checkpoint or self.latest_checkpoint()
        if not checkpoint and self._warm_start_settings:
            start = self._warm_start_settings.ckpt_to_initialize_from
            checkpoint = tf.train.latest_checkpoint(start) if tf.gfile.IsDirectory(start) else start
        if not checkpoint:
            raise ValueError(f"Couldn't find trained model at {self._model_dir}.")
        return export_all_modes(
            self._build_export, receivers, folder, checkpoint, self._session_config, extra, as_text, strip
        )

    def _build_export(self, receiver_fn: Callable[[], Any], mode: str) -> tuple[Any, EstimatorSpec]:
        self._begin_graph(tf.get_default_graph())
        receiver = receiver_fn()
        labels = getattr(receiver, "labels", None)
        return receiver, self._call_model_fn(receiver.features, labels, mode, self.config)

    @staticmethod
    def _assert_members_are_not_overridden(self: Estimator) -> None:
        """ValueError if a subclass has another method of an Estimator's name; libraries replace this."""
        for kind in type(self).__mro__:
            if kind is Estimator:
                return
            if kind.__module__.startswith("flowstone."):
                continue
            taken = {name for name in vars(Estimator) if not name.startswith("_")} & set(vars(kind))
            if taken:
                raise ValueError(
                    f"Subclasses of Estimator cannot override members of Estimator. {type(self)} does "
                    f"override {sorted(taken)}"
                )


def _saved_step(model_dir: str) -> int:
    try:
        return int(tf.train.load_variable(model_dir, tf.GraphKeys.GLOBAL_STEP))
    except (tf.errors.NotFoundError, ValueError):
        return 0
