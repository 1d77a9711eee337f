"""The steps of a compiled model of `tf.keras`, with the scopes that TensorFlow 1.15 makes their nodes in.

model._make_train_function()     training/Adam/…, then training_1/group_deps, which runs the updates
model._make_test_function()      evaluation/group_deps
model._make_predict_function()   predict/group_deps
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.keras.published import own

__all__ = ["make_predict_function", "make_test_function", "make_train_function"]


def make_train_function(self: Any) -> None:
    """`_make_train_function` of the class `Model`; the gradients are made once a `compile`."""
    self._check_trainable_weights_consistency()
    if self.train_function is not None:
        return
    with tf.name_scope("training"):
        weights = list({id(each): each for each in self._collected_trainable_weights}.values())
        trained = self.optimizer.get_updates(params=weights, loss=self.total_loss)
    self.train_function = _of_batches(self, "training", [*self.updates, *trained])


def make_test_function(self: Any) -> None:
    """`_make_test_function` of the class `Model`: the loss and the metrics."""
    if self.test_function is None:
        self.test_function = _of_batches(self, "evaluation", self.state_updates)


def make_predict_function(self: Any) -> None:
    """`_make_predict_function` of the class `Model`: the outputs."""
    if getattr(self, "predict_function", None) is None:
        self.predict_function = _function(
            self, "predict", self._feed_inputs, self.outputs, self.state_updates
        )


def _of_batches(model: Any, scope: str, updates: Any) -> Any:
    metrics = model._get_training_eval_metrics()
    results = [metric._call_result for metric in metrics if hasattr(metric, "_call_result")]
    counted = [update for metric in metrics for update in metric.updates]
    inputs = [*model._feed_inputs, *model._feed_targets, *model._feed_sample_weights]
    return _function(model, scope, inputs, [model.total_loss, *results], [*updates, *counted])


def _function(model: Any, scope: str, inputs: Any, outputs: Any, updates: Any) -> Any:
    backend = own("backend")
    phase = [backend.learning_phase()] if model._uses_dynamic_learning_phase() else []
    with tf.name_scope(scope):
        options = getattr(model, "_function_kwargs", {})
        return backend.function([*inputs, *phase], outputs, updates=updates, name=scope, **options)
