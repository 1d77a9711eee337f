"""`tf.keras.layers.Wrapper`: a layer with weights, losses and updates of its own, besides those of the layer
within, which is built with it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from flowstone.keras.published import own

__all__ = ["extend"]


def build(self: Any, input_shape: Any = None) -> None:
    """Makes the weights of the layer within, for inputs of this shape."""
    if input_shape is not None and not self.layer.built:
        self.layer.build(input_shape)
        self.layer.built = True
    self.built = True


def _changed_init(published: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(published)
    def __init__(self: Any, layer: Any, *arguments: Any, **keywords: Any) -> None:
        if not isinstance(layer, own("engine.base_layer").Layer):
            raise ValueError(
                f"Please initialize `{type(self).__name__}` layer with a `Layer` instance. "
                f"You passed: {layer}"
            )
        published(self, layer, *arguments, **keywords)
        if getattr(self, "return_sequences", False):  # a Bidirectional
            self.forward_layer.zero_output_for_mask = self.backward_layer.zero_output_for_mask = True

    return __init__


def _changed_time_build(published: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(published)
    def build_over_time(self: Any, input_shape: Any) -> None:
        if len(input_shape) < 3:
            raise ValueError(
                "`TimeDistributed` Layer should be passed an `input_shape ` with at least 3 dimensions, "
                f"received: {list(input_shape)}"
            )
        published(self, input_shape)

    return build_over_time


def _trainable_weights(self: Any) -> list[Any]:
    """The wrapper's own weights that training changes, then those of the layer within."""
    return [*self._trainable_weights, *self.layer.trainable_weights] if self.trainable else []


def _non_trainable_weights(self: Any) -> list[Any]:
    """The other weights, in the same order."""
    held = [] if self.trainable else self._trainable_weights
    return [*held, *self._non_trainable_weights, *self.layer.non_trainable_weights]


def _updates(self: Any) -> list[Any]:
    """The wrapper's own updates, then those of the layer within."""
    if not self.trainable and not self.stateful:
        return []
    return [*self._updates, *getattr(self.layer, "updates", ())]


def _losses(self: Any) -> list[Any]:
    """The wrapper's own losses, then those of the layer within."""
    return [*self._losses, *getattr(self.layer, "losses", ())]


def get_updates_for(self: Any, inputs: Any = None) -> list[Any]:
    """The updates that depend on these inputs; without inputs those that depend on none."""
    if not self.trainable and not self.stateful:
        return []
    return [*_own(self._per_input_updates, inputs), *self.layer.get_updates_for(_within(self, inputs))]


def get_losses_for(self: Any, inputs: Any = None) -> list[Any]:
    """The losses that depend on these inputs; without inputs those that depend on none."""
    return [*_own(self._per_input_losses, inputs), *self.layer.get_losses_for(_within(self, inputs))]


def _own(by_inputs: dict[Any, list[Any]], inputs: Any) -> list[Any]:
    return by_inputs.get(None if inputs is None else _identity(inputs), [])


def _within(self: Any, inputs: Any) -> Any:
    """What the layer within got for the wrapper's inputs."""
    return inputs if inputs is None else self._input_map.get(_identity(inputs), inputs)


def _identity(inputs: Any) -> Any:
    return own("utils.generic_utils").object_list_uid(inputs)


def extend(module: ModuleType) -> None:
    """Gives the class `Wrapper` of `keras.layers.wrappers` these members."""
    wrapper, layer = vars(module)["Wrapper"], own("engine.base_layer").Layer
    for name in ("TimeDistributed", "Bidirectional"):
        vars(module)[name].__init__ = _changed_init(vars(module)[name].__init__)
    over_time = vars(module)["TimeDistributed"]
    over_time.build = _changed_time_build(over_time.build)
    wrapper.build = build
    wrapper.trainable_weights = property(_trainable_weights)
    wrapper.non_trainable_weights = property(_non_trainable_weights)
    wrapper.updates, wrapper.losses = property(_updates), property(_losses)
    wrapper.get_weights, wrapper.set_weights = layer.get_weights, layer.set_weights
    wrapper.get_updates_for, wrapper.get_losses_for = get_updates_for, get_losses_for
