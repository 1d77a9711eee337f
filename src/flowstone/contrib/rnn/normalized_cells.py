"""LSTM cells with normalised gates, or normalised weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.rnn.cell_parts import PairCell, clipped, known_depth, layer_normed
from flowstone.layers.lstm_cells import LSTMStateTuple

__all__ = ["LayerNormBasicLSTMCell", "LayerNormLSTMCell", "WeightNormLSTMCell"]


class LayerNormBasicLSTMCell(PairCell):
    """The LSTM with layer normalisation (Ba et al. 2016, https://arxiv.org/abs/1607.06450) and dropout of
    the new content (Semeniuta et al. 2016, https://arxiv.org/abs/1603.05118).

    Args:
        num_units: the size of c and h. forget_bias: added to the forget gate. input_size: unused.
        activation: of new content and output.
        layer_norm: whether gates and c are normalised; else there is a bias.
        norm_gain, norm_shift: the first gamma and beta.
        dropout_keep_prob: a number or scalar tensor; 1 for no dropout. dropout_prob_seed: its seed.
        reuse: whether the variables must be there already.

    Variables: kernel, bias; gamma and beta in input, transform, forget, output and state.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Callable[..., Any] = tf.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if input_size is not None:
            tf.logging.warn(f"{self}: The input_size parameter is deprecated.")
        self._num_units, self._forget_bias, self._activation = num_units, forget_bias, activation
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed
        self._layer_norm, self._norm_gain, self._norm_shift = layer_norm, norm_gain, norm_shift

    def _normed(self, x: Any, scope: str) -> Any:
        return layer_normed(x, scope, self._norm_gain, self._norm_shift) if self._layer_norm else x

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, num_units] and the new state."""
        c, h = state
        joined, size = tf.concat([inputs, h], 1), 4 * self._num_units
        kernel = tf.get_variable("kernel", [joined.get_shape()[1].value, size], dtype=joined.dtype)
        sums = tf.matmul(joined, kernel)
        if not self._layer_norm:
            sums = tf.nn.bias_add(sums, tf.get_variable("bias", [size], dtype=joined.dtype))
        parts = tf.split(value=sums, num_or_size_splits=4, axis=1)
        i, j, f, o = (
            self._normed(part, scope)
            for part, scope in zip(parts, ("input", "transform", "forget", "output"))
        )
        g = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            g = tf.nn.dropout(g, self._keep_prob, seed=self._seed)
        new_c = self._normed(c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * g, "state")
        new_h = self._activation(new_c) * tf.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


class LayerNormLSTMCell(PairCell):
    """The LSTM with peepholes, clipping, projection, and layer normalisation if asked for.

    Args:
        num_units, use_peepholes, cell_clip, initializer, num_proj, proj_clip, forget_bias: as of `LSTMCell`.
        activation: of new content and output; default: tanh.
        layer_norm: whether gates and c are normalised, with norm_gain and norm_shift first.
        reuse: whether the variables must be there already.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1.0,
        activation: Any = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units, self._use_peepholes, self._cell_clip = num_units, use_peepholes, cell_clip
        self._initializer, self._num_proj, self._proj_clip = initializer, num_proj, proj_clip
        self._forget_bias, self._activation = forget_bias, activation or tf.tanh
        self._layer_norm, self._norm_gain, self._norm_shift = layer_norm, norm_gain, norm_shift

    def _normed(self, x: Any, scope: str) -> Any:
        return layer_normed(x, scope, self._norm_gain, self._norm_shift) if self._layer_norm else x

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, size of h] and the new state."""
        c, h = state
        units, dtype, depth = self._num_units, inputs.dtype, known_depth(inputs)
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            kernel = tf.get_variable("kernel", [depth + self.output_size, 4 * units], dtype=dtype)
            bias = tf.get_variable("bias", [4 * units], dtype=dtype, initializer=tf.zeros_initializer())
            sums = tf.matmul(tf.concat([inputs, h], 1), kernel)
            # As in TensorFlow, normalised gates have a bias that nothing reads.
            sums = sums if self._layer_norm else tf.nn.bias_add(sums, bias)
            parts = tf.split(value=sums, num_or_size_splits=4, axis=1)
            i, j, f, o = (
                self._normed(part, scope)
                for part, scope in zip(parts, ("input", "transform", "forget", "output"))
            )
            f += self._forget_bias
            if self._use_peepholes:
                w_f, w_i, w_o = (tf.get_variable(f"w_{gate}_diag", [units], dtype=dtype) for gate in "fio")
                f, i = f + w_f * c, i + w_i * c
            new_c = tf.sigmoid(f) * c + tf.sigmoid(i) * self._activation(j)
            new_c = clipped(self._normed(new_c, "state"), self._cell_clip)
            if self._use_peepholes:
                o += w_o * new_c
            new_h = tf.sigmoid(o) * self._activation(new_c)
            if self._num_proj is not None:
                with tf.variable_scope("projection"):
                    projection = tf.get_variable("kernel", [units, self._num_proj], dtype=dtype)
                    new_h = clipped(tf.matmul(new_h, projection), self._proj_clip)
        return new_h, LSTMStateTuple(new_c, new_h)


class WeightNormLSTMCell(PairCell):
    """The LSTM whose kernels are g · v / |v|, column by column (Salimans and Kingma 2016, arXiv 1602.07868).

    Args:
        num_units: the size of c.
        norm: whether weights are normalised.
        use_peepholes, cell_clip, initializer, num_proj, proj_clip, forget_bias: as of `LSTMCell`.
        activation: of new content and output; default: tanh.
        reuse: whether the variables must be there already.

    The variables lie in ``wn_lstm_cell``; the g are norm_0 (of inputs), norm_1 (of h), projection/norm_0.
    """

    def __init__(
        self,
        num_units: int,
        norm: bool = True,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1,
        activation: Any = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse, name="wn_lstm_cell")
        self._num_units, self._norm, self._use_peepholes = num_units, norm, use_peepholes
        self._cell_clip, self._initializer = cell_clip, initializer
        self._num_proj, self._proj_clip = num_proj, proj_clip
        self._forget_bias, self._activation = forget_bias, activation or tf.tanh

    def _normalized(self, weights: Any, name: str) -> Any:
        size = weights.get_shape().as_list()[1]
        g = tf.get_variable(name, [size], dtype=weights.dtype, initializer=tf.ones_initializer())
        return tf.nn.l2_normalize(weights, axis=0) * g

    def _product(self, args: list[Any], size: int, has_bias: bool) -> Any:
        """args · kernel + bias, each part of the kernel normalised by itself."""
        depths, dtype = [known_depth(each) for each in args], args[0].dtype
        kernel = tf.get_variable("kernel", [sum(depths), size], dtype=dtype)
        if self._norm:
            parts = tf.split(kernel, depths) if len(depths) > 1 else [kernel]
            kernel = tf.concat([self._normalized(part, f"norm_{i}") for i, part in enumerate(parts)], 0)
        result = tf.matmul(tf.concat(args, 1), kernel)
        if not has_bias:
            return result
        bias = tf.get_variable("bias", [size], dtype=dtype, initializer=tf.zeros_initializer())
        return tf.nn.bias_add(result, bias)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, size of h] and the new state."""
        c, h = state
        units, dtype = self._num_units, inputs.dtype
        with tf.variable_scope("wn_lstm_cell", initializer=self._initializer):
            sums = self._product([inputs, h], 4 * units, True)
            i, j, f, o = tf.split(value=sums, num_or_size_splits=4, axis=1)
            f += self._forget_bias
            if self._use_peepholes:
                w_f, w_i, w_o = (tf.get_variable(f"w_{gate}_diag", [units], dtype=dtype) for gate in "fio")
                f, i = f + w_f * c, i + w_i * c
            new_c = clipped(tf.sigmoid(f) * c + tf.sigmoid(i) * self._activation(j), self._cell_clip)
            if self._use_peepholes:
                o += w_o * new_c
            new_h = tf.sigmoid(o) * self._activation(new_c)
            if self._num_proj is not None:
                with tf.variable_scope("projection"):
                    new_h = clipped(self._product([new_h], self._num_proj, False), self._proj_clip)
        return new_h, LSTMStateTuple(new_c, new_h)
