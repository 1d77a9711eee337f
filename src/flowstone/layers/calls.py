"""What a layer remembers of its calls: a `Node` each, with the layers that its inputs come from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowstone.framework.tensors import nest
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import TensorShape

if TYPE_CHECKING:
    from flowstone.layers.base import Layer

__all__ = ["Node", "as_tuple", "note_call", "observe", "shape_of_value"]

# What a room above does with a call: takes the layer, its Node and the arguments of `call` by their names.
Observer = Callable[["Layer", "Node", dict[str, Any]], None]
_observers: list[Observer] = []


def observe(observer: Observer) -> None:
    """Has `observer` called after each call of a layer."""
    if observer not in _observers:
        _observers.append(observer)


def note_call(layer: Layer, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Remembers the call `node`, which had the arguments beside the inputs."""
    layer.inbound_nodes.append(node)
    if _observers:
        names = list(inspect.signature(layer.call).parameters)[1:]
        for observer in _observers:
            observer(layer, node, {**dict(zip(names, args)), **kwargs})


def shape_of_value(value: Any) -> Any:
    """The static shape of a tensor or variable; of anything else that of a scalar."""
    return value.get_shape() if hasattr(value, "get_shape") else TensorShape([])


def as_tuple(value: Any) -> tuple[int | None, ...] | None:
    """The static shape of a value as a tuple; None if its rank is not known."""
    shape = shape_of_value(value)
    return None if shape.ndims is None else tuple(shape.as_list())


class Node:
    """One call of a layer.

    Attributes:
        outbound_layer: the layer that was called.
        inbound_layers: the layers that made the inputs, as far as layers did.
        inputs, outputs: of the call, tensors or nested structures of them.
    """

    def __init__(self, layer: Layer, inputs: Any, outputs: Any) -> None:
        self.outbound_layer, self.inputs, self.outputs = layer, inputs, outputs
        tensors = [x for x in self.input_tensors if isinstance(x, Tensor)]
        found = [_makers(x).get(x) for x in tensors]
        self.inbound_layers = [each for each in found if each is not None]
        for each in self.inbound_layers:
            each.outbound_nodes.append(self)
        for tensor in self.output_tensors:
            if isinstance(tensor, Tensor):
                _makers(tensor).setdefault(tensor, layer)

    input_tensors = property(lambda self: nest.flatten(self.inputs), doc="The inputs in a list.")
    output_tensors = property(lambda self: nest.flatten(self.outputs), doc="The outputs in a list.")
    input_shapes = property(
        lambda self: nest.map_structure(as_tuple, self.inputs), doc="The inputs' static shapes, tuples."
    )
    output_shapes = property(
        lambda self: nest.map_structure(as_tuple, self.outputs), doc="The outputs' static shapes, tuples."
    )


def _makers(tensor: Tensor) -> dict[Tensor, Layer]:
    """The layers that outputs in the tensor's graph come from."""
    makers: dict[Tensor, Layer] = tensor.graph.__dict__.setdefault("layer_makers", {})
    return makers
