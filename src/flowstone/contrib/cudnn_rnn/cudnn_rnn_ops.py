"""Models of cuDNN's whose parameters are an argument: the classes of
`tensorflow.contrib.cudnn_rnn.python.ops`.

A model is called with its parameters, a vector of `params_size` elements. `params_to_canonical` gives the
matrices and biases within it, gate by gate.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.cudnn_rnn import parameter_formats as formats

__all__ = ["CudnnGRU", "CudnnLSTM", "CudnnRNNRelu", "CudnnRNNTanh"]

CUDNN_RNN_UNIDIRECTION = "unidirectional"
CUDNN_RNN_BIDIRECTION = "bidirectional"
CUDNN_LSTM, CUDNN_GRU = "lstm", "gru"
CUDNN_RNN_RELU, CUDNN_RNN_TANH = "rnn_relu", "rnn_tanh"
CUDNN_INPUT_LINEAR_MODE = "linear_input"


class _CudnnRNN:
    """The base.

    Args:
        num_layers, num_units, input_size: of the model.
        input_mode: "linear_input".
        direction: "unidirectional" or "bidirectional".
        dtype: of inputs and parameters.
        dropout: the probability of dropping what one layer gives the next. seed: of dropout.
    """

    _rnn_mode: str
    _format: type[formats.CudnnParamsFormatConverter]

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_size: int,
        input_mode: str = CUDNN_INPUT_LINEAR_MODE,
        direction: str = CUDNN_RNN_UNIDIRECTION,
        dtype: Any = tf.float32,
        dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        self._converter = self._format(
            num_layers, num_units, input_size, input_mode=input_mode, direction=direction
        )
        self._input_mode, self._direction, self._dtype = input_mode, direction, dtype
        self._dropout, self._seeds = dropout, tf.get_seed(seed)

    def params_size(self) -> Any:
        """The number of parameters, a scalar int32."""
        return tf.constant(self._converter.params_size(), tf.int32)

    def params_to_canonical(self, params: Any) -> tuple[list[Any], list[Any]]:
        """The matrices and the biases in the vector `params`."""
        parts = self._converter.split(params)
        return parts[: len(parts) // 2], parts[len(parts) // 2 :]

    def canonical_to_params(self, weights: list[Any], biases: list[Any]) -> Any:
        """The vector of the matrices and biases."""
        return tf.concat([tf.reshape(part, [-1]) for part in [*weights, *biases]], 0)

    def _run(self, x: Any, h: Any, c: Any, params: Any, is_training: bool) -> Any:
        seed, seed2 = self._seeds
        return tf.raw_ops.CudnnRNN(
            input=x,
            input_h=h,
            input_c=tf.constant([], self._dtype) if c is None else c,
            params=params,
            rnn_mode=self._rnn_mode,
            input_mode=self._input_mode,
            direction=self._direction,
            dropout=self._dropout,
            seed=seed or 0,
            seed2=seed2 or 0,
            is_training=is_training,
        )


class CudnnLSTM(_CudnnRNN):
    """Layers of LSTM. See `_CudnnRNN` for the arguments."""

    _rnn_mode = CUDNN_LSTM
    _format = formats.CudnnParamsFormatConverterLSTM

    def __call__(
        self, input_data: Any, input_h: Any, input_c: Any, params: Any, is_training: bool = True
    ) -> tuple[Any, Any, Any]:
        """Outputs [time, batch, units · directions], and the last h and c."""
        found = self._run(input_data, input_h, input_c, params, is_training)
        return found.output, found.output_h, found.output_c


class _WithoutC(_CudnnRNN):
    """A model whose state is h."""

    def __call__(
        self, input_data: Any, input_h: Any, params: Any, is_training: bool = True
    ) -> tuple[Any, Any]:
        """Outputs [time, batch, units · directions], and the last h."""
        found = self._run(input_data, input_h, None, params, is_training)
        return found.output, found.output_h


class CudnnGRU(_WithoutC):
    """Layers of GRU. See `_CudnnRNN` for the arguments."""

    _rnn_mode = CUDNN_GRU
    _format = formats.CudnnParamsFormatConverterGRU


class CudnnRNNRelu(_WithoutC):
    """Layers with relu. See `_CudnnRNN` for the arguments."""

    _rnn_mode = CUDNN_RNN_RELU
    _format = formats.CudnnParamsFormatConverterRelu


class CudnnRNNTanh(_WithoutC):
    """Layers with tanh. See `_CudnnRNN` for the arguments."""

    _rnn_mode = CUDNN_RNN_TANH
    _format = formats.CudnnParamsFormatConverterTanh
