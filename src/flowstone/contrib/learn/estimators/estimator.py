"""`Estimator` of `tf.contrib.learn`: a model given by a function; columns for the features of inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import ModeKeys, NotFittedError
from flowstone.contrib.learn.estimators.base_estimator import BaseEstimator
from flowstone.contrib.learn.estimators.input_functions import input_fn_of, verify_input_args
from flowstone.contrib.learn.estimators.metric_ops import make_metrics_ops
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps
from flowstone.contrib.learn.estimators.saved_model import GraphRewriteSpec, export_model
from flowstone.contrib.learn.estimators.sk_compat import SKCompat
from flowstone.contrib.learn.estimators.tensor_signature import create_placeholders_from_signatures
from flowstone.estimator.function_arguments import argument_names

__all__ = [
    "BaseEstimator",
    "Estimator",
    "GraphRewriteSpec",
    "NotFittedError",
    "SKCompat",
    "infer_real_valued_columns_from_input",
    "infer_real_valued_columns_from_input_fn",
]

_get_input_fn, _verify_input_args = input_fn_of, verify_input_args


def infer_real_valued_columns_from_input_fn(input_fn: Callable[[], Any]) -> list[Any]:
    """Real-valued columns for the tensors that a function returns; ValueError for others than numbers."""
    with tf.Graph().as_default():
        features, _ = input_fn()
        return tf.contrib.layers.infer_real_valued_columns(features)  # type: ignore[no-any-return]


def infer_real_valued_columns_from_input(x: Any) -> list[Any]:
    """Real-valued columns for an array, or a dict of arrays; ValueError for others than numbers."""
    input_fn, _ = input_fn_of(x, None, None, None, None)
    return infer_real_valued_columns_from_input_fn(input_fn)


class Estimator(BaseEstimator):
    """A model that a function describes.

    Args:
        model_fn: a function of (features, labels) and any of `mode`, `params`, `config`, `model_dir`, that
            returns ModelFnOps or a tuple of predictions, loss and training operation.
        model_dir, config: see `BaseEstimator`.
        params: a dict that `model_fn` gets.
        feature_engineering_fn: a function from (features, labels) to those that `model_fn` gets.

    Raises ValueError for params that `model_fn` does not take.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: Any = None,
        config: Any = None,
        params: dict[str, Any] | None = None,
        feature_engineering_fn: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__(model_dir=model_dir, config=config)
        if model_fn is not None:
            names = argument_names(model_fn)
            if params is not None and "params" not in names:
                raise ValueError(
                    f"Estimator's model_fn ({model_fn}) does not have a params argument, but params "
                    f"({params}) "
                    "were passed to the Estimator's constructor."
                )
            if params is None and "params" in names:
                tf.logging.warning(
                    "Estimator's model_fn (%s) includes params argument, but params are not passed to "
                    "Estimator.",
                    model_fn,
                )
        self._model_fn = model_fn
        self.params = params
        self._feature_engineering_fn = feature_engineering_fn or (lambda features, labels: (features, labels))

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, metrics: Any = None, config: Any = None
    ) -> ModelFnOps:
        assert self._model_fn is not None
        features, labels = self._feature_engineering_fn(features, labels)
        accepted = argument_names(self._model_fn)
        offered = {
            "mode": mode,
            "params": self.params,
            "config": config or self.config,
            "model_dir": self.model_dir,
        }
        given = {name: value for name, value in offered.items() if name in accepted}
        result = self._model_fn(features, labels, **given)
        if not isinstance(result, ModelFnOps):
            if not isinstance(result, (list, tuple)) or len(result) != 3:
                raise ValueError("Unrecognized value returned by model_fn, please return ModelFnOps.")
            result = ModelFnOps(mode=mode, predictions=result[0], loss=result[1], train_op=result[2])
        if metrics:
            more = make_metrics_ops(metrics, features, labels, result.predictions)
            result = result._replace(eval_metric_ops={**result.eval_metric_ops, **more})
        return result

    def _get_train_ops(self, features: Any, labels: Any) -> ModelFnOps:
        return self._call_model_fn(features, labels, ModeKeys.TRAIN)

    def _get_eval_ops(self, features: Any, labels: Any, metrics: Any) -> ModelFnOps:
        ops = self._call_model_fn(features, labels, ModeKeys.EVAL, metrics)
        if "loss" in ops.eval_metric_ops:
            return ops
        return ops._replace(eval_metric_ops={**ops.eval_metric_ops, "loss": tf.metrics.mean(ops.loss)})

    def _get_predict_ops(self, features: Any) -> ModelFnOps:
        labels = create_placeholders_from_signatures(self._labels_info)
        return self._call_model_fn(features, labels, ModeKeys.INFER)

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_fn: Callable[[], Any],
        default_output_alternative_key: Any = None,
        assets_extra: Mapping[str, Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        graph_rewrite_specs: tuple[GraphRewriteSpec, ...] = (GraphRewriteSpec(("serve",), ()),),
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Exports the model for serving as a SavedModel, in a new folder of `export_dir_base`.

        Args:
            serving_input_fn: returns InputFnOps.
            default_output_alternative_key: which of the model's output alternatives is served by default.
            assets_extra: files by the paths that they get below ``assets.extra``.
            as_text: whether the graph is written as text.
            checkpoint_path: the checkpoint; the latest if None.
            graph_rewrite_specs: the tags of the graph; transforms of graphs are refused.
            strip_default_attrs: whether attributes with default values are left out.

        Returns the folder's path. Raises ValueError without an input function and for an unknown alternative,
        NotFittedError without a checkpoint, UnimplementedError for transforms.
        """
        if serving_input_fn is None:
            raise ValueError("serving_input_fn must be defined.")
        checkpoint_path = self._checkpoint(checkpoint_path)
        return export_model(
            lambda features: self._call_model_fn(features, None, ModeKeys.INFER),
            serving_input_fn,
            export_dir_base,
            checkpoint_path,
            self._session_config,
            default_key=default_output_alternative_key,
            assets_extra=assets_extra,
            as_text=as_text,
            rewrites=graph_rewrite_specs,
            strip_default_attrs=strip_default_attrs,
        )
