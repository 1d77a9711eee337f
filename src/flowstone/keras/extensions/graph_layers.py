"""Layers of `tf.layers` and cells of `tf.nn.rnn_cell`, where layers of `tf.keras` are expected.

In TensorFlow 1.15 these classes derive from those of `tf.keras`. Here they are there without the package;
once it is loaded they are registered with its classes, as `abc` registers them:

    isinstance(tf.layers.Dense(3), tf.keras.layers.Dense)    # True

Where one is called with the outputs of layers of `tf.keras`, it notes the call as they do, so that it is part
of a model that is made of its outputs, as it was in TensorFlow 1.4 (1.15 refused such models).
"""

from __future__ import annotations

from abc import ABCMeta
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.keras.published import own
from flowstone.layers import calls
from flowstone.layers.base import Layer as LayerOfGraph

__all__ = ["CellOfGraph", "extend", "with_registration"]


def with_registration(published: type) -> ABCMeta:
    """The package's class `Layer` as one that layers of graphs are registered with."""
    members = {
        name: value for name, value in vars(published).items() if name not in ("__dict__", "__weakref__")
    }
    made = ABCMeta(published.__name__, published.__bases__, members)
    made.register(LayerOfGraph)
    calls.observe(_note_call)
    return made


def extend(module: ModuleType) -> None:
    """Registers the classes of `tf.layers` with those of the same names that `module` defines."""
    for name, value in list(vars(module).items()):
        twin = getattr(tf.layers, name, None) if isinstance(value, ABCMeta) else None
        if isinstance(twin, type) and value.__name__ == name:
            value.register(twin)


def _note_call(layer: Any, call: calls.Node, arguments: dict[str, Any]) -> None:
    """Notes the call of a layer of a graph, if its inputs come from layers of `tf.keras`, as these do."""
    inputs, outputs = call.input_tensors, call.output_tensors
    if not inputs or not all(hasattr(x, "_keras_history") for x in inputs):
        return
    masks = [getattr(x, "_keras_mask", None) for x in inputs]
    own("engine.base_layer").Layer._add_inbound_node(
        layer,
        input_tensors=inputs,
        output_tensors=outputs,
        input_masks=masks,
        output_masks=[None for _ in outputs],
        input_shapes=[calls.as_tuple(x) for x in inputs],
        output_shapes=[calls.as_tuple(y) for y in outputs],
        arguments=arguments,
    )
    layer._inbound_nodes[-1].form = call.inputs


class CellOfGraph:
    """A cell of `tf.nn.rnn_cell` as `tf.keras.layers.RNN` calls cells: its states are a list."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cell, name)

    def call(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        """The outputs and the list of states of a step."""
        cell = self._cell
        outputs, after = cell.call(inputs, nest.pack_sequence_as(cell.state_size, list(states)))
        return outputs, nest.flatten(after)
