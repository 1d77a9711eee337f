"""What the published package takes from `tensorflow.python.keras.backend`: the ground of its own backend.

Keras 2.3 has its settings, its session, its variables and the functions below from there; the rest of
`tf.keras.backend` is built in the package out of public operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.names.late_names import late_names
from flowstone.keras.settings import floatx

_ROOM = "flowstone.keras"
__getattr__, __dir__ = late_names(
    globals(),
    {
        f"{_ROOM}.crossentropies": "binary_crossentropy categorical_crossentropy"
        " sparse_categorical_crossentropy",
        f"{_ROOM}.functions": "Function function",
        f"{_ROOM}.recurrence": "rnn",
        f"{_ROOM}.sessions": "clear_session get_graph get_session get_uid learning_phase"
        " learning_phase_scope manual_variable_initialization reset_uids set_learning_phase set_session"
        " symbolic_learning_phase track_variable",
        f"{_ROOM}.settings": "cast_to_floatx epsilon floatx image_data_format set_epsilon set_floatx"
        " set_image_data_format",
        f"{_ROOM}.variables": "batch_get_value batch_set_value constant get_value is_sparse placeholder"
        " set_value variable",
    },
)


def hard_sigmoid(x: Any) -> Any:
    """0.2 x + 0.5, no less than 0 and no more than 1."""
    x = tf.convert_to_tensor(x)
    scale, half = (tf.constant(value, x.dtype.base_dtype) for value in (0.2, 0.5))
    return tf.clip_by_value(tf.add(tf.multiply(x, scale), half), 0.0, 1.0)


def _seed(seed: int | None) -> int:
    """The seed, or one that NumPy draws: NumPy's seed then decides what a model begins with."""
    return int(np.random.randint(10_000_000)) if seed is None else seed


def random_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """Normal numbers; without a seed, one that NumPy draws."""
    return tf.random_normal(shape, mean, stddev, dtype or floatx(), _seed(seed))


def random_uniform(
    shape: Any, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """Uniform numbers of [minval, maxval); without a seed, one that NumPy draws."""
    return tf.random_uniform(shape, minval, maxval, dtype or floatx(), _seed(seed))


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    """Normal numbers within two standard deviations; without a seed, one that NumPy draws."""
    return tf.truncated_normal(shape, mean, stddev, dtype or floatx(), _seed(seed))


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: int | None = None) -> Any:
    """1 with probability `p`, else 0; without a seed, one that NumPy draws."""
    dtype = dtype or floatx()
    drawn = tf.random_uniform(shape, dtype=dtype, seed=_seed(seed))
    return tf.where(drawn <= p, tf.ones(shape, dtype), tf.zeros(shape, dtype))
