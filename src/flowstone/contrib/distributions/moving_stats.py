"""Moving means and variances, kept in variables."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["assign_log_moving_mean_exp", "assign_moving_mean_variance", "moving_mean_variance"]


def assign_moving_mean_variance(
    mean_var: Any, variance_var: Any, value: Any, decay: Any, name: str | None = None
) -> Any:
    """Updates exponentially weighted moving means and variances, element by element.

    mean ← mean + (1 - decay) δ and variance ← decay (variance + (1 - decay) δ²) with δ = value - mean.

    Args:
        mean_var: the variable of means, floating.
        variance_var: the variable of variances.
        value: of the variables' shape.
        decay: in (0, 1).
        name: the scope of its operations.

    Returns both updated variables, mean first. TypeError if a type is not floating or differs.
    """
    with tf.name_scope(name or "assign_moving_mean_variance"):
        dtype = mean_var.dtype.base_dtype
        if not dtype.is_floating:
            raise TypeError(f"mean_var.base_dtype({dtype.name}) does not have float type `dtype`.")
        if variance_var.dtype.base_dtype != dtype:
            raise TypeError(f"mean_var has the type {dtype.name}, variance_var {variance_var.dtype.name}.")
        value = tf.convert_to_tensor(value, dtype=dtype, name="value")
        decay = tf.convert_to_tensor(decay, dtype=dtype, name="decay")
        delta = value - mean_var
        old = tf.identity(variance_var)
        with tf.control_dependencies([delta]):
            mean = tf.assign_add(mean_var, (1.0 - decay) * delta)
            variance = tf.assign_sub(variance_var, (1.0 - decay) * (old - decay * tf.square(delta)))
        return mean, variance


def assign_log_moving_mean_exp(
    log_mean_exp_var: Any, log_value: Any, decay: Any, name: str | None = None
) -> Any:
    """Updates the logarithm of a moving mean of exponentials: log(decay exp(mean) + (1 - decay) exp(value)).

    Args:
        log_mean_exp_var: the variable, floating.
        log_value: of the variable's shape.
        decay: in (0, 1).
        name: the scope of its operations.

    Returns the updated variable. TypeError if its type is not floating.
    """
    with tf.name_scope(name or "assign_log_moving_mean_exp"):
        dtype = log_mean_exp_var.dtype.base_dtype
        if not dtype.is_floating:
            raise TypeError(f"log_mean_exp_var.base_dtype({dtype.name}) does not have float type `dtype`.")
        log_value = tf.convert_to_tensor(log_value, dtype=dtype, name="log_value")
        decay = tf.convert_to_tensor(decay, dtype=dtype, name="decay")
        both = tf.stack([tf.log(decay) + log_mean_exp_var, tf.log1p(-decay) + log_value])
        return tf.assign(log_mean_exp_var, tf.reduce_logsumexp(both, axis=0))


def moving_mean_variance(value: Any, decay: Any, collections: Any = None, name: str | None = None) -> Any:
    """Makes variables ``moving_mean`` and ``moving_variance`` of zeros and updates them with the value.

    Args:
        value: floating, of a known shape.
        decay: in (0, 1).
        collections: of the variables; `GLOBAL_VARIABLES` by default.
        name: the variable scope, ``moving_mean_variance`` by default.

    Returns both updated variables, mean first; see `assign_moving_mean_variance`.
    """
    with tf.variable_scope(name, default_name="moving_mean_variance"):
        value = tf.convert_to_tensor(value, name="value")
        dtype = value.dtype.base_dtype
        if not dtype.is_floating:
            raise TypeError(f"value.base_dtype({dtype.name}) does not have float type `dtype`.")
        collections = [tf.GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
        variance, mean = (
            tf.get_variable(
                name,
                shape=value.shape,
                dtype=dtype,
                initializer=tf.zeros_initializer(),
                trainable=False,
                collections=collections,
            )
            for name in ("moving_variance", "moving_mean")
        )
        return assign_moving_mean_variance(mean, variance, value, decay)
