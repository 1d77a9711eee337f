"""`tf.keras.layers.Layer`: what its constructor, its weights and its attributes are in TensorFlow 1.

`extend` changes the package's class `Layer` before other modules take it, so that every layer is of the same
class. `calls` has what happens when a layer is called; `graph_layers` says what else is a layer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import strategy_of_several
from flowstone.framework.tensors import nest
from flowstone.keras import weight_checkpoints
from flowstone.keras.extensions import additions, calls, graph_layers
from flowstone.keras.extensions.names import unique_name
from flowstone.keras.mixed_precision.cast_variables import as_cast
from flowstone.keras.mixed_precision.policy import policy_of
from flowstone.keras.published import is_own, own, published_class
from flowstone.keras.settings import floatx
from flowstone.layers.base import InputSpec
from flowstone.layers.base import Layer as LayerOfGraph
from flowstone.ops.variables.modules import Module

__all__ = ["extend", "layers_in"]

_new: Any = tf.Variable
_ARGUMENTS = frozenset(
    {"input_shape", "input_dim", "batch_input_shape", "batch_size", "weights", "activity_regularizer"}
    | {"autocast", "experimental_autocast", "input_dtype"}
)


def _changed_init(published: Callable[..., None]) -> Callable[..., None]:
    def __init__(
        self: Any,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        """A layer; `input_shape`, `batch_input_shape`, `batch_size` and `weights` as the package has them.

        Args:
            trainable: whether training changes its weights.
            name: by default its class in lower case, numbered from the second on.
            dtype: of its weights; by default the float type, or that of its first inputs. Or a Policy of
                `tf.keras.mixed_precision`.
            dynamic: must be False.
            activity_regularizer: a function of the outputs that returns a loss, or its name.
        """
        for key in kwargs:
            if key not in _ARGUMENTS:
                raise TypeError("Keyword argument not understood:", key)
        if dynamic:
            raise ValueError("A layer with dynamic=True needs eager execution, which graphs do not have.")
        kept: dict[str, Any] = {key: kwargs[key] for key in ("batch_size", "weights") if key in kwargs}
        shape = kwargs.get("input_shape", (kwargs["input_dim"],) if kwargs.get("input_dim") else None)
        if "batch_input_shape" in kwargs:
            kept["batch_input_shape"] = _shape(kwargs["batch_input_shape"])
        elif shape is not None:
            kept["input_shape"] = _shape(shape)
        named = dtype if dtype is not None else kwargs.get("input_dtype")
        policy = policy_of(named)
        given = policy.variable_dtype
        published(self, name=name or unique_name(type(self).__name__), trainable=trainable, **kept)
        self._policy, self._dtype_is_open = policy, given is None
        self.dtype = given or floatx()
        if "activity_regularizer" in kwargs:
            self.activity_regularizer = own("regularizers").get(kwargs["activity_regularizer"])

    return __init__


def _shape(shape: Any) -> tuple[int | None, ...]:
    return tuple(tf.TensorShape(shape).as_list())


# ---- weights


def add_weight(
    self: Any,
    name: str | None = None,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    constraint: Any = None,
    partitioner: Any = None,
    use_resource: bool | None = None,
    synchronization: Any = tf.VariableSynchronization.AUTO,
    aggregation: Any = tf.VariableAggregation.NONE,
    **keywords: Any,
) -> Any:
    """A new weight of the layer, in the collections of variables.

    Args:
        name: of the variable, below the layer's.
        shape: by default that of a scalar.
        dtype: by default the layer's.
        initializer: by default `glorot_uniform` for floats, else zeros.
        regularizer: a function of the weight that returns a loss, which the layer adds.
        trainable: whether training changes it; by default it does, unless it is synchronised on reading.
        constraint: the function that optimisers apply to it after a step.
        use_resource: whether it is a resource variable: it is unless this is False.
        partitioner, synchronization, aggregation: for several devices; a single one has whole variables.

    Raises ValueError for a trainable weight that is synchronised on reading, and without an initialiser for
    types that have no default one; TypeError for other keywords.
    """
    for key in keywords:
        if key not in ("getter", "collections", "experimental_autocast"):
            raise TypeError("Unknown keyword argument:", key)
    on_read = synchronization == tf.VariableSynchronization.ON_READ
    if on_read and trainable:
        raise ValueError(
            "Synchronization value can be set to VariableSynchronization.ON_READ only for non-trainable "
            "variables. You have specified trainable=True and "
            "synchronization=VariableSynchronization.ON_READ."
        )
    trainable = not on_read if trainable is None else trainable
    kind = tf.as_dtype(dtype or self.dtype)
    sizes = _shape(() if shape is None else shape)
    make = _initializer(own("initializers").get(initializer), kind, name)
    shared: dict[str, Any] = {}
    if strategy_of_several() is not None:
        shared = {"synchronization": synchronization, "aggregation": aggregation}
    variable: Any = _new(
        lambda: make(sizes, dtype=kind),
        trainable=trainable,
        name=name,
        dtype=kind,
        constraint=constraint,
        collections=keywords.get("collections"),
        use_resource=use_resource is not False,
        **shared,
    )
    if _policy_of(self).should_cast_variables and keywords.get("experimental_autocast") is not False:
        variable = as_cast(variable) if kind.is_floating else variable
    variable._keras_shape, variable._uses_learning_phase = sizes, False
    own("backend").track_variable(variable)
    if regularizer is not None:
        regularized = variable, own("regularizers").get(regularizer)
        vars(self).setdefault("_regularized", []).append(regularized)
    (self._trainable_weights if trainable else self._non_trainable_weights).append(variable)
    variable._tracked = True
    return variable


def _policy_of(layer: Any) -> Any:
    """The policy of a layer; of one whose class has not called the base's constructor, the default one."""
    return getattr(layer, "_policy", None) or policy_of(None)


def _initializer(given: Any, kind: Any, name: str | None) -> Any:
    if given is not None:
        return given
    if kind.is_floating:
        return tf.glorot_uniform_initializer()
    if kind.is_integer or kind.is_bool:
        return tf.zeros_initializer()
    raise ValueError(f"An initializer for variable {name} of type {kind.base_dtype} is required")


def _changed_config(published: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def get_config(self: Any) -> dict[str, Any]:
        """What it is made of; the type is None while it follows from inputs that have not come yet.

        Raises NotImplementedError for a class whose constructor takes more, and that does not override this.
        """
        config = published(self)
        given = inspect.getfullargspec(self.__init__).args[1:]
        is_default = getattr(self.get_config, "__func__", None) is get_config
        if is_default and any(name not in (*config, "dynamic") for name in given):
            raise NotImplementedError("Layers with arguments in `__init__` must override `get_config`.")
        if "dtype" in config and getattr(self, "_dtype_is_open", False) and not self.built:
            config["dtype"] = None
        return config

    return get_config


# ---- layers and variables that are attributes


def _tracked_layers(self: Any) -> list[Any]:
    """The layers within, those in lists and dicts that are attributes among them."""
    entries: list[Any] = self.__dict__.setdefault("_layer_entries", [])
    if not any(map(_holds_layers, set(map(type, entries)))):
        return entries
    found: list[Any] = []
    for entry in entries:
        for layer in layers_in(entry):
            if not any(layer is other for other in found):
                found.append(layer)
    return _Found(found, entries)


class _Found(list[Any]):
    """The layers within. A layer that a program appends to them becomes one that is kept."""

    def __init__(self, layers: list[Any], entries: list[Any]) -> None:
        super().__init__(layers)
        self._entries = entries

    def append(self, layer: Any) -> None:
        """Adds a layer."""
        self.extend([layer])

    def extend(self, layers: Iterable[Any]) -> None:
        """Adds layers."""
        added = list(layers)
        super().extend(added)
        self._entries.extend(added)


@lru_cache(maxsize=1024)  # a step asks for the layers many times
def _holds_layers(kind: type) -> bool:
    return issubclass(kind, (list, Mapping))


def _is_layer(value: Any) -> bool:
    return isinstance(value, (own("engine.base_layer").Layer, LayerOfGraph))


def layers_in(value: Any) -> list[Any]:
    """The layers that an attribute's value has: itself, or those within lists, tuples and dicts."""
    if _is_layer(value):
        return [] if _is_metric(value) else [value]
    if isinstance(value, Mapping):
        return [found for item in value.values() for found in layers_in(item)]
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in layers_in(item)]
    return []


def _set_tracked_layers(self: Any, layers: list[Any]) -> None:
    self.__dict__["_layer_entries"] = layers


def _set_trainable(self: Any, value: bool) -> None:
    """Sets it, also for the layers within."""
    self._trainable = value
    for layer in self._layers:
        layer.trainable = value


def _is_first_trainable(self: Any) -> bool:
    """Whether the constructor sets `trainable`: a program's property of that name needs attributes that are
    not there yet."""
    if "_trainable" in self.__dict__:
        return False
    owner = next(kind for kind in type(self).__mro__ if "trainable" in kind.__dict__)
    return owner is own("engine.base_layer").Layer or not is_own(owner)


def __setattr__(self: Any, name: str, value: Any) -> None:
    if name == "name":
        name = "_name"  # where a class of a program makes a property of `name`, its constructor sets this
    elif name == "trainable" and _is_first_trainable(self):
        name = "_trainable"
    if name != "_layers":
        _forget(self, name, value)
        _track(self, name, value)
    object.__setattr__(self, name, value)


def __delattr__(self: Any, name: str) -> None:
    _forget(self, name, None)
    object.__delattr__(self, name)


def _forget(self: Any, name: str, value: Any) -> None:
    """Makes the layer or variable that an attribute held no longer one of this layer's, unless another
    attribute holds it, too."""
    held = self.__dict__.get(name)
    if held is None or held is value or isinstance(held, (str, int, float)):
        return
    if any(other is held for key, other in self.__dict__.items() if key != name):
        return
    kinds = ["_trainable_weights", "_non_trainable_weights"]
    if not getattr(self, "_is_graph_network", False):  # whose layers are those between its tensors
        kinds += ["_layer_entries"]
    for kind in kinds:
        entries = self.__dict__.get(kind)
        if isinstance(entries, list) and any(entry is held for entry in entries):
            entries[:] = [entry for entry in entries if entry is not held]
            if isinstance(held, tf.Variable):
                vars(held)["_tracked"] = False


def _track(self: Any, name: str, value: Any) -> None:
    """Notes layers, lists of layers, metrics and variables that become attributes of the layer."""
    if _is_metric(value):
        if not name.startswith("_"):
            _add_once(self.__dict__.setdefault("_metrics", []), value)
    elif _is_layer(value):
        if isinstance(value, LayerOfGraph):  # within a model its variables are resource variables
            value._use_resource_variables = True
        _add_once(self.__dict__.setdefault("_layer_entries", []), value)
    elif isinstance(value, (list, tuple, dict)) and _is_of_a_program(self, name):
        _add_once(self.__dict__.setdefault("_layer_entries", []), value)
        for item in nest.flatten(value) if layers_in(value) == [] else ():
            if isinstance(item, tf.Variable):
                _track(self, name, item)
    elif isinstance(value, tf.Variable) and not getattr(value, "_tracked", False):
        kind = "_trainable_weights" if getattr(value, "trainable", False) else "_non_trainable_weights"
        _add_once(self.__dict__.setdefault(kind, []), value)


def _is_metric(value: Any) -> bool:
    base = published_class("metrics", "Metric")
    return base is not None and isinstance(value, base)


def _is_of_a_program(self: Any, name: str) -> bool:
    """Whether a list is an attribute that a class of a program has, not one of the package's own."""
    if is_own(type(self)) or name in calls.OWN_LISTS:
        return False
    return name not in calls.LISTS_OF_GRAPHS or not self.__dict__.get("_is_graph_network", False)


def _add_once(found: list[Any], value: Any) -> None:
    if not any(item is value for item in found):
        found.append(value)


# ---- members that only TensorFlow's class has


def _add_variable(self: Any, *arguments: Any, **keywords: Any) -> Any:
    """A new weight of the layer; see `add_weight`."""
    return self.add_weight(*arguments, **keywords)


def _apply(layer: Any, inputs: Any, *arguments: Any, **keywords: Any) -> Any:
    """The layer's outputs for `inputs`."""
    return layer(inputs, *arguments, **keywords)


def _graph(layer: Any) -> Any:
    """The graph of the layer's variables, or else of its outputs."""
    return (layer.weights[0] if layer.weights else layer.output).graph


def _output(layer: Any) -> Any:
    """The outputs of the first call; AttributeError before it."""
    if not layer._inbound_nodes:
        raise AttributeError(f"Layer {layer.name} has no inbound nodes.")
    return layer.get_output_at(0)


def _of(attribute: str, text: str) -> property:
    return property(lambda layer: getattr(layer, attribute), doc=text)


def _compute_output_signature(layer: Any, input_signature: Any) -> Any:
    """The TensorSpecs of the outputs for those of the inputs."""
    shapes = nest.map_structure(lambda spec: tuple(spec.shape.as_list()), input_signature)
    found = layer.compute_output_shape(shapes)
    kind = tf.as_dtype(layer.dtype)
    if isinstance(found, list):
        return [tf.TensorSpec(shape, kind) for shape in found]
    return tf.TensorSpec(found, kind)


def _with_regularizers(published: Callable[..., Any]) -> Callable[..., Any]:
    """A method that gives the layer's losses; those of weights are computed when first asked for."""

    @wraps(published)
    def losses(self: Any, *arguments: Any, **keywords: Any) -> Any:
        additions.regularize(self)
        return published(self, *arguments, **keywords)

    return losses


def _changed_count(published: Callable[..., int]) -> Callable[..., int]:
    def count_params(self: Any) -> int:
        """How many numbers the weights have, each as often as it is there; ValueError before they are."""
        try:
            published(self)
        except RuntimeError as error:
            raise ValueError(*error.args) from None
        return sum(weight.shape.num_elements() for weight in self.weights)

    return count_params


_MEMBERS: dict[str, Any] = {
    "add_variable": _add_variable,
    "add_weight": add_weight,
    "apply": _apply,
    "assert_input_compatibility": calls.assert_input_compatibility,
    "compute_output_signature": _compute_output_signature,
    "activity_regularizer": None,
    "dynamic": False,
    "graph": property(_graph),
    "inbound_nodes": _of("_inbound_nodes", "The calls that made its outputs."),
    "non_trainable_variables": _of("non_trainable_weights", "The variables that training does not change."),
    "output": property(_output),
    "name": _of("_name", "Its name, which programs change by `_name`."),
    "outbound_nodes": _of("_outbound_nodes", "The calls that took its outputs."),
    "scope_name": _of("name", "The scope of its variables."),
    "submodules": property(lambda layer: tuple(calls.below(layer)), doc="The layers within, at any depth."),
    "trainable": property(lambda layer: layer._trainable, _set_trainable, doc="Whether training changes it."),
    "trainable_variables": _of("trainable_weights", "The variables that training changes."),
    "variables": _of("weights", "All variables."),
    "_checkpoint_children": weight_checkpoints.children_of,
    "_dtype": property(lambda layer: layer.dtype, lambda layer, value: setattr(layer, "dtype", value)),
    "_layers": property(_tracked_layers, _set_tracked_layers),
    "_track_trackable": Module._track_trackable,
    "__call__": calls.call_layer,
    "__delattr__": __delattr__,
    "__setattr__": __setattr__,
}


def extend(module: ModuleType) -> None:
    """Gives the class `Layer` of `keras.engine.base_layer` what TensorFlow's has."""
    vars(module)["InputSpec"] = InputSpec
    layer: Any = graph_layers.with_registration(vars(module)["Layer"])
    vars(module)["Layer"] = layer
    layer.__init__ = _changed_init(layer.__init__)
    layer.add_loss = additions.changed_add(layer.add_loss, "losses")
    layer.add_update = additions.changed_add(layer.add_update, "updates")
    layer.losses = property(_with_regularizers(layer.losses.fget))
    layer.get_losses_for = _with_regularizers(layer.get_losses_for)
    layer.get_config = _changed_config(layer.get_config)
    layer.count_params = _changed_count(layer.count_params)
    if hasattr(layer, "add_metric"):
        layer.add_metric = additions.changed_add_metric(layer.add_metric)
    for name, member in _MEMBERS.items():
        setattr(layer, name, member)
