"""Exports of Estimators as session bundles; `Estimator.export_savedmodel` is what followed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.learn.constants import ModeKeys, PredictionKey
from flowstone.contrib.session_bundle import exporter, gc

__all__ = [
    "classification_signature_fn",
    "classification_signature_fn_with_prob",
    "export_estimator",
    "exporter",
    "gc",
    "generic_signature_fn",
    "logistic_regression_signature_fn",
    "regression_signature_fn",
]

Signatures = tuple[Any, dict[str, Any]]


def _checked(examples: Any) -> None:
    if examples is None:
        raise ValueError("examples cannot be None when using this signature fn.")


def generic_signature_fn(examples: Any, unused_features: Any, predictions: Any) -> Signatures:
    """The signature of all tensors: the examples as "inputs", predictions by their names or as "outputs"."""
    del unused_features
    _checked(examples)
    tensors = {"inputs": examples}
    tensors.update(predictions if isinstance(predictions, Mapping) else {"outputs": predictions})
    return exporter.generic_signature(tensors), {}


def classification_signature_fn(examples: Any, unused_features: Any, predictions: Any) -> Signatures:
    """The signature of classes: the tensor, or "classes" of a dict."""
    del unused_features
    _checked(examples)
    classes = predictions[PredictionKey.CLASSES] if isinstance(predictions, Mapping) else predictions
    return exporter.classification_signature(examples, classes_tensor=classes), {}


def classification_signature_fn_with_prob(
    examples: Any, unused_features: Any, predictions: Any
) -> Signatures:
    """The signature of scores: the tensor, or "probabilities" of a dict."""
    del unused_features
    _checked(examples)
    scores = predictions[PredictionKey.PROBABILITIES] if isinstance(predictions, Mapping) else predictions
    return exporter.classification_signature(examples, scores_tensor=scores), {}


def regression_signature_fn(examples: Any, unused_features: Any, predictions: Any) -> Signatures:
    """The signature of numbers: the tensor, or "scores" of a dict."""
    del unused_features
    _checked(examples)
    numbers = predictions[PredictionKey.SCORES] if isinstance(predictions, Mapping) else predictions
    return exporter.regression_signature(input_tensor=examples, output_tensor=numbers), {}


def logistic_regression_signature_fn(examples: Any, unused_features: Any, predictions: Any) -> Signatures:
    """The signature of the probability of the second of two classes: `predictions` has shape [batch, 2], or
    is a dict with such "probabilities"."""
    del unused_features
    _checked(examples)
    found = predictions[PredictionKey.PROBABILITIES] if isinstance(predictions, Mapping) else predictions
    found.shape.assert_has_rank(2)
    return exporter.regression_signature(input_tensor=examples, output_tensor=found[:, 1]), {}


def _default_input_fn(estimator: Any, examples: Any) -> Any:
    """The features of serialized examples, in the form of those that the Estimator was trained on."""
    return estimator._get_feature_ops_from_example(examples)


def export_estimator(
    estimator: Any,
    export_dir: Any,
    signature_fn: Callable[..., Signatures] | None = None,
    input_fn: Callable[..., Any] = _default_input_fn,
    default_batch_size: int = 1,
    exports_to_keep: int | None = None,
) -> bytes:
    """Exports an Estimator with its latest checkpoint as a session bundle.

    Args:
        export_dir: the folder of exports.
        signature_fn: from (examples, features, predictions) to the default signature and a dict of others;
            `generic_signature_fn` by default.
        input_fn: from (estimator, examples) to features, where examples are serialized ones.
        default_batch_size: the static size of the batch of examples; None: not known.
        exports_to_keep: how many of the last exports are kept; None: all.

    Returns the bundle's path. Raises NotFittedError without a checkpoint.
    """
    return _export_estimator(
        estimator, export_dir, signature_fn, input_fn, default_batch_size, exports_to_keep
    )


def _export_estimator(
    estimator: Any,
    export_dir: Any,
    signature_fn: Callable[..., Signatures] | None,
    input_fn: Callable[..., Any],
    default_batch_size: int | None,
    exports_to_keep: int | None,
    input_feature_key: str | None = None,
    use_deprecated_input_fn: bool = True,
    prediction_key: str | None = None,
    checkpoint_path: Any = None,
) -> bytes:
    checkpoint_path = estimator._checkpoint(checkpoint_path)
    with tf.Graph().as_default() as graph:
        tf.train.create_global_step(graph)
        if use_deprecated_input_fn:
            examples = tf.placeholder(tf.string, [default_batch_size], name="input_example_tensor")
            features = input_fn(estimator, examples)
        else:
            features, _ = input_fn()
            examples = None
            if input_feature_key is not None:
                examples = features.pop(input_feature_key)
        if features is None and examples is None:
            raise ValueError("Either features or examples must be defined.")
        predictions = estimator._call_model_fn(features, None, ModeKeys.INFER).predictions
        if prediction_key is not None:
            predictions = predictions[prediction_key]
        default, named = (signature_fn or generic_signature_fn)(examples, features, predictions)
        saver = tf.train.Saver(sharded=True)
        init_op = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
        with tf.Session() as session:
            saver.restore(session, checkpoint_path)
            session.run(init_op)
            export = exporter.Exporter(saver)
            export.init(
                init_op=init_op,
                default_graph_signature=default,
                named_graph_signatures=named,
                assets_collection=graph.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            )
            keep = None if exports_to_keep is None else gc.largest_export_versions(exports_to_keep)
            step = tf.train.get_global_step(graph)
            return export.export(export_dir, step, session, exports_to_keep=keep)
