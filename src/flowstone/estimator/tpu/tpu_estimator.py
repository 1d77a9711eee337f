"""`TPUEstimator` on this machine: an Estimator whose functions get batch sizes among their parameters."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.estimator.estimator import Estimator
from flowstone.estimator.function_arguments import argument_names
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.estimator.model_fn import EstimatorSpec
from flowstone.estimator.tpu.host_call import HostCallHook
from flowstone.estimator.tpu.tpu_config import RunConfig

__all__ = ["TPUEstimator", "TPUEstimatorSpec"]

_RESERVED = ("batch_size", "context")
_Fields = namedtuple(
    "_Fields",
    [
        "mode",
        "predictions",
        "loss",
        "train_op",
        "eval_metrics",
        "export_outputs",
        "scaffold_fn",
        "host_call",
        "training_hooks",
        "evaluation_hooks",
        "prediction_hooks",
    ],
)


class TPUEstimatorSpec(_Fields):
    """What a TPUEstimator's model function returns.

    Args:
        eval_metrics: a function that gives metrics by name, and its arguments: a list, or a dict by name.
        scaffold_fn: a function that gives a Scaffold.
        host_call: a function that a TPU's host would call each step, and its arguments: what it gives runs
            with each step of training, evaluation and prediction. Its writers of `tf.contrib.summary` are
            opened before the first one.

    Other arguments: of `tf.estimator.EstimatorSpec`. Raises ValueError for pairs that are none.
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metrics: Any = None,
        export_outputs: Any = None,
        scaffold_fn: Any = None,
        host_call: Any = None,
        training_hooks: Any = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> TPUEstimatorSpec:
        _check_pairs((("eval_metrics", eval_metrics), ("host_call", host_call)))
        hooks = [tuple(each or ()) for each in (training_hooks, evaluation_hooks, prediction_hooks)]
        fields = (mode, predictions, loss, train_op)
        EstimatorSpec(*fields, export_outputs=export_outputs, training_hooks=hooks[0])  # checks them
        return super().__new__(cls, *fields, eval_metrics, export_outputs, scaffold_fn, host_call, *hooks)

    def as_estimator_spec(self) -> EstimatorSpec:
        """The EstimatorSpec with these metrics, and with a hook of each mode that runs the host's call."""
        metrics = None if self.eval_metrics is None else _called(self.eval_metrics)
        hooks = () if self.host_call is None else (HostCallHook(_flat(_called(self.host_call))),)
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=metrics,
            export_outputs=self.export_outputs,
            scaffold=None if self.scaffold_fn is None else self.scaffold_fn(),
            training_hooks=self.training_hooks + hooks,
            evaluation_hooks=self.evaluation_hooks + hooks,
            prediction_hooks=self.prediction_hooks + hooks,
        )


def _check_pairs(pairs: Any) -> None:
    """ValueError for what is no function with its arguments."""
    for name, pair in pairs:
        if pair is None:
            continue
        if not isinstance(pair, (tuple, list)):
            raise ValueError(f"{name} should be tuple or list")
        if len(pair) != 2 or not callable(pair[0]) or not isinstance(pair[1], (tuple, list, dict)):
            raise ValueError(f"{name} should be a function and a list or dict of its arguments")


def _called(pair: Any) -> Any:
    function, arguments = pair
    return function(**arguments) if isinstance(arguments, dict) else function(*arguments)


def _flat(operations: Any) -> list[Any]:
    if operations is None:
        return []
    return list(operations) if isinstance(operations, (list, tuple)) else [operations]


class TPUEstimator(Estimator):
    """An Estimator for a TPU, which runs on this machine's devices whatever `use_tpu` says.

    Args:
        model_fn: returns a TPUEstimatorSpec or an EstimatorSpec.
        model_dir: the folder of checkpoints and logs.
        config: a `tf.estimator.tpu.RunConfig`.
        params: a dict that the functions get, with "batch_size" of the mode; `model_fn` also with "use_tpu",
            which is False.
        use_tpu: whether a TPU was meant: then `train_batch_size` must be given.
        train_batch_size, eval_batch_size, predict_batch_size: the batch sizes.
        batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu, export_saved_model_api_version: of a TPU; one
            machine has no need of them.
        warm_start_from: a checkpoint or WarmStartSettings.
        embedding_config_spec: None (ValueError otherwise): tables are variables here.

    Raises ValueError for another configuration, reserved parameters and missing sizes.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: Any = None,
        config: Any = None,
        params: dict[str, Any] | None = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        embedding_config_spec: Any = None,
        export_saved_model_api_version: Any = None,
    ) -> None:
        if not isinstance(config, RunConfig):
            raise ValueError("`config` must be provided with type `tpu_config.RunConfig`")
        if params is not None and any(name in params for name in _RESERVED):
            raise ValueError(f"{list(_RESERVED)} are reserved keys but existed in params {params}.")
        if use_tpu and train_batch_size is None:
            raise ValueError("`train_batch_size` cannot be `None`")
        if embedding_config_spec is not None:
            raise ValueError("embedding_config_spec is not supported: use tf.feature_column.embedding_column")
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        if use_tpu:
            tf.logging.info("TPUEstimator runs on this machine's devices: there is no TPU.")
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        accepted = argument_names(model_fn)

        def on_this_machine(features: Any, labels: Any, mode: str, params: Any, config: Any) -> EstimatorSpec:
            offered = {
                "labels": labels,
                "mode": mode,
                "params": {**self._params_of(mode), "use_tpu": False},
                "config": config,
            }
            spec = model_fn(features, **{name: value for name, value in offered.items() if name in accepted})
            return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec

        super().__init__(on_this_machine, model_dir, config, params or {}, warm_start_from)

    def _create_global_step(self, graph: tf.Graph) -> Any:
        """Makes the global step, a resource variable."""
        with tf.variable_scope(tf.get_variable_scope(), use_resource=True):
            return tf.train.create_global_step(graph)

    def _params_of(self, mode: str) -> dict[str, Any]:
        params = dict(self.params)
        if self._batch_sizes.get(mode) is not None:
            params["batch_size"] = self._batch_sizes[mode]
        return params

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        accepted = argument_names(input_fn)
        offered = {"mode": mode, "params": self._params_of(mode), "config": self.config}
        with tf.device("/cpu:0"):
            return input_fn(**{name: value for name, value in offered.items() if name in accepted})
