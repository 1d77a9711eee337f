"""Models that get their inputs by the first data: those of a program's class, `Sequential` without a shape.

`prepare` gives such a model placeholders like the first arrays or tensors, its outputs for them, and, if
`compile` was called, placeholders of targets like the first ones. A dict has a placeholder for each key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.keras.extensions import known_data, replicated_models, sample_weights
from flowstone.keras.extensions.calls import has_argument
from flowstone.keras.published import own

__all__ = ["changed_set_inputs", "changed_standardize", "prepare"]


def prepare(self: Any, x: Any, y: Any = None) -> None:
    """Gives the model inputs like `x` and targets like `y`, unless it has them; both arrays or tensors."""
    if not self.inputs:
        self._set_inputs(x)
    is_open = not getattr(self, "_is_compiled", True) and getattr(self, "optimizer", None) is not None
    if not is_open or (y is None and (self.loss or not self.losses)):
        return
    targets = None  # where the losses are those that layers add
    if y is not None:
        pairs = zip(self.output_names, _by_output(self, y))
        targets = [_placeholder(f"{name}_target", each) for name, each in pairs]
    self.compile(
        self.optimizer,
        self.loss or None,
        self._compile_metrics,
        self.loss_weights,
        weighted_metrics=self._compile_weighted_metrics,
        target_tensors=targets,
    )


def _by_output(self: Any, y: Any) -> list[Any]:
    return [y[name] for name in self.output_names] if isinstance(y, Mapping) else nest.flatten(y)


def changed_set_inputs(published: Callable[..., None]) -> Callable[..., None]:
    """`_set_inputs` of the class `Model`."""

    def _set_inputs(self: Any, inputs: Any, outputs: Any = None, training: Any = None) -> None:
        """Gives a model its inputs: placeholders for arrays and tensors that data are read from."""
        if isinstance(self, own("engine.sequential").Sequential):
            with tf.name_scope(self.name):
                _build_sequential(self, inputs)
            return
        if outputs is None:
            tensors = nest.flatten(inputs)
            made = [_placeholder(f"input_{i + 1}", value) for i, value in enumerate(tensors)]
            self.inputs = made  # so that the call below does not come here
            packed = nest.pack_sequence_as(inputs, made) if nest.is_nested(inputs) else made[0]
            if training is None and has_argument(self.call, "training"):
                training = own("backend").learning_phase()
            told = {"training": training} if training is not None else {}
            outputs, inputs = self(packed, **told), made
        self.inputs = None
        published(self, nest.flatten(inputs), nest.flatten(outputs))

    return _set_inputs


def _build_sequential(self: Any, inputs: Any) -> None:
    """Builds a `Sequential`, whose first layer takes a tensor, or the dict of features of its columns."""
    if not isinstance(inputs, Mapping):
        first = nest.flatten(inputs)[0]
        self.build((None, *np.shape(first)[1:]) if isinstance(first, np.ndarray) else _open_batch(first))
        return
    make = own("layers").Input
    features = {}
    for name, value in sorted(inputs.items()):
        shape, dtype = _form(value)
        features[name] = make(batch_shape=shape, dtype=dtype, name=name)
    outputs: Any = features
    for layer in self._layers:
        outputs = layer(outputs)
    self.inputs, self.outputs = list(features.values()), [outputs]
    self._init_graph_network(self.inputs, self.outputs, name=self.name)
    self.built = True


def changed_standardize(published: Callable[..., Any]) -> Callable[..., Any]:
    """`_standardize_user_data` of the class `Model`."""

    def _standardize_user_data(self: Any, x: Any, y: Any = None, *arguments: Any, **options: Any) -> Any:
        """The arrays to feed; a model without inputs gets them by these."""
        is_plain = not arguments and not any(option is not None for option in options.values())
        if is_plain and (known := known_data.feeds(self, x, y)) is not None:
            return known
        prepare(self, x, y)
        if isinstance(x, dict) and not getattr(self, "_is_graph_network", True):
            x = nest.flatten(x)
        if sample_weights.are_given(
            *arguments[:2], options.get("sample_weight"), options.get("class_weight")
        ):
            sample_weights.want(self)
        for kind, weights in zip(("sample_weight", "class_weight"), (*arguments[:2], *[None] * 2)):
            _check_names(self, kind, options.get(kind, weights))
        feeds = published(self, x, y, *arguments, **options)
        if isinstance(feeds, tuple) and feeds[2] and hasattr(self, "_skipped_weights"):
            feeds = (*feeds[:2], sample_weights.fed(self, feeds[2]))
        replicated_models.check_batch(self, feeds[0] if isinstance(feeds, tuple) else [])
        if is_plain:
            known_data.remember(self, x, y, feeds)
        return feeds

    return _standardize_user_data


def _check_names(self: Any, kind: str, weights: Any) -> None:
    """Raises ValueError for weights by names that are those of no output."""
    if isinstance(weights, Mapping) and len(self.output_names) > 1:
        unknown = [name for name in weights if name not in self.output_names]
        if unknown:
            raise ValueError(
                f"Unknown entries in {kind} dictionary: {unknown}. Only expected following keys: "
                f"{self.output_names}"
            )


def _placeholder(name: str, value: Any) -> Any:
    """A placeholder for arrays like `value`, of any number of examples."""
    shape, dtype = _form(value)
    return own("backend").placeholder(shape, dtype=dtype, name=name)


def _form(value: Any) -> tuple[tuple[int | None, ...], str]:
    """The shape and the type of a placeholder for `value`; of one axis, [batch, 1]."""
    if isinstance(value, tf.Tensor):
        shape, dtype = _open_batch(value), value.dtype.base_dtype
        is_float = dtype.is_floating
        name = dtype.name
    else:
        array = np.asarray(value)
        shape, is_float = (None, *array.shape[1:]), array.dtype.kind == "f"
        name = "string" if array.dtype.kind in "OSU" else array.dtype.name
    return (*shape, 1) if len(shape) == 1 else shape, own("backend").floatx() if is_float else name


def _open_batch(tensor: Any) -> tuple[int | None, ...]:
    return (None, *tensor.shape.as_list()[1:])
