"""What a network returns beside its output: the tensors of its layers, by name."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib import layers

__all__ = ["end_points_of", "squeezed", "trunc_normal"]


def trunc_normal(stddev: float) -> Any:
    """An initialiser of a truncated normal distribution about zero."""
    return tf.truncated_normal_initializer(0.0, stddev)


def end_points_of(collection: str) -> dict[str, Any]:
    """The layers that were collected, by their scopes' names."""
    points: dict[str, Any] = layers.utils.convert_collection_to_dict(collection)
    return points


def squeezed(net: Any, spatial_squeeze: bool, scope: Any, end_points: dict[str, Any]) -> Any:
    """The scores [batch, 1, 1, classes], or [batch, classes] where that is wished, the end point ``fc8``."""
    if spatial_squeeze:
        net = tf.squeeze(net, [1, 2], name="fc8/squeezed")
        end_points[f"{scope.name}/fc8"] = net
    return net
