"""LSTM cells for special inputs: events in time, groups of features, images."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.rnn.cell_parts import PairCell
from flowstone.contrib.rnn.core_rnn_cell import _Linear
from flowstone.layers.lstm_cells import LSTMStateTuple
from flowstone.layers.recurrent_cells import RNNCell

__all__ = [
    "Conv1DLSTMCell",
    "Conv2DLSTMCell",
    "Conv3DLSTMCell",
    "ConvLSTMCell",
    "GLSTMCell",
    "PhasedLSTMCell",
]


def _random_exp_initializer(minval: float, maxval: float, seed: int | None = None, dtype: Any = None) -> Any:
    """Numbers whose logarithms are uniform between those of the arguments."""
    chosen = dtype or tf.float32

    def initializer(shape: Any, dtype: Any = chosen, partition_info: Any = None) -> Any:
        return tf.exp(tf.random_uniform(shape, math.log(minval), math.log(maxval), dtype, seed=seed))

    return initializer


class PhasedLSTMCell(PairCell):
    """The LSTM that opens now and then, by an oscillation (Neil et al. 2016,
    https://arxiv.org/abs/1610.09513).

    Args:
        num_units: the size of c and h. use_peepholes: whether gates also see c.
        leak: what passes while it is closed. ratio_on: the part of the period in which it is open.
        trainable_ratio_on: whether training changes that.
        period_init_min, period_init_max: the least and greatest first period.
        reuse: whether the variables must be there already.

    Inputs are a pair: times [batch, 1], and [batch, depth]. Variables: mask_gates/, new_input/ and
        output_gate/ kernel
    and bias, period, phase and ratio_on [num_units].
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: float = 0.001,
        ratio_on: float = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: float = 1.0,
        period_init_max: float = 1000.0,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._use_peepholes, self._leak = num_units, use_peepholes, leak
        self._ratio_on, self._trainable_ratio_on = ratio_on, trainable_ratio_on
        self._period_init_min, self._period_init_max = period_init_min, period_init_max
        self._linears: dict[str, _Linear] = {}

    def _linear(self, scope: str, args: list[Any], size: int, activation: Callable[[Any], Any]) -> Any:
        with tf.variable_scope(scope):
            if scope not in self._linears:
                self._linears[scope] = _Linear(args, size, True)
            return activation(self._linears[scope](args))

    def _openness(self, time: Any, dtype: Any) -> Any:
        shape = [self._num_units]
        periods = _random_exp_initializer(self._period_init_min, self._period_init_max)
        period = tf.get_variable("period", shape, initializer=periods, dtype=dtype)
        phases = tf.random_uniform_initializer(0.0, period.initial_value)
        phase = tf.get_variable("phase", shape, initializer=phases, dtype=dtype)
        ratio_on = tf.get_variable(
            "ratio_on",
            shape,
            initializer=tf.constant_initializer(self._ratio_on),
            dtype=dtype,
            trainable=self._trainable_ratio_on,
        )
        time = tf.cast(time, dtype)
        shifted = time - phase
        # The remainder's gradient is that of its first argument.
        remainder = tf.stop_gradient(tf.mod(shifted, period) - shifted) + shifted
        cycle = tf.cast(remainder / period, dtype)
        rising = 2 * cycle / ratio_on
        openness = tf.where(cycle < ratio_on, 2 - rising, self._leak * cycle)
        return tf.where(cycle < 0.5 * ratio_on, rising, openness)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, num_units] and the new state."""
        c_prev, h_prev = state
        time, x = inputs
        units, peeped = self._num_units, [c_prev] if self._use_peepholes else []
        gates = self._linear("mask_gates", [x, h_prev, *peeped], 2 * units, tf.sigmoid)
        i, f = tf.split(axis=1, num_or_size_splits=2, value=gates)
        new_c = c_prev * f + i * self._linear("new_input", [x, h_prev], units, tf.tanh)
        peeped = [new_c] if self._use_peepholes else []
        o = self._linear("output_gate", [x, h_prev, *peeped], units, tf.sigmoid)
        new_h = tf.tanh(new_c) * o
        k = self._openness(time, x.dtype)
        new_c = k * new_c + (1 - k) * c_prev
        new_h = k * new_h + (1 - k) * h_prev
        return new_h, LSTMStateTuple(new_c, new_h)


class GLSTMCell(PairCell):
    """The LSTM in groups, each with its own part of inputs and output (Kuchaiev and Ginsburg 2017,
    https://arxiv.org/abs/1703.10722).

    Args:
        num_units: the size of c. initializer: of the kernels.
        num_proj: the size of h and the output; default: no projection.
        number_of_groups: divides num_units, num_proj and the inputs.
        forget_bias: added to the forget gate. activation: of new content and output.
        reuse: whether the variables must be there already.

    Variables: group0/kernel …, bias_i, bias_j, bias_f, bias_o, projection/kernel. ValueError for sizes that
        the groups
    do not divide.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Callable[..., Any] = tf.tanh,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if num_units % number_of_groups:
            raise ValueError("num_units must be divisible by number_of_groups")
        if num_proj and num_proj % number_of_groups:
            raise ValueError("num_proj must be divisible by number_of_groups")
        self._num_units, self._initializer, self._num_proj = num_units, initializer, num_proj
        self._groups, self._forget_bias, self._activation = number_of_groups, forget_bias, activation
        self._linears: dict[str, _Linear] = {}

    def _linear(self, scope: str, x: Any, size: int) -> Any:
        if scope not in self._linears:
            self._linears[scope] = _Linear(x, size, False)
        return self._linears[scope](x)

    def _of_group(self, x: Any, group: int, size: int) -> Any:
        return tf.slice(x, [0, group * size], [-1, size], name=f"GLSTM_group{group}_input_generation")

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, size of h] and the new state."""
        c, m = state
        units, count, dtype = self._num_units, self._groups, inputs.dtype
        depth = inputs.shape[1].value
        if depth is None:
            raise ValueError("input size must be statically known")
        if depth % count:
            raise ValueError(f"inputs of size {depth} cannot be split in {count} groups")
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            parts: list[list[Any]] = []
            for group in range(count):
                with tf.variable_scope(f"group{group}"):
                    own = [
                        self._of_group(inputs, group, depth // count),
                        self._of_group(m, group, self.output_size // count),
                    ]
                    sums = self._linear(f"group{group}", tf.concat(own, axis=1), 4 * units // count)
                    parts.append(tf.split(sums, 4, 1))
            i, j, f, o = (
                tf.nn.bias_add(
                    tf.concat([part[place] for part in parts], axis=1),
                    tf.get_variable(
                        f"bias_{gate}", [units], dtype=dtype, initializer=tf.constant_initializer(0.0)
                    ),
                )
                for place, gate in enumerate("ijfo")
            )
        new_c = tf.sigmoid(f + self._forget_bias) * c + tf.sigmoid(i) * self._activation(j)
        new_m = tf.sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            with tf.variable_scope("projection"):
                new_m = self._linear("projection", new_m, self._num_proj)
        return new_m, LSTMStateTuple(new_c, new_m)


class ConvLSTMCell(RNNCell):
    """The LSTM with convolutions for products (Shi et al. 2015, https://arxiv.org/abs/1506.04214).

    Args:
        conv_ndims: 1, 2 or 3.
        input_shape: of inputs without the batch, channels last.
        output_channels: of state and output.
        kernel_shape: conv_ndims integers.
        use_bias: whether there are ``biases``.
        skip_connection: whether inputs are put behind the output's channels.
        forget_bias: added to the forget gate.
        initializers: of kernel and biases.
        name: of the scope.

    ValueError for an `input_shape` of another rank.
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Any,
        output_channels: int,
        kernel_shape: Any,
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._conv_ndims, self._input_shape = conv_ndims, list(input_shape)
        self._output_channels, self._kernel_shape = output_channels, list(kernel_shape)
        self._use_bias, self._forget_bias = use_bias, forget_bias
        self._skip_connection, self._initializers = skip_connection, initializers
        self._total_output_channels = output_channels + (self._input_shape[-1] if skip_connection else 0)
        self._state = tf.TensorShape([*self._input_shape[:-1], output_channels])

    @property
    def output_size(self) -> Any:
        """The output's shape without the batch."""
        return tf.TensorShape([*self._input_shape[:-1], self._total_output_channels])

    @property
    def state_size(self) -> Any:
        """The shapes of c and h without the batch."""
        return LSTMStateTuple(self._state, self._state)

    def call(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """The output and the new state."""
        cell, hidden = state
        sums = _conv(
            [inputs, hidden],
            self._kernel_shape,
            4 * self._output_channels,
            self._use_bias,
            self._initializers,
        )
        i, j, f, o = tf.split(value=sums, num_or_size_splits=4, axis=self._conv_ndims + 1)
        new_cell = tf.sigmoid(f + self._forget_bias) * cell + tf.sigmoid(i) * tf.tanh(j)
        output = tf.tanh(new_cell) * tf.sigmoid(o)
        if self._skip_connection:
            return tf.concat([output, inputs], axis=-1), LSTMStateTuple(new_cell, output)
        return output, LSTMStateTuple(new_cell, output)


def _conv(args: list[Any], filter_size: list[int], features: int, has_bias: bool, initializers: Any) -> Any:
    """The convolution of all channels of `args` with ``kernel``, plus ``biases``."""
    channels = sum(each.get_shape().as_list()[-1] for each in args)
    dtype = args[0].dtype
    kernel = tf.get_variable(
        "kernel", [*filter_size, channels, features], dtype=dtype, initializer=initializers
    )
    result = tf.nn.convolution(tf.concat(axis=len(filter_size) + 1, values=args), kernel, padding="SAME")
    if not has_bias:
        return result
    zeros = tf.constant_initializer(0.0, dtype=dtype)
    return result + tf.get_variable("biases", [features], dtype=dtype, initializer=zeros)


class Conv1DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of sequences."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of images."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of volumes."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)
