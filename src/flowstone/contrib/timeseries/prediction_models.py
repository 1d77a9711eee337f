"""What an autoregressive model predicts with: from an input window, the values of an output window.

A prediction model is any callable of `input_window_features` [batch, input window, features] and
`output_window_features` [batch, output window, features] that gives "mean" and "covariance"
[batch, output window, values]. It may be a Keras model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.rnn import LSTMBlockFusedCell

__all__ = ["FlatPredictionModel", "LSTMPredictionModel"]


class FlatPredictionModel:
    """Dense layers over both windows side by side.

    Args:
        num_features: of the values.
        input_window_size, output_window_size: the times of the windows.
        hidden_layer_sizes: the units of hidden layers with relu; none if None.
    """

    def __init__(
        self,
        num_features: int,
        input_window_size: int,
        output_window_size: int,
        hidden_layer_sizes: Sequence[int] | None = None,
    ) -> None:
        self._shape = [-1, output_window_size, num_features]
        size = num_features * output_window_size
        self._hidden = [
            tf.layers.Dense(units, activation=tf.nn.relu, name=f"dense_{number}" if number else "dense")
            for number, units in enumerate(hidden_layer_sizes or ())
        ]
        self._mean = tf.layers.Dense(size, name="predicted_mean")
        self._log_covariance = tf.layers.Dense(size, name="log_sigma_square")

    def __call__(self, input_window_features: Any, output_window_features: Any) -> dict[str, Any]:
        windows = [
            tf.layers.flatten(window)
            for window in (input_window_features, output_window_features)
            if 0 not in window.shape.as_list()[1:]
        ]
        with _variables_below("model/flat_prediction_model"):
            activation = windows[0] if len(windows) == 1 else tf.concat(windows, axis=1)
            with tf.variable_scope("sequential"):
                for layer in self._hidden:
                    activation = layer(activation)
            return {
                "mean": tf.reshape(self._mean(activation), self._shape),
                "covariance": tf.reshape(tf.exp(self._log_covariance(activation)), self._shape),
            }


class LSTMPredictionModel:
    """An LSTM over the input window, whose last state another begins with over the output window.

    Args:
        num_features: of the values.
        input_window_size, output_window_size: the times of the windows.
        num_units: of either LSTM.
    """

    def __init__(
        self, num_features: int, input_window_size: int, output_window_size: int, num_units: int = 128
    ) -> None:
        self._encoder = LSTMBlockFusedCell(num_units=num_units, name="encoder")
        self._decoder = LSTMBlockFusedCell(num_units=num_units, name="decoder")
        self._mean = tf.layers.Dense(num_features, name="mean_transform")
        self._log_covariance = tf.layers.Dense(num_features, name="covariance_transform")

    def __call__(self, input_window_features: Any, output_window_features: Any) -> dict[str, Any]:
        before = tf.transpose(input_window_features, [1, 0, 2])
        after = tf.transpose(output_window_features, [1, 0, 2])
        state = self._encoder(before, dtype=before.dtype)[1]
        outputs = self._decoder(after, dtype=after.dtype, initial_state=state)[0]
        decoded = tf.transpose(outputs, [1, 0, 2])
        with _variables_below("model/lstm_prediction_model"):
            return {"mean": self._mean(decoded), "covariance": tf.exp(self._log_covariance(decoded))}


def _variables_below(name: str) -> Any:
    """The variable scope of TensorFlow's prediction models: the same wherever they are called."""
    return tf.variable_scope(tf.VariableScope(reuse=tf.AUTO_REUSE, name=name, use_resource=True))
