"""Cells whose units do not see each other's state: IndRNN and its kin (Li et al. 2018, arXiv 1803.04831),
and SRU."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.layers.lstm_cells import LSTMStateTuple
from flowstone.layers.recurrent_cells import LayerOfUnits, input_depth

__all__ = ["IndRNNCell", "IndyGRUCell", "IndyLSTMCell", "SRUCell"]


def _limits() -> Any:
    return tf.random_uniform_initializer(-1, 1)


class _Independent(LayerOfUnits):
    """The base: an activation (default: tanh), state and output of `num_units` elements."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, reuse, name, dtype, **kwargs)
        self._activation = activation or tf.tanh

    @property
    def state_size(self) -> Any:
        """num_units."""
        return self._num_units

    @property
    def output_size(self) -> Any:
        """num_units."""
        return self._num_units


class IndRNNCell(_Independent):
    """``output = new state = activation(inputs · W + state * u + b)``.

    Args:
        num_units: the size of state and output. activation: default: tanh.
        reuse: whether the variables must be there already. name: default: "ind_rnn_cell". dtype: of the
            variables.

    Variables: kernel_w [depth, num_units], kernel_u [1, num_units], bias.
    """

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel_w, kernel_u and bias."""
        units = self._num_units
        self._kernel_w = self.add_weight("kernel_w", [input_depth(inputs_shape), units])
        self._kernel_u = self.add_weight("kernel_u", [1, units], initializer=_limits())
        self._bias = self.add_bias("", units)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Output and new state, both [batch, num_units]."""
        sums = tf.matmul(inputs, self._kernel_w) + state * self._kernel_u
        output = self._activation(tf.nn.bias_add(sums, self._bias))
        return output, output


class IndyGRUCell(_Independent):
    """The GRU with vectors in place of the state's matrices.

    Args:
        num_units: the size of state and output. activation: of the candidate; default: tanh.
        reuse: whether the variables must be there already.
        kernel_initializer, bias_initializer: default: the scope's; 1 for the gates' bias, else 0.
        name: default: "indy_gru_cell". dtype: of the variables.

    Variables: gates/kernel_w [depth, 2 num_units], gates/kernel_u [1, 2 num_units], gates/bias,
        candidate/kernel,
    candidate/kernel_u, candidate/bias.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def build(self, inputs_shape: Any) -> None:
        """Makes the kernels and biases of gates and candidate."""
        depth, units, start = input_depth(inputs_shape), self._num_units, self._kernel_initializer
        of_gates = self._bias_initializer or tf.constant_initializer(1.0, dtype=self.dtype)
        self._gate_w = self.add_weight("gates/kernel_w", [depth, 2 * units], initializer=start)
        self._gate_u = self.add_weight("gates/kernel_u", [1, 2 * units], initializer=_limits())
        self._gate_bias = self.add_weight("gates/bias", [2 * units], initializer=of_gates)
        self._candidate_w = self.add_weight("candidate/kernel", [depth, units], initializer=start)
        self._candidate_u = self.add_weight("candidate/kernel_u", [1, units], initializer=_limits())
        self._candidate_bias = self.add_bias("candidate/", units, self._bias_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Output and new state, both [batch, num_units]."""
        gates = tf.matmul(inputs, self._gate_w) + tf.tile(state, [1, 2]) * self._gate_u
        r, u = tf.split(tf.sigmoid(tf.nn.bias_add(gates, self._gate_bias)), 2, axis=1)
        candidate = tf.matmul(inputs, self._candidate_w) + r * state * self._candidate_u
        c = self._activation(tf.nn.bias_add(candidate, self._candidate_bias))
        new_state = u * state + (1 - u) * c
        return new_state, new_state


class IndyLSTMCell(_Independent):
    """The LSTM with vectors in place of the state's matrices (Gonnet and Deselaers 2019, arXiv 1903.08023).

    Args:
        num_units: the size of c and h. forget_bias: added to the forget gate.
        activation: default: tanh. reuse: whether the variables must be there already.
        kernel_initializer, bias_initializer: default: the scope's, and 0.
        name: default: "indy_lstm_cell". dtype: of the variables.

    Variables: kernel_w [depth, 4 num_units], kernel_u [1, 4 num_units], bias.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype)
        self._forget_bias = forget_bias
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> Any:
        """LSTMStateTuple(num_units, num_units)."""
        return LSTMStateTuple(self._num_units, self._num_units)

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel_w, kernel_u and bias."""
        size = 4 * self._num_units
        shape = [input_depth(inputs_shape), size]
        self._kernel_w = self.add_weight("kernel_w", shape, initializer=self._kernel_initializer)
        self._kernel_u = self.add_weight("kernel_u", [1, size], initializer=_limits())
        self._bias = self.add_bias("", size, self._bias_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, num_units] and the new state."""
        c, h = state
        sums = tf.matmul(inputs, self._kernel_w) + tf.tile(h, [1, 4]) * self._kernel_u
        i, j, f, o = tf.split(tf.nn.bias_add(sums, self._bias), 4, axis=1)
        new_c = c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * self._activation(j)
        new_h = self._activation(new_c) * tf.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


class SRUCell(_Independent):
    """The simple recurrent unit (Lei and Zhang 2017, https://arxiv.org/abs/1709.02755).

    Args:
        num_units: the size of state and output. activation: of the state in the output; default: tanh.
        reuse: whether the variables must be there already. name: default: "sru_cell".

    Variables: kernel [depth, 4 num_units], bias [2 num_units].
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, **kwargs)

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel and bias."""
        units = self._num_units
        self._kernel = self.add_matrix("", input_depth(inputs_shape), 4 * units)
        self._bias = self.add_bias("", 2 * units)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output and the new state, both [batch, num_units]."""
        content, f, r, highway = tf.split(value=tf.matmul(inputs, self._kernel), num_or_size_splits=4, axis=1)
        gates = tf.sigmoid(tf.nn.bias_add(tf.concat([f, r], 1), self._bias))
        f, r = tf.split(value=gates, num_or_size_splits=2, axis=1)
        c = f * state + (1.0 - f) * content
        return r * self._activation(c) + (1.0 - r) * highway, c
