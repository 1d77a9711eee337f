"""`LossDerivatives`: the gradients and Hessians of a loss by the logits."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.io.proto import learner_pb2

__all__ = ["LossDerivatives"]

_Config = learner_pb2.LearnerConfig


class LossDerivatives:
    """Gradients and Hessians of every example.

    Args:
        loss: float32, [].
        predictions: float32 [examples, outputs].
        strategy: a number of the enumeration of LearnerConfig.
        outputs: how many numbers an example has.
        attempted_trees: how many trees were begun, int64, []: trees of one class each are for the classes in
            turn.
        gradients, hessians: derived if None.

    `gradients` and `hessians` are [examples, …] of `gradient_shape` and `hessian_shape`, `weights`
    [examples, 1] what an example's value counts, `class_id` the class that the tree is for, -1 for all.
    """

    def __init__(
        self, loss: Any, predictions: Any, strategy: int, outputs: int, attempted_trees: Any,
        gradients: Any = None, hessians: Any = None,
    ) -> None:  # fmt: skip
        self._predictions, self._outputs = predictions, outputs
        if gradients is None:
            gradients = tf.gradients(loss, predictions, name="Gradients")[0]
        self._of_loss = gradients
        self.class_id = tf.constant(-1, tf.int32)
        self.gradient_shape: list[int] = []
        self.hessian_shape: list[int] = []
        if outputs == 1:
            self._one_output(gradients, hessians)
        elif strategy == _Config.TREE_PER_CLASS:
            self.class_id = tf.to_int32(tf.mod(attempted_trees, outputs))
            diagonal = self._diagonal() if hessians is None else hessians
            self.gradients = gradients[:, self.class_id]
            self.hessians = self.weights = diagonal[:, self.class_id]
        else:
            self._several_outputs(gradients, hessians, strategy)
        self.weights = tf.reshape(self.weights, [-1, 1])

    @property
    def partition_like(self) -> Any:
        """A tensor [examples, …]."""
        return self._predictions

    def _one_output(self, gradients: Any, hessians: Any) -> None:
        if hessians is None:
            hessians = tf.gradients(gradients, self._predictions, name="Hessian")[0]
        self.gradients = tf.squeeze(gradients, [1])
        self.hessians = self.weights = tf.squeeze(hessians, [1])

    def _several_outputs(self, gradients: Any, hessians: Any, strategy: int) -> None:
        self.gradients, self.gradient_shape = gradients, [self._outputs]
        if strategy == _Config.FULL_HESSIAN:
            self.hessian_shape = [self._outputs] * 2
            self.hessians = tf.stack(self._rows(), axis=1) if hessians is None else hessians
            self.weights = tf.trace(self.hessians)
        else:
            self.hessian_shape = [self._outputs]
            self.hessians = self._diagonal() if hessians is None else hessians
            self.weights = tf.reduce_sum(self.hessians, 1)

    def _rows(self) -> list[Any]:
        """The derivatives of each output's gradient, [examples, outputs]."""
        columns = tf.unstack(self._of_loss, self._outputs, axis=1)
        return [
            tf.gradients(column, self._predictions, name=f"Hessian_{at}")[0]
            for at, column in enumerate(columns)
        ]

    def _diagonal(self) -> Any:
        return tf.stack([row[:, at] for at, row in enumerate(self._rows())], axis=1)

    def sums(self) -> tuple[Any, Any]:
        """The sums [outputs] of the gradients, and of the Hessians' rows, over all examples."""
        hessians = tf.gradients(self._of_loss, self._predictions, name="Hessians")[0]
        return tf.reduce_sum(self._of_loss, 0), tf.reduce_sum(hessians, 0)
