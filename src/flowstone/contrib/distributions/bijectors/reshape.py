"""Other shapes of events."""

from __future__ import annotations

import math
from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.framework.tensors.node import static_value

__all__ = ["Reshape"]


class Reshape(Bijector):
    """Events of one shape as events of another with as many elements.

    Args:
        event_shape_out: the shape of an event of y, a whole vector; one size may be -1.
        event_shape_in: the shape of an event of x; a vector of any length by default.
        validate_args: whether steps check sizes that are not known.
        name: the scope of its operations; ``reshape`` by default.

    TypeError if a shape is not whole, ValueError if the sizes are known not to match.
    """

    def __init__(
        self,
        event_shape_out: Any,
        event_shape_in: Any = (-1,),
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        name = name or "reshape"
        with tf.name_scope(name):
            self._shapes = {}
            for key, value in (("out", event_shape_out), ("in", event_shape_in)):
                if isinstance(value, (tuple, list)) and not value:
                    value = tf.constant([], tf.int32)
                shape = tf.convert_to_tensor(value, name=f"event_shape_{key}", preferred_dtype=tf.int32)
                self._shapes[key] = self._valid_shape(shape, f"event_shape_{key}")
        self._check_sizes()
        super().__init__(
            forward_min_event_ndims=0,  # as TensorFlow has it, although an event has the ranks of the shapes
            inverse_min_event_ndims=0,
            is_constant_jacobian=True,
            validate_args=validate_args,
            name=name,
        )

    @staticmethod
    def _valid_shape(shape: Any, name: str) -> Any:
        if not shape.dtype.is_integer:
            raise TypeError(f"{name} must be whole, but its type is {shape.dtype.name}.")
        if shape.shape.ndims != 1 or shape.shape[0].value is None:
            raise ValueError(f"{name} must be a vector whose length is known.")
        known = static_value(shape)
        if known is not None and None not in known.tolist():
            if sum(int(size) == -1 for size in known) > 1:
                raise ValueError(f"{name} must have at most one size of -1.")
            if any(int(size) < -1 for size in known):
                raise ValueError(f"{name} must have sizes of at least 0, but for one of -1.")
        return shape

    def _rank(self, key: str) -> int:
        rank: int = self._shapes[key].shape[0].value
        return rank

    def _known_shape(self, key: str) -> list[int] | None:
        value = static_value(self._shapes[key])
        return None if value is None or None in value.tolist() else [int(size) for size in value]

    def _check_sizes(self) -> None:
        first, second = self._known_shape("in"), self._known_shape("out")
        if first is None or second is None or -1 in first or -1 in second:
            return
        if math.prod(first) != math.prod(second):
            raise ValueError(f"Events of the shape {first} have other counts of elements than of {second}.")

    def _reshaped(self, value: Any, before: str, after: str) -> Any:
        sizes = tf.shape(value)
        rank = value.shape.ndims if value.shape.ndims is not None else tf.rank(value)
        outer = sizes[: rank - self._rank(before)]
        result = tf.reshape(value, tf.concat([outer, self._shapes[after]], axis=0))
        if value.shape.ndims is not None:
            static = value.shape[: value.shape.ndims - self._rank(before)]
            event = value.shape[value.shape.ndims - self._rank(before) :]
            result.set_shape(static.concatenate(self._static(event, before, after)))
        return result

    def _static(self, event: Any, before: str, after: str) -> Any:
        """What is known of the event's shape after, given its shape before. ValueError if it does not fit."""
        given, target = self._known_shape(before), self._known_shape(after)
        event = tf.TensorShape(event)
        if given is not None:
            expected = tf.TensorShape([None if size == -1 else size for size in given])
            if not event.is_compatible_with(expected):
                raise ValueError(f"Input event_shape does not match {given}: {event}.")
        if target is None:
            return tf.TensorShape([None] * self._rank(after))
        if -1 in target and event.is_fully_defined():
            rest = math.prod(size for size in target if size != -1)
            total = event.num_elements()
            if rest == 0 or total % rest:
                raise ValueError(f"An event of the shape {event} cannot become one of {target}.")
            target = [total // rest if size == -1 else size for size in target]
        return tf.TensorShape([None if size == -1 else size for size in target])

    def _checked_event_ndims(self, event_ndims: Any, least: Any) -> Any:
        """Any rank: the determinant is 1 whatever the events are."""
        return least

    def _forward(self, x: Any) -> Any:
        return self._reshaped(x, "in", "out")

    def _inverse(self, y: Any) -> Any:
        return self._reshaped(y, "out", "in")

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return tf.constant(0.0, dtype=y.dtype)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(0.0, dtype=x.dtype)

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return self._static(input_shape, "in", "out")

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return self._static(output_shape, "out", "in")

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        return self._filled(input_shape, "out")

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        return self._filled(output_shape, "in")

    def _filled(self, given: Any, after: str) -> Any:
        """The shape after, whose size of -1 takes what the others leave."""
        target = self._shapes[after]
        rest = tf.abs(tf.reduce_prod(target))
        return tf.where(target < 0, tf.fill(tf.shape(target), tf.reduce_prod(given) // rest), target)
