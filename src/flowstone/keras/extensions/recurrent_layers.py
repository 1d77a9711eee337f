"""Recurrent layers with TensorFlow 1's defaults, and `time_major`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.keras.extensions.graph_layers import CellOfGraph
from flowstone.layers.recurrent_cells import RNNCell

__all__ = ["extend"]

_DEFAULTS = {"recurrent_activation": "hard_sigmoid", "implementation": 1}
_CHANGED = ("LSTM", "LSTMCell", "GRU", "GRUCell", "PeepholeLSTMCell")


def _set_defaults(function: Any, values: dict[str, Any]) -> None:
    """Gives parameters of `function` other default values."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.default is not p.empty]
    function.__defaults__ = tuple(values.get(p.name, p.default) for p in parameters)


def _changed_init(published: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, *arguments: Any, time_major: bool = False, **keywords: Any) -> None:
        """A recurrent layer; see the package. `time_major`: inputs and sequences are [time, batch, …]."""
        published(self, *arguments, **keywords)
        self.time_major = time_major

    return __init__


def _changed_call(published: Callable[..., Any]) -> Callable[..., Any]:
    def call(
        self: Any,
        inputs: Any,
        mask: Any = None,
        training: Any = None,
        initial_state: Any = None,
        constants: Any = None,
    ) -> Any:
        """The outputs, and the states with `return_state`; see the package."""
        if isinstance(self.cell, RNNCell):
            cell = self.cell
            self.__dict__["cell"] = CellOfGraph(cell)
            try:
                return call(self, inputs, mask, training, initial_state, constants)
            finally:
                self.__dict__["cell"] = cell
        given = {"mask": mask, "training": training, "initial_state": initial_state, "constants": constants}
        if not self.time_major:
            return published(self, inputs, **given)
        parts = nest.flatten(inputs)
        parts[0] = _swapped(parts[0])
        given["mask"] = None if mask is None else _swapped(nest.flatten(mask)[0])
        outputs = published(self, parts if len(parts) > 1 else parts[0], **given)
        if not self.return_sequences:
            return outputs
        if isinstance(outputs, list):
            return [_swapped(outputs[0]), *outputs[1:]]
        return _swapped(outputs)

    return call


def _swapped(x: Any) -> Any:
    """Time and batch in the other order."""
    return tf.transpose(x, [1, 0, *range(2, x.shape.ndims)])


def _changed_config(published: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def get_config(self: Any) -> dict[str, Any]:
        """What it is made of."""
        config = published(self)
        cell = {"cell": config.pop("cell")} if "cell" in config else {}
        return {**config, "time_major": self.time_major, **cell}

    return get_config


def extend(module: ModuleType) -> None:
    """Gives the classes of `keras.layers.recurrent` what TensorFlow's have."""
    names = vars(module)
    for name in _CHANGED:
        _set_defaults(names[name].__init__, _DEFAULTS)
    recurrent = names["RNN"]
    recurrent.__init__ = _changed_init(recurrent.__init__)
    recurrent.call = _changed_call(recurrent.call)
    recurrent.get_config = _changed_config(recurrent.get_config)
