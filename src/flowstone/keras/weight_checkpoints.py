"""A model's weights as a checkpoint of TensorFlow's, with the keys of `tf.keras`.

    layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE

The layers that have weights are numbered in the model's order; below each a weight is named by the attributes
that lead to it, through the layers that a layer holds (`cell`, `forward_layer`, `layer`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import flowstone as tf

__all__ = ["is_checkpoint", "load_weights", "save_weights"]

_HDF5 = (".h5", ".keras", ".hdf5")


def is_checkpoint(path: Any, save_format: str | None = None) -> bool:
    """Whether weights of this path are a checkpoint, by the format or by the ending of the path.

    Raises ValueError for a format that is neither 'tf' nor 'h5', and for 'tf' with an ending of HDF5.
    """
    text = str(path)
    if save_format is None:
        return isinstance(path, str) and not text.endswith(_HDF5)
    name = save_format.lower().strip()
    if name in ("h5", "hdf5", "keras"):
        return False
    if name not in ("tf", "tensorflow"):
        raise ValueError(f"Unknown format {save_format!r}. Was expecting one of {{'tf', 'h5'}}.")
    if text.endswith(_HDF5):
        raise ValueError(f"save_weights got save_format='tf', but the path {text!r} ends as HDF5 does.")
    return True


def _tracked(layer: Any) -> Any:
    """A Checkpoint of a layer's weights, by the layer's attributes; of a model's layers, by number."""
    layer_class = import_module("keras.engine.base_layer").Layer
    network_class = import_module("keras.engine.network").Network
    if isinstance(layer, network_class):
        return checkpoint_of(layer)
    weights = {id(weight) for weight in layer.weights}
    found: dict[str, Any] = {}
    for name, value in vars(layer).items():
        if id(value) in weights:
            found[name] = value
        elif isinstance(value, layer_class) and value.weights:
            found[name] = _tracked(value)
        elif isinstance(value, list) and value and all(isinstance(item, layer_class) for item in value):
            found[name] = [_tracked(item) for item in value]
    return tf.train.Checkpoint(**found)


def checkpoint_of(model: Any) -> Any:
    """The Checkpoint of a model's layers that have weights."""
    layers = [layer for layer in model.layers if layer.weights]
    return tf.train.Checkpoint(
        **{f"layer_with_weights-{number}": _tracked(layer) for number, layer in enumerate(layers)}
    )


def save_weights(model: Any, path: str) -> None:
    """Writes the model's weights as the checkpoint `path`."""
    checkpoint_of(model).write(path, import_module("keras.backend").get_session())
    folder, _, name = path.rpartition("/")
    tf.train.update_checkpoint_state(folder or ".", name if folder else path)


def load_weights(model: Any, path: str) -> Any:
    """Reads the model's weights from the checkpoint `path`; returns what was restored.

    Raises NotFoundError if there is none, AssertionError if it lacks a weight of the model.
    """
    restored = checkpoint_of(model).restore(path)
    restored.assert_existing_objects_matched()
    restored.run_restore_ops(import_module("keras.backend").get_session())
    return restored
