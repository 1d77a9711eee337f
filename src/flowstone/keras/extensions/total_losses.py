"""The loss that a compiled model of `tf.keras` trains by: the weighted sum of its outputs' losses, and those
that its layers add.

    loss/dense_loss/…                  the losses of the examples of the output `dense`
    loss/dense_loss/weighted_loss/…    times the weights of the examples
    loss/dense_loss/value              their mean
    loss/mul                           times the weight of the output

A loss that is not reduced (`Reduction.NONE`) stays a tensor with a number for each example, and so does the
sum: an optimiser takes the gradient of the sum of its numbers, and what `fit` reports has its shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.keras.extensions import additions, calls, weighted_losses
from flowstone.keras.published import own

__all__ = ["prepare_total_loss", "with_mask"]


def prepare_total_loss(self: Any, masks: Sequence[Any]) -> Any:
    """`_prepare_total_loss` of the class `Model`; the package's takes the mean of what is not reduced.

    Raises ValueError where neither outputs nor layers have a loss.
    """
    parts = zip(self.loss_functions, self.targets, self.outputs, self.sample_weights, masks)
    total: Any = None
    with tf.name_scope("loss"):
        for i, (function, target, output, weight, mask) in enumerate(parts):
            if i in self.skip_target_indices:
                continue
            with tf.name_scope(f"{self.output_names[i]}_loss"):
                loss = _output_loss(function, target, output, with_mask(weight, mask, output))
            if len(self.outputs) > 1:
                self._output_loss_metrics[i](loss)
            part = self.loss_weights_list[i] * loss
            total = part if total is None else total + part
        layers = list(dict.fromkeys(calls.below(self)))
        additions.repeat_regularizers(layers)
        if losses := self.losses:
            additions.repeat_regularizers(layers)
            return (0.0 if total is None else total) + tf.add_n(losses)
        if total is None:
            raise ValueError("The model cannot be compiled because it has no loss to optimize.")
        return total


def _output_loss(function: Any, target: Any, output: Any, weight: Any) -> Any:
    """The loss of an output; one of a program's class that is called otherwise calls itself."""
    if not hasattr(function, "reduction"):
        return function(target, output, sample_weight=weight)
    losses = weighted_losses.weighted(function.call(target, output), weight)
    return weighted_losses.reduced(losses, function.reduction)


def with_mask(weight: Any, mask: Any, output: Any) -> Any:
    """The weights of examples, or of their time steps, without those that a mask leaves out."""
    if mask is None:
        return weight
    mask = tf.cast(mask, output.dtype)
    if weight is None:
        return mask
    utilities = own("utils.losses_utils")
    mask, _, weight = utilities.squeeze_or_expand_dimensions(mask, None, weight)
    return weight * mask
