"""The same layer several times, one on the other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope

__all__ = ["repeat", "stack"]

Layer = Callable[..., Any]


def _scope_of(layer: Layer, default: str) -> str:
    while isinstance(layer, functools.partial):
        layer = layer.func
    return getattr(layer, "__name__", default)


@add_arg_scope
def repeat(inputs: Any, repetitions: int, layer: Layer, *args: Any, **kwargs: Any) -> Any:
    """Applies a layer `repetitions` times, with the same arguments, to its own output.

    `layer(inputs, *args, **kwargs, scope=…)` is called in the scope ``scope``, by default "Repeat", with the
    scopes ``scope_1``, ``scope_2`` …; without a scope these are made of the layer's name.
    """
    scope = kwargs.pop("scope", None)
    with tf.variable_scope(scope, "Repeat", [inputs]):
        inputs = tf.convert_to_tensor(inputs)
        name = scope if scope is not None else _scope_of(layer, "repeat")
        outputs = inputs
        for i in range(repetitions):
            outputs = layer(outputs, *args, **kwargs, scope=f"{name}_{i + 1}")
        return outputs


def stack(inputs: Any, layer: Layer, stack_args: Sequence[Any], **kwargs: Any) -> Any:
    """Applies a layer once for each of `stack_args`, each time to its last output.

    An element of `stack_args` is the layer's second argument, or a list or tuple of those that follow the
    inputs. For scopes see `repeat`; the default is "Stack". ValueError if `stack_args` is no list or tuple.
    """
    scope = kwargs.pop("scope", None)
    if not isinstance(stack_args, (list, tuple)):
        raise ValueError("stack_args need to be a list or tuple")
    with tf.variable_scope(scope, "Stack", [inputs]):
        inputs = tf.convert_to_tensor(inputs)
        name = scope if scope is not None else _scope_of(layer, "stack")
        outputs = inputs
        for i, given in enumerate(stack_args):
            arguments = given if isinstance(given, (list, tuple)) else [given]
            outputs = layer(outputs, *arguments, **kwargs, scope=f"{name}_{i + 1}")
        return outputs
