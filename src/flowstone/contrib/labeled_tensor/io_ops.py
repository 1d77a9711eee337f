"""LabeledTensors from outside: placeholders, and what Example messages hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.labeled_tensor.axes import Axes, Axis, as_axis
from flowstone.contrib.labeled_tensor.core import LabeledTensor, convert_to_labeled_tensor

__all__ = ["FixedLenFeature", "parse_example", "parse_single_example", "placeholder"]


class FixedLenFeature:
    """A feature of Examples with the same axes in each.

    Args:
        axes: Axis objects or pairs ``(name, size or labels)``, all of known size.
        dtype: the type of the values.
        default_value: stands for the feature where an Example lacks it; None makes that an error.

    Raises TypeError for axes of another kind.
    """

    def __init__(self, axes: Sequence[Any], dtype: Any, default_value: Any = None) -> None:
        self._axes = [as_axis(axis) for axis in axes]
        self._dtype = tf.as_dtype(dtype)
        self._default_value = default_value

    @property
    def axes(self) -> list[Axis]:
        """The axes of one Example's value."""
        return self._axes

    @property
    def dtype(self) -> Any:
        """The type of the values."""
        return self._dtype

    @property
    def default_value(self) -> Any:
        """What stands for a missing feature; None if there is nothing."""
        return self._default_value


def _as_features(features: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, feature in features.items():
        sizes = [axis.size for axis in feature.axes]
        if None in sizes:
            raise ValueError(f"the axes of the feature {key!r} need known sizes: {feature.axes!r}")
        found[key] = tf.FixedLenFeature(sizes, feature.dtype, feature.default_value)
    return found


def parse_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, LabeledTensor]:
    """The features of a batch of serialised Example messages.

    Args:
        serialized: a LabeledTensor of strings with one axis, the first one of each result.
        features: for each name a `FixedLenFeature`.
        name: a scope's name.
        example_names: names of the Examples for messages of errors.

    Raises TypeError if `serialized` has no labelled axis, ValueError if an axis of a feature has no size.
    """
    if not isinstance(serialized, LabeledTensor):
        raise TypeError(f"the Examples are a LabeledTensor of strings, not {serialized!r}")
    names = example_names.tensor if isinstance(example_names, LabeledTensor) else example_names
    parsed = tf.parse_example(serialized.tensor, _as_features(features), name, names)
    batch = list(serialized.axes.values())
    return {key: LabeledTensor(parsed[key], batch + list(features[key].axes)) for key in features}


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, LabeledTensor]:
    """The features of one serialised Example message: as `parse_example`, with a scalar of strings."""
    serialized = convert_to_labeled_tensor(serialized)
    names = example_names.tensor if isinstance(example_names, LabeledTensor) else example_names
    parsed = tf.parse_single_example(serialized.tensor, _as_features(features), name, names)
    return {key: LabeledTensor(parsed[key], list(features[key].axes)) for key in features}


def placeholder(dtype: Any, axes: Sequence[Any], name: str | None = None) -> LabeledTensor:
    """A placeholder with axes: Axis objects, pairs ``(name, size or labels)``, or names."""
    with tf.name_scope(name, "lt_placeholder", []) as scope:
        listed = Axes([(axis, None) if isinstance(axis, str) else axis for axis in axes])
        shape = [axis.size for axis in listed.values()]
        return LabeledTensor(tf.placeholder(dtype, shape, name=scope), listed)
