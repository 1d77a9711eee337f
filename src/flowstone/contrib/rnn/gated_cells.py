"""Cells with other gates than those of LSTM and GRU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.rnn.cell_parts import (
    CellOfUnits,
    PairCell,
    clipped,
    known_depth,
    layer_normed,
    matrix_in_parts,
)
from flowstone.contrib.rnn.core_rnn_cell import _Linear
from flowstone.layers.lstm_cells import LSTMStateTuple
from flowstone.layers.recurrent_cells import LayerOfUnits, input_depth

__all__ = [
    "CFNCell",
    "CoupledInputForgetGateLSTMCell",
    "IntersectionRNNCell",
    "MinimalRNNCell",
    "NASCell",
    "UGRNNCell",
]


class CoupledInputForgetGateLSTMCell(PairCell):
    """The LSTM whose input gate is 1 - forget gate (Greff et al. 2015, http://arxiv.org/abs/1503.04069).

    Args:
        num_units: the size of c.
        use_peepholes: whether the gates also see c.
        initializer: not used; as in TensorFlow, variables start as the scope says.
        num_proj: the size of h and the output; default: no projection. proj_clip: clips the projection.
        num_unit_shards, num_proj_shards: in how many variables the matrices are.
        forget_bias: added to the forget gate.
        state_is_tuple: False for states that are one tensor, c before h.
        activation: of the new content and the output.
        reuse: whether the variables must be there already.
        layer_norm: whether gates and c are normalised, with norm_gain and norm_shift first.

    Variables: W_0 … [depth + size of h, 3 num_units], B, W_F_diag, W_O_diag, W_P_0 …; gamma and beta in
        transform,
    forget, output and state.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Callable[..., Any] = tf.tanh,
        reuse: Any = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(_reuse=reuse)
        if not state_is_tuple:
            tf.logging.warn(f"{self}: Using a concatenated state is slower. Use state_is_tuple=True.")
        self._num_units, self._use_peepholes = num_units, use_peepholes
        self._num_proj, self._proj_clip = num_proj, proj_clip
        self._num_unit_shards, self._num_proj_shards = num_unit_shards, num_proj_shards
        self._forget_bias, self._state_is_tuple, self._activation = forget_bias, state_is_tuple, activation
        self._layer_norm, self._norm_gain, self._norm_shift = layer_norm, norm_gain, norm_shift

    def _normed(self, x: Any, scope: str) -> Any:
        return layer_normed(x, scope, self._norm_gain, self._norm_shift) if self._layer_norm else x

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, size of h] and the new state."""
        c_prev, m_prev = self.split_state(state)
        dtype, units = inputs.dtype, self._num_units
        rows = known_depth(inputs) + int(self.output_size)
        weights = matrix_in_parts("W", [rows, 3 * units], dtype, self._num_unit_shards)
        b = tf.get_variable("B", [3 * units], initializer=tf.zeros_initializer(), dtype=dtype)
        sums = tf.matmul(tf.concat([inputs, m_prev], 1), weights)
        # As in TensorFlow, normalised gates have a bias that nothing reads.
        sums = sums if self._layer_norm else tf.nn.bias_add(sums, b)
        j, f, o = tf.split(value=sums, num_or_size_splits=3, axis=1)
        j, f, o = self._normed(j, "transform"), self._normed(f, "forget"), self._normed(o, "output")
        w_f = w_o = None
        if self._use_peepholes:
            w_f, w_o = (tf.get_variable(each, [units], dtype=dtype) for each in ("W_F_diag", "W_O_diag"))
        f += self._forget_bias
        if w_f is not None:
            f += w_f * c_prev
        gate = tf.sigmoid(f)
        c = self._normed(gate * c_prev + (1 - gate) * self._activation(j), "state")
        if w_o is not None:
            o += w_o * c
        m = tf.sigmoid(o) * self._activation(c)
        if self._num_proj is not None:
            projection = matrix_in_parts("W_P", [units, self._num_proj], dtype, self._num_proj_shards)
            m = clipped(tf.matmul(m, projection), self._proj_clip)
        return m, self.joined_state(c, m)


class UGRNNCell(CellOfUnits):
    """The update gate RNN (Collins et al. 2016, https://arxiv.org/abs/1611.09913).

    With g, c = [inputs, state] · kernel + bias: new state and output are s(g) state + (1 - s(g))
    activation(c).

    Args:
        num_units: the size of state and output.
        initializer: of the kernel. forget_bias: added to g. activation: of c.
        reuse: whether the variables must be there already.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Callable[..., Any] = tf.tanh,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._initializer = num_units, initializer
        self._forget_bias, self._activation = forget_bias, activation
        self._linear: _Linear | None = None

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Output and new state, both [batch, num_units]."""
        known_depth(inputs)
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            joined = tf.concat([inputs, state], 1)
            if self._linear is None:
                self._linear = _Linear(joined, 2 * self._num_units, True)
            g, c = tf.split(axis=1, num_or_size_splits=2, value=self._linear(joined))
            g = tf.sigmoid(g + self._forget_bias)
            new_state = g * state + (1.0 - g) * self._activation(c)
        return new_state, new_state


class IntersectionRNNCell(CellOfUnits):
    """The +RNN (Collins et al. 2016, https://arxiv.org/abs/1611.09913): gated connections in time and depth.

    Args:
        num_units: the size of state and output.
        num_in_proj: the size that inputs are projected to; it must be num_units, which inputs have without
            it.
        initializer: of the kernels. forget_bias: added to both gates.
        y_activation: of the new output.
        reuse: whether the variables must be there already.

    A step raises ValueError for inputs of another size.
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Callable[..., Any] = tf.nn.relu,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._num_in_proj, self._initializer = num_units, num_in_proj, initializer
        self._forget_bias, self._y_activation = forget_bias, y_activation
        self._projection: _Linear | None = None
        self._linear: _Linear | None = None

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Output and new state, both [batch, num_units]."""
        depth = known_depth(inputs)
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            if depth != self._num_units:
                if self._num_in_proj is None:
                    raise ValueError(
                        "Must have input size == output size for Intersection RNN. To fix, num_in_proj"
                        " should be "
                        "set to num_units at cell init."
                    )
                with tf.variable_scope("in_projection"):
                    if self._projection is None:
                        self._projection = _Linear(inputs, self._num_in_proj, True)
                    inputs = self._projection(inputs)
            joined = tf.concat([inputs, state], 1)
            if self._linear is None:
                self._linear = _Linear(joined, 4 * self._num_units, True)
            h_gate, h, y_gate, y = tf.split(self._linear(joined), 4, axis=1)
            h_gate, y_gate = tf.sigmoid(h_gate + self._forget_bias), tf.sigmoid(y_gate + self._forget_bias)
            new_state = h_gate * state + (1.0 - h_gate) * tf.tanh(h)
            new_y = y_gate * inputs + (1.0 - y_gate) * self._y_activation(y)
        return new_y, new_state


class NASCell(LayerOfUnits):
    """The cell that a search found (Zoph and Le 2016, https://arxiv.org/abs/1611.01578).

    Args:
        num_units: the size of c.
        num_proj: the size of h and the output; default: no projection.
        use_bias: whether there is a bias.
        reuse: whether the variables must be there already.

    Variables: recurrent_kernel, kernel, bias, projection_weights.
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: Any = None,
        **kwargs: Any,
    ) -> None:
        use_bias = kwargs.pop("use_biases", use_bias)  # the name in TensorFlow 1.4
        super().__init__(num_units, reuse, **kwargs)
        self._num_proj, self._use_bias = num_proj, use_bias

    @property
    def state_size(self) -> Any:
        """LSTMStateTuple(num_units, size of h)."""
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> Any:
        """num_proj, or num_units."""
        return self._num_proj or self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes the kernels, the bias and the projection."""
        units, depth = self._num_units, input_depth(inputs_shape)
        self._recurrent_kernel = self.add_weight("recurrent_kernel", [self.output_size, 8 * units])
        self._kernel = self.add_weight("kernel", [depth, 8 * units])
        if self._use_bias:
            self._bias = self.add_weight("bias", [8 * units], initializer=tf.zeros_initializer())
        if self._num_proj is not None:
            self._projection = self.add_weight("projection_weights", [units, self._num_proj])
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, size of h] and the new state."""
        c_prev, m_prev = state
        from_m = tf.matmul(m_prev, self._recurrent_kernel)
        from_x = tf.matmul(inputs, self._kernel)
        if self._use_bias:
            from_m = tf.nn.bias_add(from_m, self._bias)
        m = tf.split(axis=1, num_or_size_splits=8, value=from_m)
        x = tf.split(axis=1, num_or_size_splits=8, value=from_x)
        first = [
            tf.sigmoid(x[0] + m[0]), tf.nn.relu(x[1] + m[1]), tf.sigmoid(x[2] + m[2]), tf.nn.relu(x[3] *
            m[3]), tf.tanh(x[4] + m[4]), tf.sigmoid(x[5] + m[5]), tf.tanh(x[6] + m[6]), tf.sigmoid(x[7] +
            m[7]),
        ]  # fmt: skip
        second = [
            tf.tanh(first[0] * first[1]), tf.tanh(first[2] + first[3]),
            tf.tanh(first[4] * first[5]), tf.sigmoid(first[6] + first[7]),
        ]  # fmt: skip
        new_c = tf.tanh(second[0] + c_prev) * second[1]
        new_m = tf.tanh(new_c * tf.tanh(second[2] + second[3]))
        if self._num_proj is not None:
            new_m = tf.matmul(new_m, self._projection)
        return new_m, LSTMStateTuple(new_c, new_m)


class MinimalRNNCell(LayerOfUnits):
    """The minimal RNN (Chen 2017, https://arxiv.org/abs/1711.06788): z = activation(inputs), new state and
    output u state + (1 - u) z with the gate u of z and the state.

    Args:
        num_units: the size of state and output. activation: of z; default: tanh.
        reuse: whether the variables must be there already.
        kernel_initializer, bias_initializer: default: that of the scope, 1 for the gate's bias.
        name: of the scope; default: "minimal_rnn_cell".
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, reuse, name, **kwargs)
        self._activation = activation or tf.tanh
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> int:
        """num_units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """num_units."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel and bias."""
        depth, units = input_depth(inputs_shape), self._num_units
        self.kernel = self.add_weight(
            "kernel", [depth + 2 * units, units], initializer=self._kernel_initializer
        )
        ones = self._bias_initializer or tf.constant_initializer(1.0)
        self.bias = self.add_weight("bias", [units], initializer=ones)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Output and new state, both [batch, num_units]."""
        depth = inputs.get_shape()[1].value
        of_inputs, of_both = tf.split(value=self.kernel, num_or_size_splits=[depth, 2 * self._num_units])
        z = self._activation(tf.matmul(inputs, of_inputs))
        u = tf.sigmoid(tf.nn.bias_add(tf.matmul(tf.concat([z, state], 1), of_both), self.bias))
        new_state = u * state + (1 - u) * z
        return new_state, new_state


class CFNCell(LayerOfUnits):
    """The chaos-free network (Laurent and von Brecht 2016, https://arxiv.org/abs/1612.06212).

    New state and output are f activation(state) + (1 - i) activation(inputs · kernel), with the gates f and
    i.

    Args:
        num_units: the size of state and output. activation: default: tanh.
        reuse: whether the variables must be there already.
        kernel_initializer, bias_initializer: default: that of the scope, 1 for the bias.
        name: of the scope; default: "cfn_cell".
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, reuse, name, **kwargs)
        self._activation = activation or tf.tanh
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> int:
        """num_units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """num_units."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel, recurrent_kernel and bias."""
        depth, units, start = input_depth(inputs_shape), self._num_units, self._kernel_initializer
        self.kernel = self.add_weight("kernel", [depth, 3 * units], initializer=start)
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [units, 2 * units], initializer=start)
        ones = self._bias_initializer or tf.constant_initializer(1.0)
        self.bias = self.add_weight("bias", [2 * units], initializer=ones)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Output and new state, both [batch, num_units]."""
        units = self._num_units
        gates_x, new = tf.split(
            value=tf.matmul(inputs, self.kernel), num_or_size_splits=[2 * units, units], axis=1
        )
        gates = tf.sigmoid(tf.nn.bias_add(gates_x + tf.matmul(state, self.recurrent_kernel), self.bias))
        forget, update = tf.split(value=gates, num_or_size_splits=2, axis=1)
        new_state = forget * self._activation(state) + (1 - update) * self._activation(new)
        return new_state, new_state
