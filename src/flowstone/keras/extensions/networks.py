"""Networks of `tf.keras`: models of layers between tensors, and those of a class of the program's own.

`extend` changes the package's class `Network` in place. A network that is called tells its layers whether
they train, as the caller told it; its weights are in the order of its layers; operations between layers are
layers (`operation_layers`); a list of layers that is an attribute is part of it (`layers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.keras import weight_checkpoints
from flowstone.keras.extensions.added_tensors import adopting
from flowstone.keras.extensions.calls import has_argument, training_of_call
from flowstone.keras.extensions.layers import layers_in
from flowstone.keras.extensions.names import unique_name
from flowstone.keras.extensions.operation_layers import with_history
from flowstone.keras.extensions.shapes import of_program
from flowstone.keras.published import own

__all__ = ["extend"]


def _changed_base_init(published: Callable[..., None]) -> Callable[..., None]:
    def _base_init(self: Any, name: str | None = None, **options: Any) -> None:
        options.pop("autocast", None)
        options.pop("dynamic", None)
        published(self, name=name or unique_name(type(self).__name__), **options)
        # Keras 2.2 has these of layers only.
        for kind in ("_trainable_weights", "_non_trainable_weights"):
            self.__dict__.setdefault(kind, [])
        self.__dict__.setdefault("dtype", own("backend").floatx())

    return _base_init


def _changed_init_subclassed(published: Callable[..., None]) -> Callable[..., None]:
    def _init_subclassed_network(self: Any, name: str | None = None, **options: Any) -> None:
        given = {key: options.pop(key) for key in ("trainable", "dtype") if key in options}
        published(self, name=name, **options)
        for key, value in given.items():  # which Keras 2.2 does not take
            if value is not None:
                setattr(self, key, value)

    return _init_subclassed_network


def _changed_init_graph(published: Callable[..., None]) -> Callable[..., None]:
    def _init_graph_network(self: Any, inputs: Any, outputs: Any, name: Any = None, **options: Any) -> None:
        form = outputs[0] if isinstance(outputs, list) and len(outputs) == 1 else outputs
        inputs, outputs = _listed(inputs), with_history(_listed(outputs))
        published(self, inputs, outputs, name=name, **options)
        self._expects_training_arg = True
        self.__dict__["_form_of_outputs"] = nest.map_structure(lambda _: None, form)

    return _init_graph_network


def _listed(tensors: Any) -> Any:
    return nest.flatten(tensors) if nest.is_nested(tensors) else tensors


# ---- calls


def call(self: Any, inputs: Any, training: Any = None, mask: Any = None) -> Any:
    """The outputs for `inputs`, computed by the network's layers anew, in the structure of its own.

    Args:
        inputs: a tensor, or a structure with one for each input in order, or a dict by the inputs' names.
        training: whether layers train; by default what the learning phase says.
        mask: masks of the inputs.
    """
    if not getattr(self, "_is_graph_network", False):
        raise NotImplementedError("When subclassing the `Model` class, you should implement a `call` method.")
    masks = nest.flatten(mask) if mask is not None else []
    outputs = run_internal_graph(self, _ordered(self, inputs), masks, training)
    return nest.pack_sequence_as(self._form_of_outputs, outputs)


def _ordered(self: Any, inputs: Any) -> list[Any]:
    if isinstance(inputs, Mapping) and inputs.keys() >= set(self.input_names):
        return [inputs[name] for name in self.input_names]
    return nest.flatten(inputs)


def run_internal_graph(self: Any, inputs: list[Any], masks: Sequence[Any] = (), training: Any = None) -> Any:
    """The list of the network's outputs for `inputs`; adds the layers' updates and losses to the network."""
    for x, mask in zip(inputs, masks):
        if getattr(x, "_keras_mask", None) is None:
            x._keras_mask = mask
    values = {id(reference): x for reference, x in zip(self.inputs, inputs)}
    told = training if training is not None else training_of_call()
    for depth in sorted(self._nodes_by_depth, reverse=True):
        for node in self._nodes_by_depth[depth]:
            references = node.input_tensors
            if not node.inbound_layers or not all(id(x) in values for x in references):
                continue
            flat = [values[id(x)] for x in references]
            outputs = nest.flatten(_outputs_of(node, flat, told))
            values.update((id(y), made) for y, made in zip(node.output_tensors, outputs))
            _collect(self, node.outbound_layer, flat, inputs)
    for y in self.outputs:
        if id(y) not in values:
            raise ValueError(f"Could not compute output {y}")
    return [values[id(y)] for y in self.outputs]


def _outputs_of(node: Any, flat: list[Any], training: Any) -> Any:
    """The layer's outputs for other inputs than those of the call that `node` is of."""
    layer, arguments = node.outbound_layer, dict(node.arguments or {})
    if training is not None and has_argument(layer.call, "training"):
        arguments.setdefault("training", training)
    form = getattr(node, "form", flat if len(flat) > 1 else None)
    inputs = nest.pack_sequence_as(form, flat) if nest.is_nested(form) else flat[0]
    return layer(inputs, **arguments)


def _collect(self: Any, layer: Any, flat: list[Any], inputs: list[Any]) -> None:
    self.add_update(layer.get_updates_for(flat), inputs)
    self.add_loss(layer.get_losses_for(flat), inputs)


def compute_mask(self: Any, inputs: Any, mask: Any) -> Any:
    """The masks of the outputs; None for a network of a class of the program's own."""
    if not getattr(self, "_is_graph_network", False):
        return None
    given = _ordered(self, inputs)
    is_own = mask is None and all(x is y for x, y in zip(given, self.inputs))
    outputs = self.outputs if is_own else run_internal_graph(self, given, nest.flatten(mask))
    masks = [getattr(y, "_keras_mask", None) for y in outputs]
    return masks[0] if len(masks) == 1 else masks


def build(self: Any, input_shape: Any) -> None:
    """Makes the weights of a network that was not called yet, for inputs of this shape, batch included.

    `input_shape`: a tuple or TensorShape, or a list of them. Raises ValueError where `call` cannot be called
    with placeholders of these shapes.
    """
    if getattr(self, "_is_graph_network", False):
        self.built = True
        return
    if isinstance(input_shape, list) and all(size is None or isinstance(size, int) for size in input_shape):
        input_shape = tuple(input_shape)
    many = isinstance(input_shape, list)
    shapes = [tf.TensorShape(shape) for shape in (input_shape if many else [input_shape])]
    inputs = [own("backend").placeholder(tuple(shape.as_list())) for shape in shapes]
    options = {"training": False} if has_argument(self.call, "training") else {}
    self.call(inputs if many else inputs[0], **options)
    self.built = True


build._is_default = True  # type: ignore[attr-defined]  # a first call makes the weights by itself


# ---- weights


def _weights(self: Any) -> list[Any]:
    """The weights of the layers in their order, then the network's own; twice what two layers have.

    Of layers in a list, a tuple or a dict those come first that training changes.
    """
    found: list[Any] = []
    for entry in self._layer_entries:
        layers = layers_in(entry)
        kinds = ("weights",) if layers == [entry] else ("trainable_weights", "non_trainable_weights")
        found += [weight for kind in kinds for layer in layers for weight in getattr(layer, kind)]
    return [*found, *self._trainable_weights, *self._non_trainable_weights]


def get_weights(self: Any) -> list[Any]:
    """The values of `weights`; of those that each of several replicas keeps its own of, the aggregates."""
    weight_checkpoints.restore_awaited(self)
    tensors = [getattr(weight, "aggregated", weight) for weight in self.weights]
    values: list[Any] = own("backend").batch_get_value(tensors)
    return values


def set_weights(self: Any, weights: Sequence[Any]) -> None:
    """Gives each of `weights` its value; ValueError for another number of them or other shapes."""
    weight_checkpoints.restore_awaited(self)
    variables = self.weights
    if len(variables) != len(weights):
        raise ValueError(
            f'You called `set_weights(weights)` on layer "{self.name}" with a  weight list of length '
            f"{len(weights)}, but the layer was expecting {len(variables)} weights. "
            f"Provided weights: {str(weights)[:50]}..."
        )
    for variable, value in zip(variables, weights):
        if not variable.shape.is_compatible_with(tf.TensorShape(_shape_of(value))):
            raise ValueError(
                f"Layer weight shape {variable.shape} not compatible with provided weight shape "
                f"{_shape_of(value)}"
            )
    own("backend").batch_set_value(list(zip(variables, weights)))


def _shape_of(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", None) or ())


_MEMBERS: dict[str, Any] = {
    "call": call,
    "compute_mask": compute_mask,
    "build": build,
    "weights": property(_weights),
    "get_weights": get_weights,
    "set_weights": set_weights,
}


def _copied(self: Any) -> Any:
    """What `copy.copy` gives: another object with the same attributes, also of a class without a config."""
    made: Any = object.__new__(type(self))
    made.__dict__.update(self.__dict__)
    return made


def _names_in(_: Any, config: Mapping[str, Any], *__: Any, **___: Any) -> list[str]:
    return [layer["name"] for layer in config["layers"]]


def extend(module: ModuleType) -> None:
    """Gives the class `Network` of `keras.engine.network` what TensorFlow's has."""
    network: Any = vars(module)["Network"]
    network._base_init = _changed_base_init(network._base_init)
    network._init_subclassed_network = _changed_init_subclassed(network._init_subclassed_network)
    network._init_graph_network = _changed_init_graph(network._init_graph_network)
    network.__copy__ = _copied
    network.from_config = classmethod(adopting(network.from_config.__func__, _names_in))
    network.compute_output_shape = of_program(network.compute_output_shape)
    for name, member in _MEMBERS.items():
        setattr(network, name, member)
