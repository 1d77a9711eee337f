"""What the layers of `tf.keras` had and those of the package lack: variables by TensorFlow's names.

`extend(keras.engine.base_layer)` is called once that module is loaded. It adds members, and changes none.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

__all__ = ["extend"]


def _add_variable(
    layer: Any,
    name: str,
    shape: Any,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    constraint: Any = None,
) -> Any:
    """A new weight of the layer; see `add_weight`."""
    return layer.add_weight(
        name=name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        constraint=constraint,
    )


def _apply(layer: Any, inputs: Any, *arguments: Any, **keywords: Any) -> Any:
    """The layer's outputs for `inputs`."""
    return layer(inputs, *arguments, **keywords)


def _graph(layer: Any) -> Any:
    """The graph of the layer's variables, or else of its outputs."""
    return (layer.weights[0] if layer.weights else layer.output).graph


def _of(attribute: str, text: str) -> property:
    return property(lambda layer: getattr(layer, attribute), doc=text)


_MEMBERS: dict[str, Any] = {
    "add_variable": _add_variable,
    "apply": _apply,
    "graph": property(_graph),
    "inbound_nodes": _of("_inbound_nodes", "The calls that made its outputs."),
    "non_trainable_variables": _of("non_trainable_weights", "The variables that training does not change."),
    "outbound_nodes": _of("_outbound_nodes", "The calls that took its outputs."),
    "scope_name": _of("name", "The scope of its variables."),
    "trainable_variables": _of("trainable_weights", "The variables that training changes."),
    "variables": _of("weights", "All variables."),
}


def extend(module: ModuleType) -> None:
    """Adds the members that the class `Layer` of `module` lacks."""
    layer: Any = vars(module)["Layer"]
    for name, member in _MEMBERS.items():
        if not hasattr(layer, name):
            setattr(layer, name, member)
