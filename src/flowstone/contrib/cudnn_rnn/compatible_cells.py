"""Cells that compute what one direction of a layer of cuDNN's computes."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.rnn.lstm_ops import LSTMBlockCell
from flowstone.layers.recurrent_cells import GRUCell

__all__ = ["CudnnCompatibleGRUCell", "CudnnCompatibleLSTMCell"]


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """`LSTMBlockCell` without forget bias, clipping and peepholes, in the scope "cudnn_compatible_lstm_cell".

    `num_units`: the size of c and h. `reuse`: whether the variables must be there already.
    """

    def __init__(self, num_units: int, reuse: Any = None) -> None:
        super().__init__(
            num_units,
            forget_bias=0,
            cell_clip=None,
            use_peephole=False,
            reuse=reuse,
            name="cudnn_compatible_lstm_cell",
        )


class CudnnCompatibleGRUCell(GRUCell):
    """The GRU whose reset gate is applied after the state's product, in "cudnn_compatible_gru_cell".

    Args:
        num_units: the size of state and output.
        reuse: whether the variables must be there already.
        kernel_initializer: of all kernels.

    Variables: gates/kernel, gates/bias, candidate/input_projection/ and candidate/hidden_projection/ kernel
        and bias.
    """

    def __init__(self, num_units: int, reuse: Any = None, kernel_initializer: Any = None) -> None:
        super().__init__(num_units, activation=None, reuse=reuse, kernel_initializer=kernel_initializer)

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables."""
        units, depth, start = self._num_units, int(inputs_shape[-1]), self._kernel_initializer
        ones = tf.constant_initializer(1.0, dtype=self.dtype)
        self._gate_kernel = self.add_matrix("gates/", depth + units, 2 * units, start)
        self._gate_bias = self.add_bias("gates/", 2 * units, ones)
        self._input_kernel = self.add_matrix("candidate/input_projection/", depth, units, start)
        self._hidden_kernel = self.add_matrix("candidate/hidden_projection/", units, units, start)
        self._input_bias = self.add_bias("candidate/input_projection/", units)
        self._hidden_bias = self.add_bias("candidate/hidden_projection/", units)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Output and new state, both [batch, num_units]."""
        gates = tf.nn.bias_add(tf.matmul(tf.concat([inputs, state], 1), self._gate_kernel), self._gate_bias)
        reset, update = tf.split(tf.sigmoid(gates), 2, 1)
        of_state = tf.nn.bias_add(tf.matmul(state, self._hidden_kernel), self._hidden_bias)
        of_inputs = tf.nn.bias_add(tf.matmul(inputs, self._input_kernel), self._input_bias)
        candidate = tf.tanh(of_inputs + reset * of_state)
        new_state = (1 - update) * candidate + update * state
        return new_state, new_state
