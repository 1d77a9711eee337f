"""What is done before a computation on joined axes and undone after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.labeled_tensor.axes import Axis, as_axis
from flowstone.contrib.labeled_tensor.core import LabeledTensor, convert_to_labeled_tensor
from flowstone.contrib.labeled_tensor.ops import reshape

__all__ = ["ReshapeCoder"]


class ReshapeCoder:
    """Joins or splits axes of a tensor, and gives a result of the same axes its former ones again.

        coder = ReshapeCoder(["row", "column"], ["pixel"])
        smooth = coder.decode(blur(coder.encode(image)))

    Args:
        existing_axis_names: names of axes that follow each other.
        new_axes: the axes in their place, as `reshape` takes them.
        name: a scope's name.
    """

    def __init__(
        self, existing_axis_names: Sequence[str], new_axes: Sequence[Any], name: str | None = None
    ) -> None:
        self._name = name
        self._existing_axis_names = list(existing_axis_names)
        self._new_axes = list(new_axes)
        self._existing_axes: list[Axis] | None = None

    def encode(self, labeled_tensor: Any) -> LabeledTensor:
        """The tensor with the new axes; remembers the ones that they replace."""
        with tf.name_scope(self._name, "lt_reshape_encode", [labeled_tensor]) as scope:
            labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
            encoded = reshape(labeled_tensor, self._existing_axis_names, self._new_axes, name=scope)
            self._existing_axes = [labeled_tensor.axes[axis] for axis in self._existing_axis_names]
            return encoded

    def decode(self, labeled_tensor: Any) -> LabeledTensor:
        """The tensor with the axes that `encode` replaced; ValueError before there was an `encode`."""
        if self._existing_axes is None:
            raise ValueError("decode called before encode")
        with tf.name_scope(self._name, "lt_reshape_decode", [labeled_tensor]) as scope:
            names = [axis if isinstance(axis, str) else as_axis(axis).name for axis in self._new_axes]
            return reshape(labeled_tensor, names, self._existing_axes, name=scope)
