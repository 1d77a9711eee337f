"""`tf.keras.initializers`: those of TensorFlow's layers, with the defaults that Keras has.

`glorot_uniform` and `glorot_normal` are classes, zeros, ones, constants and scaled variances are those of
`tf.initializers`; numbers follow the seeds of the graph and of the initialiser.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import flowstone as tf

__all__ = ["RandomNormal", "RandomUniform", "TruncatedNormal", "extend"]

_initializers: Any = tf.initializers
_normal: Any = tf.random_normal_initializer
_uniform: Any = tf.random_uniform_initializer
_truncated: Any = tf.truncated_normal_initializer


class RandomNormal(_normal):  # type: ignore[misc]
    """Normal numbers, by default of a standard deviation of 0.05."""

    def __init__(
        self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None, dtype: Any = tf.float32
    ) -> None:
        super().__init__(mean, stddev, seed, dtype)


class RandomUniform(_uniform):  # type: ignore[misc]
    """Uniform numbers, by default of [-0.05, 0.05)."""

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None, dtype: Any = tf.float32
    ) -> None:
        super().__init__(minval, maxval, seed, dtype)


class TruncatedNormal(_truncated):  # type: ignore[misc]
    """Normal numbers within two standard deviations, which are by default 0.05."""

    def __init__(
        self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None, dtype: Any = tf.float32
    ) -> None:
        super().__init__(mean, stddev, seed, dtype)


def _classes() -> dict[str, Any]:
    return {
        "Zeros": tf.zeros_initializer,
        "Ones": tf.ones_initializer,
        "Constant": tf.constant_initializer,
        "VarianceScaling": tf.variance_scaling_initializer,
        "Orthogonal": tf.orthogonal_initializer,
        "Identity": _initializers.identity,
        "GlorotUniform": tf.glorot_uniform_initializer,
        "GlorotNormal": tf.glorot_normal_initializer,
        "RandomNormal": RandomNormal,
        "RandomUniform": RandomUniform,
        "TruncatedNormal": TruncatedNormal,
        "Initializer": type(tf.zeros_initializer()).__mro__[1],
    }


# The names in lower case, and the classes that they name.
_SAME = {
    "Zeros": "zero zeros",
    "Ones": "one ones",
    "Constant": "constant",
    "GlorotUniform": "glorot_uniform",
    "GlorotNormal": "glorot_normal",
    "RandomNormal": "normal random_normal",
    "RandomUniform": "uniform random_uniform",
    "TruncatedNormal": "truncated_normal",
    "Identity": "identity",
    "Orthogonal": "orthogonal",
}
_FUNCTIONS = ("he_normal", "he_uniform", "lecun_normal", "lecun_uniform")


def extend(module: ModuleType) -> None:
    """Puts the initialisers into `keras.initializers`."""
    names = vars(module)
    names.update(_classes())
    for name, others in _SAME.items():
        names.update(dict.fromkeys(others.split(), names[name]))
    for name in _FUNCTIONS:
        names[name] = getattr(tf.initializers, name)
    published = names["get"]

    def get(identifier: Any) -> Any:
        """The initialiser of a name, configuration or function; None for None."""
        if isinstance(identifier, type) and hasattr(identifier, "get_config"):
            return identifier()
        return None if identifier is None else published(identifier)

    names["get"] = get
