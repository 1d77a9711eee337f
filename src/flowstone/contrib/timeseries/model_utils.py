"""What several models need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.timeseries.feature_keys import FilteringResults

__all__ = ["canonicalize_times_or_steps_from_output", "fully_connected", "parameter_switch"]


def fully_connected(
    inp: Any, inp_size: int, layer_size: int, name: str, activation: Any = tf.nn.relu, dtype: Any = tf.float32
) -> Any:
    """A layer [batch, layer_size] of `inp` [batch, inp_size], of the variables NAME_weight and NAME_bias."""
    weights = tf.get_variable(f"{name}_weight", [inp_size, layer_size], dtype)
    bias = tf.get_variable(f"{name}_bias", [layer_size], dtype, initializer=tf.zeros_initializer())
    output = tf.nn.xw_plus_b(inp, weights, bias)
    return output if activation is None else activation(output)


def parameter_switch(parameter_overrides: Mapping[Any, Any]) -> Callable[[Any], Any]:
    """A function that evaluates a parameter, or what takes its place in `parameter_overrides`."""

    def value(parameter: Any) -> Any:
        return tf.convert_to_tensor(parameter_overrides.get(parameter, parameter)).eval()

    return value


def canonicalize_times_or_steps_from_output(
    times: Any, steps: int | None, previous_model_output: Mapping[str, Any]
) -> np.ndarray:
    """The times [batch, times] of a prediction that goes on where an output of the model ended.

    Raises ValueError unless one of `times` and `steps` is given, or for times that do not fit the output.
    """
    if (steps is None) == (times is None):
        raise ValueError(f"one of `steps` and `times` is needed, got steps={steps} and times={times}")
    before = previous_model_output[FilteringResults.TIMES]
    if steps is not None:
        return np.asarray(before[:, -1:] + 1 + np.arange(steps)[np.newaxis])
    asked = np.array(times)
    if asked.ndim != 2:
        asked = asked[np.newaxis]
    if before.shape[0] != asked.shape[0]:
        raise ValueError(
            f"the times are for {asked.shape[0]} series, the output before has {before.shape[0]}"
        )
    if not (before[:, -1] < asked[:, 0]).all():
        raise ValueError("the times of a prediction must come after those of the output before")
    return asked
