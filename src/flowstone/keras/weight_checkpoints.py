"""A model's weights as a checkpoint of TensorFlow's, with the keys of `tf.keras`.

    layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE

The layers that have weights are numbered in the model's order; below each a weight is named by the attributes
that lead to it, through the layers that a layer holds (`cell`, `forward_layer`, `layer`).

Weights and optimisers' slots that are made after `load_weights` get their values of its checkpoint when the
model is next used (`restore_awaited`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import flowstone as tf
from flowstone.keras.published import own

__all__ = ["is_checkpoint", "load_weights", "restore_awaited", "save_weights"]

_NOT_PARTS = frozenset(
    {"_layer_entries", "_inbound_nodes", "_outbound_nodes", "_input_layers", "_output_layers"}
    | {"_compile_metric_functions", "_output_loss_metrics"}
)
_AWAITED = "_awaited_weights"
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


def children_of(layer: Any) -> list[tuple[str, Any]]:
    """What a checkpoint has of a layer or model, by the names that lead to it (see above)."""
    found: list[tuple[str, Any]] = []
    if isinstance(layer, own("engine.network").Network):
        if getattr(layer, "_is_graph_network", False) or type(layer).__name__ == "Sequential":
            layers = [each for each in layer.layers if each.weights]
            found = [(f"layer_with_weights-{number}", each) for number, each in enumerate(layers)]
        if hasattr(layer.optimizer, "_checkpoint_children"):
            found.append(("optimizer", layer.optimizer))
    return [*found, *_attributes_of(layer)] if not found or found[0][0] == "optimizer" else found


def _attributes_of(layer: Any) -> list[tuple[str, Any]]:
    layer_class = own("engine.base_layer").Layer
    weights = {id(weight) for weight in layer.weights}
    found: list[tuple[str, Any]] = []
    for name, value in vars(layer).items():
        is_layers = isinstance(value, list) and value and all(isinstance(item, layer_class) for item in value)
        if name in _NOT_PARTS:
            continue
        if id(value) in weights or (isinstance(value, layer_class) and value.weights) or is_layers:
            found.append((name, value))
    return found


def checkpoint_of(model: Any, with_optimizer: bool = True) -> Any:
    """The Checkpoint of a model: of its weights, and of the optimiser that has trained it."""
    children = [(name, each) for name, each in children_of(model) if with_optimizer or name != "optimizer"]
    return tf.train.Checkpoint(**dict(children))


def save_weights(model: Any, path: str) -> None:
    """Writes the model's weights as the checkpoint `path`."""
    checkpoint_of(model).write(path, own("backend").get_session())
    folder = path.rpartition("/")[0]
    tf.train.update_checkpoint_state(folder or ".", path, save_relative_paths=True)


def load_weights(model: Any, path: str) -> Any:
    """Reads the model's weights from the checkpoint `path`; returns what was restored.

    Raises NotFoundError if there is none, AssertionError if it lacks a weight of the model.
    """
    session = own("backend").get_session()
    restored = checkpoint_of(model, with_optimizer=False).restore(path)
    restored.assert_existing_objects_matched()
    restored.run_restore_ops(session)
    known = restored.matched_keys
    if _trained_weights(model.optimizer):
        whole = checkpoint_of(model).restore(path)
        whole.run_restore_ops(session)
        known |= whole.matched_keys
    vars(model)[_AWAITED] = _Awaited(path, _count(model), known)
    return restored


class _Awaited(NamedTuple):
    """A checkpoint that a model has loaded; it had `size` weights then, and those of the keys `known`."""

    path: str
    size: int
    known: frozenset[str]


def _trained_weights(optimizer: Any) -> list[Any]:
    """The variables of an optimiser that can be saved; none before it has trained."""
    return list(optimizer.weights or ()) if hasattr(optimizer, "_checkpoint_children") else []


def _count(model: Any) -> int:
    return len(model.weights) + len(_trained_weights(model.optimizer))


def restore_awaited(model: Any) -> None:
    """Gives the weights that a model has got since it loaded a checkpoint their values there.

    Of an optimiser these are slots and the number of its steps: its settings stay as they are.
    """
    awaited = vars(model).get(_AWAITED)
    if awaited is None or awaited.size == _count(model):
        return
    restored = checkpoint_of(model, bool(_trained_weights(model.optimizer))).restore(awaited.path)
    new = [key for key in restored.matched_keys - awaited.known if not _is_setting(key)]
    restored.load_variables(sorted(new), own("backend").get_session())
    vars(model)[_AWAITED] = _Awaited(awaited.path, _count(model), awaited.known.union(new))


def _is_setting(key: str) -> bool:
    """Whether a key is that of an optimiser's own value, such as its learning rate, but for its steps."""
    owner, _, rest = key.partition("/")
    return owner == "optimizer" and not rest.startswith(("iter/", "global_step/", "optimizer/"))
