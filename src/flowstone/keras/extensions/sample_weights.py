"""Weights of examples in models of `tf.keras`: the graph has them once a program gives some.

A model is compiled without them, but for the outputs that `sample_weight_mode` names. The first call that
gives `sample_weight` or `class_weight` adds a placeholder for each output, and makes the losses, the
weighted metrics and the steps anew; from then on what has no weights is fed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf

__all__ = ["are_given", "changed_attributes", "fed", "look_for", "want"]

Method = Callable[..., Any]


def are_given(*weights: Any) -> bool:
    """Whether any of the arguments `sample_weight` and `class_weight` of a call has weights."""
    return any(each is not None and not (isinstance(each, (list, dict)) and not each) for each in weights)


def changed_attributes(published: Method) -> Method:
    """`_set_sample_weight_attributes` of the class `Model`, which `compile` calls."""

    def _set_sample_weight_attributes(self: Any, mode: Any, skipped: Sequence[int]) -> None:
        with tf.Graph().as_default():  # for the modes; the placeholders come when they are needed
            published(self, mode, skipped)
        self._skipped_weights = list(skipped)
        _make(self, everywhere=self.__dict__.pop("_wants_weights", False))

    return _set_sample_weight_attributes


def look_for(model: Any, options: dict[str, Any]) -> None:
    """Gives a model weights for all outputs if the options of `fit` have some, or its validation does."""
    data = options.get("validation_data")
    validated = data[2] if isinstance(data, (tuple, list)) and len(data) == 3 else None
    if are_given(validated, options.get("sample_weight"), options.get("class_weight")):
        want(model)


def _make(model: Any, everywhere: bool) -> None:
    made: list[Any] = []
    for i, (name, mode) in enumerate(zip(model.output_names, model.sample_weight_modes)):
        if i in model._skipped_weights or (mode is None and not everywhere):
            made.append(None)
            continue
        rank = 2 if mode == "temporal" else 1
        ones = tf.ones([1] * rank, tf.keras.backend.floatx())
        made.append(tf.placeholder_with_default(ones, [None] * rank, f"{name}_sample_weights"))
    model.sample_weights = made
    model._feed_sample_weights = [each for each in made if each is not None]


def want(model: Any) -> None:
    """Gives a model weights for all outputs: now, or when it is compiled."""
    if not getattr(model, "_is_compiled", False):
        model._wants_weights = True
        return
    count = len(model.outputs) - len(model._skipped_weights)
    if len(model._feed_sample_weights) == count:
        return
    _make(model, everywhere=True)
    masks = model.compute_mask(model.inputs, mask=None)
    masks = masks if isinstance(masks, list) else [masks] * len(model.outputs)
    unweighted, model._per_output_metrics = model._per_output_metrics, [{} for _ in model.outputs]
    for metrics in model._per_output_weighted_metrics:
        for metric in metrics.values():
            metric._updates, metric._per_input_updates = [], {}
    skipped = [loss is None for loss in model.loss_functions]
    model._handle_metrics(model.outputs, model.targets, skipped, model.sample_weights, masks)
    model._per_output_metrics = unweighted
    for metric in model._output_loss_metrics or ():
        metric._updates, metric._per_input_updates = [], {}
    model.total_loss = model._prepare_total_loss(masks)
    model.train_function = model.test_function = None


def fed(model: Any, weights: list[Any]) -> list[Any]:
    """Those of the weights of all outputs that have a placeholder."""
    places = [w for i, w in enumerate(model.sample_weights) if i not in model._skipped_weights]
    return [each for place, each in zip(places, weights) if place is not None]
