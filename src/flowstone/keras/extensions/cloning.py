"""`tf.keras.models.clone_model`, which takes a function that makes each layer's copy."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from flowstone.keras.extensions.added_tensors import adopting
from flowstone.keras.published import own

__all__ = ["extend"]

# From a layer to the one that stands in its place; it may be the same.
CloneFunction = Callable[[Any], Any]


def _copy(layer: Any) -> Any:
    return type(layer).from_config(layer.get_config())


def _clone_sequence(model: Any, tensors: list[Any] | None, clone: CloneFunction) -> Any:
    kind = own("engine.input_layer").InputLayer
    inputs = [layer for layer in model._layers if isinstance(layer, kind)]
    first = [_copy(layer) for layer in inputs] if tensors is None else [_input_of(tensors[0], model.name)]
    return own("models").Sequential([*first, *map(clone, model.layers)], name=model.name)


def _input_of(tensor: Any, name: str) -> Any:
    """The tensor as an input of a model."""
    if hasattr(tensor, "_keras_history"):
        return tensor
    return own("layers").Input(tensor=tensor, name=f"input_wrapper_for_{name}")


def _clone_graph(model: Any, tensors: list[Any] | None, clone: CloneFunction) -> Any:
    if tensors is None:
        copies = [_copy(layer) for layer in model._input_layers]
        inputs = [copy._inbound_nodes[0].output_tensors[0] for copy in copies]
    else:
        inputs = [_input_of(each, layer.name) for each, layer in zip(tensors, model._input_layers)]
    known = dict(zip(map(id, model.inputs), inputs))
    layers: dict[Any, Any] = dict.fromkeys(model._input_layers)
    for depth in sorted(model._nodes_by_depth, reverse=True):
        for node in model._nodes_by_depth[depth]:
            layer = node.outbound_layer
            if layer not in layers:
                layers[layer] = clone(layer)
            if layers[layer] is None:
                continue  # an input: its tensor is known
            given = [known[id(tensor)] for tensor in node.input_tensors]
            made = layers[layer](given[0] if len(given) == 1 else given, **(node.arguments or {}))
            made = list(made) if isinstance(made, list | tuple) else [made]
            known.update(zip(map(id, node.output_tensors), made))
    return own("models").Model(inputs, [known[id(tensor)] for tensor in model.outputs], name=model.name)


def _changed_clone(published: Callable[..., Any]) -> Callable[..., Any]:
    def clone_model(
        model: Any, input_tensors: Any = None, clone_function: CloneFunction | None = None
    ) -> Any:
        """A model of the same layers with weights of its own.

        Args:
            model: a Sequential, or a model of layers between tensors.
            input_tensors: what the copy takes, a tensor or a list; by default new placeholders.
            clone_function: gives for each layer, except for inputs, the layer in its place; by default
                a new one of the same configuration.
        """
        is_sequence = isinstance(model, own("models").Sequential)
        if not getattr(model, "_is_graph_network", False) and not is_sequence:
            raise ValueError(
                "Expected `model` argument to be a functional `Model` instance, "
                "but got a subclass model instead."
            )
        if clone_function is None:
            if not is_sequence or input_tensors is not None:
                return published(model, input_tensors)
            clone_function = _copy  # behind a copy of the input, which layers need not describe
        if input_tensors is not None and not isinstance(input_tensors, list | tuple):
            input_tensors = [input_tensors]
        clone = _clone_sequence if is_sequence else _clone_graph
        return clone(model, input_tensors, clone_function)

    return clone_model


def _names_of(model: Any, *_: Any, **__: Any) -> list[str]:
    return [layer.name for layer in model.layers]


def extend(module: ModuleType) -> None:
    """Puts the function into `keras.models`."""
    names = vars(module)
    names["clone_model"] = adopting(_changed_clone(names["clone_model"]), _names_of)
