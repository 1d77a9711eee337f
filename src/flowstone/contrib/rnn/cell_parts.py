"""What cells of this package have in common: sizes of their states, matrices in parts, and layer
normalisation."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.layers.lstm_cells import LSTMStateTuple
from flowstone.layers.recurrent_cells import RNNCell

__all__ = ["CellOfUnits", "PairCell", "layer_normed", "matrix_in_parts"]


class CellOfUnits(RNNCell):
    """The base of cells whose state and output both have `num_units` elements."""

    _num_units: int

    @property
    def state_size(self) -> Any:
        """num_units."""
        return self._num_units

    @property
    def output_size(self) -> Any:
        """num_units."""
        return self._num_units


class PairCell(RNNCell):
    """The base of cells whose state is `LSTMStateTuple(num_units, output size)`, or one tensor of both.

    The output has `num_proj` elements, or `num_units` without a projection.
    """

    _num_units: int
    _num_proj: int | None = None
    _state_is_tuple = True

    @property
    def state_size(self) -> Any:
        """The sizes of c and h, or their sum."""
        sizes = LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """num_proj, or num_units."""
        return self._num_proj or self._num_units

    def split_state(self, state: Any) -> tuple[Any, Any]:
        """c and h."""
        if self._state_is_tuple:
            c, h = state
            return c, h
        units = self._num_units
        return tf.slice(state, [0, 0], [-1, units]), tf.slice(state, [0, units], [-1, self.output_size])

    def joined_state(self, c: Any, h: Any) -> Any:
        """The state of c and h."""
        return LSTMStateTuple(c, h) if self._state_is_tuple else tf.concat([c, h], 1)


def known_depth(inputs: Any) -> int:
    """The last static dimension of a matrix. ValueError if it is not known."""
    depth = inputs.get_shape().with_rank(2)[1].value
    if depth is None:
        raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
    return int(depth)


def matrix_in_parts(name: str, shape: list[int], dtype: Any, parts: int) -> Any:
    """A matrix of the variables ``name_0``, ``name_1`` …, each with some of the rows.

    ValueError for more parts than rows.
    """
    if parts > shape[0]:
        raise ValueError(f"Too many shards: shape={shape}, num_shards={parts}")
    least, more = divmod(shape[0], parts)
    found = [
        tf.get_variable(f"{name}_{i}", [least + (i < more), *shape[1:]], dtype=dtype) for i in range(parts)
    ]
    return found[0] if parts == 1 else tf.concat(found, 0)


def layer_normed(x: Any, scope: str, gain: float, shift: float) -> Any:
    """x with mean 0 and variance 1 along the last dimension, times ``gamma`` plus ``beta`` of `scope`."""
    size, dtype = x.get_shape()[-1:], x.dtype
    with tf.variable_scope(scope):
        gamma = tf.get_variable("gamma", size, dtype=dtype, initializer=tf.constant_initializer(gain))
        beta = tf.get_variable("beta", size, dtype=dtype, initializer=tf.constant_initializer(shift))
    with tf.variable_scope(scope):  # a second time, as in TensorFlow, for the names of operations
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        return tf.nn.batch_normalization(x, mean, variance, offset=beta, scale=gamma, variance_epsilon=1e-12)


def clipped(x: Any, limit: float | None) -> Any:
    """x within ± limit, if there is one."""
    return x if limit is None else tf.clip_by_value(x, -limit, limit)
