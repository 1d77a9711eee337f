"""Recurrent layers with TensorFlow 1's defaults, and `time_major`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.keras.extensions.graph_layers import CellOfGraph
from flowstone.keras.extensions.recurrent_cells import with_flat_states
from flowstone.keras.recurrence import rnn
from flowstone.layers.recurrent_cells import RNNCell

__all__ = ["extend", "set_defaults"]

_DEFAULTS = {"recurrent_activation": "hard_sigmoid", "implementation": 1}
_UNKNOWN_TIME = (
    "Cannot unroll a RNN if the time dimension is undefined. \n- If using a Sequential model, specify the "
    "time dimension by passing an `input_shape` or `batch_input_shape` argument to your first layer. If your "
    "first layer is an Embedding, you can also use the `input_length` argument.\n- If using the functional "
    "API, specify the time dimension by passing a `shape` or `batch_shape` argument to your Input layer."
)
_CHANGED = ("LSTM", "LSTMCell", "GRU", "GRUCell", "PeepholeLSTMCell")


def set_defaults(function: Any, values: dict[str, Any]) -> None:
    """Gives parameters of `function` other default values."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.default is not p.empty]
    function.__defaults__ = tuple(values.get(p.name, p.default) for p in parameters)


def _changed_init(published: Callable[..., None]) -> Callable[..., None]:
    def __init__(
        self: Any,
        *arguments: Any,
        time_major: bool = False,
        zero_output_for_mask: bool = False,
        **keywords: Any,
    ) -> None:
        """A recurrent layer; see the package.

        Args:
            time_major: whether inputs and sequences are [time, batch, …].
            zero_output_for_mask: whether sequences are zeros where the mask is False.
        """
        published(self, *arguments, **keywords)
        self.time_major, self.zero_output_for_mask = time_major, zero_output_for_mask

    return __init__


def call(
    self: Any,
    inputs: Any,
    mask: Any = None,
    training: Any = None,
    initial_state: Any = None,
    constants: Any = None,
) -> Any:
    """The outputs [batch, …] of the last step, or with `return_sequences` of all; with `return_state` the
    list of them and the last states.
    """
    inputs, states, constants = _parted(self, inputs, initial_state, constants)
    if len(states) != len(self.states):
        raise ValueError(f"Layer has {len(self.states)} states but was passed {len(states)} initial states.")
    if self.unroll and inputs.shape[0 if self.time_major else 1].value is None:
        raise ValueError(_UNKNOWN_TIME)
    last, outputs, states = rnn(
        _step_of(self, training, constants),
        inputs,
        states,
        constants=constants,
        go_backwards=self.go_backwards,
        mask=nest.flatten(mask)[0] if isinstance(mask, (list, tuple)) else mask,
        unroll=self.unroll,
        time_major=self.time_major,
        zero_output_for_mask=self.zero_output_for_mask and self.return_sequences,
    )
    if self.stateful:
        self.add_update([tf.assign(*pair) for pair in zip(self.states, states)], inputs)
    output = outputs if self.return_sequences else last
    if getattr(last, "_uses_learning_phase", False):
        for each in (output, *states):
            each._uses_learning_phase = True
    return [output, *states] if self.return_state else output


def _parted(layer: Any, inputs: Any, states: Any, constants: Any) -> tuple[Any, list[Any], list[Any] | None]:
    """The inputs, the states to begin with and the constants, which may also be in the list of inputs."""
    states = [states] if states is not None and not isinstance(states, (list, tuple)) else states
    constants = (
        [constants] if constants is not None and not isinstance(constants, (list, tuple)) else constants
    )
    if isinstance(inputs, (list, tuple)):
        inputs, *more = inputs
        count = layer._num_constants or 0
        given, found = more[: len(more) - count], more[len(more) - count :]
        if given and states is not None:
            raise ValueError("Layer was passed initial state via both kwarg and inputs list")
        if found and constants is not None:
            raise ValueError("Layer was passed constants via both kwarg and inputs list")
        states, constants = given or states, found or constants
    if states is None:
        states = layer.states if layer.stateful else layer.get_initial_state(inputs)
    return inputs, list(states), None if constants is None else list(constants)


def _step_of(layer: Any, training: Any, constants: Any) -> Callable[[Any, list[Any]], Any]:
    """The layer's cell as a function of inputs and states, after which the constants come."""
    cell: Any = CellOfGraph(layer.cell) if isinstance(layer.cell, RNNCell) else layer.cell
    for each in getattr(cell, "cells", [cell]):
        each._dropout_mask = each._recurrent_dropout_mask = None
    parameters = inspect.signature(cell.call).parameters
    keywords = {"training": training} if "training" in parameters else {}
    if not constants:
        return lambda inputs, states: cell.call(inputs, states, **keywords)
    if "constants" not in parameters:
        raise ValueError("RNN cell does not support constants")
    count = len(constants)
    return lambda inputs, states: cell.call(inputs, states[:-count], constants=states[-count:], **keywords)


def _changed_config(published: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def get_config(self: Any) -> dict[str, Any]:
        """What it is made of."""
        config = published(self)
        cell = {"cell": config.pop("cell")} if "cell" in config else {}
        zeros = {"zero_output_for_mask": True} if self.zero_output_for_mask else {}
        return {**config, "time_major": self.time_major, **zeros, **cell}

    return get_config


def extend(module: ModuleType) -> None:
    """Gives the classes of `keras.layers.recurrent` what TensorFlow's have."""
    names = vars(module)
    for name in _CHANGED:
        set_defaults(names[name].__init__, _DEFAULTS)
    recurrent = names["RNN"]
    recurrent.__init__ = _changed_init(recurrent.__init__)
    recurrent.call = with_flat_states(call)
    recurrent.get_config = _changed_config(recurrent.get_config)
