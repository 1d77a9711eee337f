"""`MultiHead`: several heads over one network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.estimator.export.export_output import PredictOutput
from flowstone.estimator.head.base_head import Head, LossSpec, make_train_op
from flowstone.estimator.mode_keys import ModeKeys
from flowstone.estimator.model_fn import EstimatorSpec

__all__ = ["MultiHead"]


class MultiHead(Head):
    """Several heads, whose losses are added.

    Args:
        heads: Heads with names, which are the keys of the labels (and of the logits, if they are a dict; a
            tensor is cut along its last axis).
        head_weights: the losses' factors; None: ones.

    Raises ValueError for no heads, names that are missing or not unique, and other numbers of weights.
    """

    def __init__(self, heads: Sequence[Head], head_weights: Sequence[float] | None = None) -> None:
        if not heads:
            raise ValueError(f"Must specify heads. Given: {heads}")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(
                f"heads and head_weights must have the same size. Given len(heads): {len(heads)}. Given "
                f"len(head_weights): {len(head_weights)}."
            )
        names = [head.name for head in heads]
        if not all(names):
            raise ValueError(f"All given heads must have name specified. Given: {names}")
        if len(set(names)) != len(names):
            raise ValueError(f"All heads must have unique names. Given: {names}")
        super().__init__("_".join(names), None, tf.losses.Reduction.SUM, None)
        self._heads, self._head_weights = tuple(heads), tuple(head_weights or ())

    @property
    def logits_dimension(self) -> int:
        """The sum of the heads' sizes."""
        return sum(head.logits_dimension for head in self._heads)

    @property
    def loss_reduction(self) -> str:
        """The heads' reduction."""
        return self._heads[0].loss_reduction

    def _split(self, logits: Any) -> dict[str, Any]:
        if isinstance(logits, dict):
            missing = [head.name for head in self._heads if head.name not in logits]
            if missing:
                raise ValueError(f"logits has missing values for head(s): {missing}")
            return logits
        parts = tf.split(logits, [head.logits_dimension for head in self._heads], axis=-1)
        return {head.name: part for head, part in zip(self._heads, parts, strict=True)}

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> LossSpec:
        """The heads' losses, weighted and added; the other fields are dicts by head."""
        parts = self._split(logits)
        found = {
            head.name: head.create_loss(features, mode, parts[head.name], labels[head.name])
            for head in self._heads
        }
        return LossSpec(
            self._merged([each.training_loss for each in found.values()]),
            {name: each.unreduced_loss for name, each in found.items()},
            {name: each.weights for name, each in found.items()},
            {name: each.processed_labels for name, each in found.items()},
        )

    def _merged(self, losses: list[Any]) -> Any:
        with tf.name_scope("merge_losses"):
            if self._head_weights:
                losses = [
                    loss if weight == 1.0 else tf.multiply(loss, weight)
                    for loss, weight in zip(losses, self._head_weights, strict=True)
                ]
            return tf.add_n(losses)

    def predictions(self, logits: Any, keys: Any = None) -> dict[Any, Any]:
        """The heads' predictions by (head, name)."""
        parts = self._split(logits)
        return {
            (head.name, key): value
            for head in self._heads
            for key, value in head.predictions(parts[head.name]).items()
            if keys is None or (head.name, key) in keys or key in keys
        }

    def metrics(self, regularization_losses: Any = None) -> dict[str, Any]:
        """The heads' metrics by name."""
        found = {name: metric for head in self._heads for name, metric in head.metrics().items()}
        if regularization_losses:
            found.update(self._empty_metrics([], regularization_losses))
        return found

    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Any = None,
    ) -> dict[str, Any]:
        """Fills the metrics of all heads; returns them."""
        parts = self._split(logits)
        for head in self._heads:
            head.update_metrics(eval_metrics, features, parts[head.name], labels[head.name])
        return eval_metrics

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        update_ops: Any = None,
        regularization_losses: Any = None,
    ) -> EstimatorSpec:
        """The EstimatorSpec of all heads; see `Head.create_estimator_spec`."""
        parts = self._split(logits)
        specs = []
        for head in self._heads:
            given = None if labels is None else labels[head.name]
            specs.append(
                head.create_estimator_spec(features, mode, parts[head.name], given, train_op_fn=_no_training)
            )
        predictions = {
            (head.name, key): value
            for head, spec in zip(self._heads, specs, strict=True)
            for key, value in spec.predictions.items()
        }
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions, export_outputs=self._merged_exports(specs, predictions))
        loss = self._merged([spec.loss for spec in specs])
        if regularization_losses:
            loss = loss + tf.add_n(regularization_losses)
        if mode == ModeKeys.EVAL:
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops=self._merged_metrics(specs, loss))
        train_op = make_train_op(loss, optimizer, train_op_fn, trainable_variables, update_ops)
        return EstimatorSpec(mode, predictions, loss, train_op)

    def _merged_metrics(self, specs: list[Any], loss: Any) -> dict[str, Any]:
        found = {}
        for head, spec in zip(self._heads, specs, strict=True):
            found[f"loss/{head.name}"] = tf.metrics.mean(spec.loss)
            found.update(spec.eval_metric_ops)
        return found

    def _merged_exports(self, specs: list[Any], predictions: dict[Any, Any]) -> dict[str, Any]:
        found = {"serving_default": specs[0].export_outputs["serving_default"]}
        for head, spec in zip(self._heads, specs, strict=True):
            for name, output in spec.export_outputs.items():
                found[head.name if name == "serving_default" else f"{head.name}/{name}"] = output
        found["predict"] = PredictOutput({"/".join(key): value for key, value in predictions.items()})
        return found

    # What a single head says; this one asks its heads.

    def _labels_and_loss(self, labels: Any, logits: Any, features: Any) -> tuple[Any, Any]:
        loss = self.create_loss(features, ModeKeys.TRAIN, logits, labels)
        return loss.processed_labels, loss.unreduced_loss

    def _metric_ops(self, loss: Any, logits: Any, regularization: Any) -> dict[str, Any]:
        raise TypeError("the metrics of a MultiHead are those of its heads: use update_metrics")

    def _exports(self, predictions: dict[str, Any]) -> dict[str, Any]:
        return {"predict": PredictOutput(predictions)}


def _no_training(loss: Any) -> Any:
    """Stands for the training operation of one head: all are trained together."""
    return tf.no_op() if loss is not None else loss
