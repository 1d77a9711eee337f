"""LSTM cells with masked kernels."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.model_pruning.pruning import mask_weight

__all__ = ["MaskedBasicLSTMCell", "MaskedLSTMCell"]


def masked(layer: Any, kernel: Any) -> Any:
    """A layer's kernel times a mask, which is a new variable of the layer."""
    dtype = kernel.dtype.base_dtype
    layer.built = False  # What is built takes variables that are there.
    mask = layer.add_weight("mask", kernel.shape, dtype, tf.ones_initializer(), trainable=False)
    threshold = layer.add_weight("threshold", [], dtype, tf.zeros_initializer(), trainable=False)
    layer.built = True
    return mask_weight(kernel, mask, threshold)


class MaskedBasicLSTMCell(tf.nn.rnn_cell.BasicLSTMCell):
    """`tf.nn.rnn_cell.BasicLSTMCell`, its kernel masked."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(num_units, forget_bias, state_is_tuple, activation, reuse, name)

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables. ValueError for inputs of an unknown last size."""
        super().build(inputs_shape)
        self._kernel = masked(self, self._kernel)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (output, new state)."""
        return super().call(inputs, state)


class MaskedLSTMCell(tf.nn.rnn_cell.LSTMCell):
    """`tf.nn.rnn_cell.LSTMCell`, its kernel masked, that of its projection not."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(
            num_units, use_peepholes, cell_clip, initializer, num_proj, proj_clip, num_unit_shards,
            num_proj_shards, forget_bias, state_is_tuple, activation, reuse,
        )  # fmt: skip

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables. ValueError for inputs of an unknown last size."""
        super().build(inputs_shape)
        self._kernel = masked(self, self._kernel)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: (output, new state)."""
        return super().call(inputs, state)
