"""Activation functions by name, for the arguments of layers and cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.tensors.tensor import Tensor
from flowstone.gradients.swish import swish
from flowstone.ops.networks.activations import elu, relu, relu6, selu, softplus, softsign
from flowstone.ops.networks.softmax import log_softmax, softmax
from flowstone.ops.numbers.clipping import clip_by_value
from flowstone.ops.numbers.functions import exp, sigmoid, tanh

__all__ = ["activation_named"]


def linear(x: Tensor) -> Tensor:
    """x itself."""
    return x


def hard_sigmoid(x: Tensor) -> Tensor:
    """0.2 x + 0.5, clipped to between 0 and 1."""
    clipped: Tensor = clip_by_value(0.2 * x + 0.5, 0.0, 1.0)
    return clipped


_BY_NAME: dict[str, Callable[[Any], Any]] = {
    "elu": elu,
    "exponential": exp,
    "hard_sigmoid": hard_sigmoid,
    "linear": linear,
    "log_softmax": log_softmax,
    "relu": relu,
    "relu6": relu6,
    "selu": selu,
    "sigmoid": sigmoid,
    "silu": swish,
    "softmax": softmax,
    "softplus": softplus,
    "softsign": softsign,
    "swish": swish,
    "tanh": tanh,
}


def activation_named(
    activation: str | Callable[[Any], Any] | None, default: Callable[[Any], Any] = linear
) -> Callable[[Any], Any]:
    """The function for a name, a function or None (`default`).

    ValueError for an unknown name, TypeError for anything else.
    """
    if activation is None:
        return default
    if callable(activation):
        return activation
    if not isinstance(activation, str):
        raise TypeError(f"Could not interpret activation function identifier: {activation}")
    if activation not in _BY_NAME:
        known = ", ".join(sorted(_BY_NAME))
        raise ValueError(f"Unknown activation function: '{activation}'. Known are {known}.")
    return _BY_NAME[activation]
