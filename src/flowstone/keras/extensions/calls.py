"""What happens when a layer of `tf.keras` is called, in the graph that is the default one.

    outputs = layer(inputs, training=True)

Arrays and numbers become tensors; operations between layers become layers (`operation_layers`). A layer
that has no weights yet is built for the inputs' shapes: a class of the package with tuples, one of a program
with a TensorShape. `training` goes on to the layers that are called within, unless these are told otherwise.
The shapes of outputs are those of the tensors. The mask of a tensor is its attribute `_keras_mask`: a layer
that takes a mask gets it, one that supports masking hands it on, any other ends it.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from typing import Any

import numpy as np

import flowstone as tf
from flowstone import conversion
from flowstone.framework.tensors import nest
from flowstone.keras import sessions
from flowstone.keras.extensions.additions import computing
from flowstone.keras.extensions.operation_layers import with_history
from flowstone.keras.mixed_precision.cast_variables import cast_to
from flowstone.keras.published import OWN, own

__all__ = [
    "LISTS_OF_GRAPHS",
    "OWN_LISTS",
    "assert_input_compatibility",
    "below",
    "call_layer",
    "compute_dtype",
    "has_argument",
    "training_of_call",
]

OWN_LISTS = frozenset(
    {"_input_coordinates", "_output_coordinates", "_layers_by_depth"}
    | {"_nodes_by_depth", "_inbound_nodes", "_outbound_nodes", "_layer_entries", "_metrics", "_losses"}
    | {"_updates", "_trainable_weights", "_non_trainable_weights", "inputs", "outputs", "input_spec"}
)
"""Attributes of layers and models that hold layers, but not as parts of them."""
LISTS_OF_GRAPHS = frozenset({"_input_layers", "_output_layers"})
"""The same, of models that are graphs of layers; other models of the package do not have them."""


_ADDED = ("_losses", "_updates", "_per_input_losses", "_per_input_updates", "_metrics")


class _Calls(threading.local):
    """What the layer that is being called was told about training: True, False, a tensor, or None."""

    training: Any = None
    is_outline = False  # a model of layers is built for the inputs of a call, which follows


_calls = _Calls()


def training_of_call() -> Any:
    """What `training` is within the call that is going on; None if none says."""
    return _calls.training


@contextmanager
def _told(training: Any) -> Iterator[None]:
    before, _calls.training = _calls.training, training
    try:
        yield
    finally:
        _calls.training = before


def has_argument(function: Callable[..., Any], name: str) -> bool:
    """Whether `function` has a parameter of that name."""
    return name in inspect.signature(function).parameters


def below(layer: Any) -> Iterator[Any]:
    """The layers within a layer, at any depth."""
    for inner in getattr(layer, "_layers", ()):  # a layer of `tf.layers` has none
        yield inner
        yield from below(inner)


def call_layer(self: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """The outputs of the layer for `inputs`; the other arguments are those of its method `call`."""
    inputs = with_history(nest.map_structure(_as_tensor, inputs))
    flat = nest.flatten(inputs)
    given = _by_name(self, args, kwargs)
    kwargs, told = _with_training(self, given)
    with tf.name_scope(self.name), _told(told):
        with computing(False):
            _build(self, inputs, flat)
        self.assert_input_compatibility(flat)
        masks = [getattr(x, "_keras_mask", None) for x in flat]
        mask = nest.pack_sequence_as(inputs, masks) if nest.is_nested(inputs) else masks[0]
        if "mask" not in kwargs and any(m is not None for m in masks) and has_argument(self.call, "mask"):
            kwargs["mask"] = mask
        kept = {name: copy(getattr(self, name)) for name in _ADDED if hasattr(self, name)}
        with _casting(self, flat), computing(True):
            outputs = _converted(self.call)(inputs, **kwargs)
        if _calls.is_outline:  # what the layer adds comes with the call that follows
            vars(self).update(kept)
        outputs = nest.map_structure(lambda y: _other(self, y) if any(y is x for x in flat) else y, outputs)
        _set_masks(self, inputs, outputs, kwargs.get("mask", mask))
        if all(hasattr(x, "_keras_history") for x in flat):  # else what it is called with is of no model
            _note_call(self, flat, masks, outputs, given)
            self._inbound_nodes[-1].form = inputs
        _regularize(self, flat, outputs)
    if hasattr(self, "_set_inputs") and not self.inputs:
        self._set_inputs(inputs, outputs)
    return outputs


def _other(self: Any, y: Any) -> Any:
    """A tensor with the same value, for an output that is an input."""
    with tf.name_scope(self.name):
        return tf.identity(y)


def _converted(call: Any) -> Any:
    """The method `call`; if it is a program's or a library's, its statements on tensors become nodes."""
    return call if str(getattr(call, "__module__", "")).startswith("flowstone.") else conversion.convert(call)


def compute_dtype(self: Any, x: Any) -> Any:
    """The type in which the layer computes with the inputs `x`: its policy's, or theirs."""
    policy = getattr(self, "_policy", None)
    name = None if policy is None else policy.compute_dtype
    return x.dtype.base_dtype if name is None else tf.as_dtype(name)


def _casting(self: Any, flat: list[Any]) -> AbstractContextManager[None]:
    policy = getattr(self, "_policy", None)
    if policy is None or not policy.should_cast_variables:
        return nullcontext()
    kind = compute_dtype(self, flat[0])
    return cast_to(kind if kind.is_floating else None)


def _as_tensor(x: Any) -> Any:
    return tf.convert_to_tensor(x) if isinstance(x, (np.ndarray, float, int)) else x


def _by_name(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `call` beside the inputs by their names."""
    names = list(inspect.signature(self.call).parameters)[1:]
    return {**dict(zip(names, args)), **kwargs}


def _with_training(self: Any, given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The arguments of `call`, and what layers within are told: the caller's `training`, or the outer one."""
    kwargs = dict(given)
    takes = has_argument(self.call, "training")
    told = kwargs.get("training")
    if "training" in kwargs and not takes:
        del kwargs["training"]
    if told is None:
        told = _calls.training if _calls.training is not None else sessions.chosen_learning_phase()
        if takes and told is not None:
            kwargs["training"] = told
    return kwargs, told


def _build(self: Any, inputs: Any, flat: list[Any]) -> None:
    if self.built:
        return
    if getattr(self, "_dtype_is_open", False) and isinstance(getattr(flat[0], "dtype", None), tf.DType):
        kind = flat[0].dtype.base_dtype
        if kind.is_floating:
            self.dtype = kind.name
    self.assert_input_compatibility(flat)
    shapes = nest.map_structure(lambda x: tf.TensorShape(_shape(x)), inputs)
    if type(self).build.__module__.startswith(OWN):
        shapes = nest.map_structure(_as_tuple, shapes)
    if not getattr(self.build, "_is_default", False):
        is_outline = _calls.is_outline or isinstance(self, own("engine.sequential").Sequential)
        before, _calls.is_outline = _calls.is_outline, is_outline
        try:
            self.build(shapes)
        finally:
            _calls.is_outline = before
    self.built = True
    if self._initial_weights is not None:
        self.set_weights(self._initial_weights)


def _as_tuple(shape: Any) -> Any:
    return None if shape.ndims is None else tuple(shape.as_list())


def _shape(x: Any) -> Any:
    """The shape of a tensor that is known, as Keras keeps it."""
    kept = getattr(x, "_keras_shape", None)
    if kept is not None:
        return kept
    shape = x.get_shape() if hasattr(x, "get_shape") else tf.TensorShape(None)
    return None if shape.ndims is None else tuple(shape.as_list())


def _set_masks(self: Any, inputs: Any, outputs: Any, mask: Any) -> None:
    """Gives the outputs the masks that the layer computes; those of a model within stay."""
    tensors = nest.flatten(outputs)
    if getattr(self, "_is_graph_network", False):
        return
    default = type(self).compute_mask is own("engine.base_layer").Layer.compute_mask
    found = None if default and not self.supports_masking else self.compute_mask(inputs, mask)
    masks = found if isinstance(found, (list, tuple)) else [found] * len(tensors)
    for tensor, each in zip(tensors, masks):
        if tensor is not None:
            tensor._keras_mask = each


def _note_call(self: Any, flat: list[Any], masks: list[Any], outputs: Any, arguments: dict[str, Any]) -> None:
    tensors = [y for y in nest.flatten(outputs) if y is not None]
    self._add_inbound_node(
        input_tensors=flat,
        output_tensors=tensors,
        input_masks=masks,
        output_masks=[getattr(y, "_keras_mask", None) for y in tensors],
        input_shapes=[_shape(x) for x in flat],
        output_shapes=[_own_shape(y) for y in tensors],
        arguments=arguments,
    )


def _own_shape(y: Any) -> Any:
    shape = y.get_shape() if hasattr(y, "get_shape") else tf.TensorShape(None)
    return None if shape.ndims is None else tuple(shape.as_list())


def _regularize(self: Any, flat: list[Any], outputs: Any) -> None:
    """Adds the losses of the outputs, each divided by the batch's size."""
    regularizer = getattr(self, "activity_regularizer", None)
    if regularizer is None:
        return
    with tf.name_scope("ActivityRegularizer"):
        for y in [y for y in nest.flatten(outputs) if y is not None]:
            loss = regularizer(y)
            self.add_loss(loss / tf.cast(tf.shape(y)[0], loss.dtype), inputs=flat)


def assert_input_compatibility(self: Any, inputs: Any) -> None:
    """Raises ValueError for inputs that contradict `input_spec`, and for what is no tensor."""
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    for x in inputs:
        try:
            own("backend").is_keras_tensor(x)
        except ValueError:
            raise ValueError(
                f"Layer {self.name} was called with an input that isn't a symbolic tensor. Received type: "
                f"{type(x)}. Full input: {inputs}. All inputs to the layer should be tensors."
            ) from None
    specs = self.input_spec
    specs = specs if isinstance(specs, (list, tuple)) else [specs] if specs else []
    if specs and len(specs) != len(inputs):
        raise ValueError(
            f"Layer {self.name} expects {len(specs)} inputs, but it received {len(inputs)} input tensors. "
            f"Inputs received: {inputs}"
        )
    for index, (x, spec) in enumerate(zip(inputs, specs)):
        if spec is not None:
            spec.check(tf.convert_to_tensor(x) if isinstance(x, tf.Variable) else x, self.name, index)
