"""`batch_norm`: normalisation by the moments of the batch, with moving averages for inference.

Source: Ioffe and Szegedy, "Batch Normalization" (2015). There are three ways, which give the same:

- the layer of `tf.layers`, which adds the updates of the averages to UPDATE_OPS and can renormalise;
- one fused op for images and matrices, where updates go elsewhere or the averages start without bias;
- moments and products for all else, such as weighted batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope
from flowstone.contrib.framework.variables import model_variable
from flowstone.contrib.layers import utils
from flowstone.contrib.layers.variables_of_layers import (
    Function,
    add_to_variable_collections,
    finished,
    variable_getter,
)
from flowstone.training.optimizers.moving_averages import assign_moving_average

__all__ = ["batch_norm"]

Given = Mapping[str, Any]
_DEFAULTS = {
    "beta": tf.zeros_initializer(),
    "gamma": tf.ones_initializer(),
    "moving_mean": tf.zeros_initializer(),
    "moving_variance": tf.ones_initializer(),
}


@add_arg_scope
def batch_norm(
    inputs: Any, decay: float = 0.999, center: bool = True, scale: bool = False, epsilon: float = 0.001,
    activation_fn: Function | None = None, param_initializers: Mapping[str, Any] | None = None,
    param_regularizers: Mapping[str, Any] | None = None, updates_collections: Any = tf.GraphKeys.UPDATE_OPS,
    is_training: Any = True, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, batch_weights: Any = None,
    fused: bool | None = None, data_format: str = "NHWC", zero_debias_moving_mean: bool = False,
    scope: Any = None, renorm: bool = False, renorm_clipping: Mapping[str, Any] | None = None,
    renorm_decay: float = 0.99, adjustment: Function | None = None,
) -> Any:  # fmt: skip
    """gamma * (inputs - mean) / sqrt(variance + epsilon) + beta, by channel (Ioffe and Szegedy, 2015).

    Args:
        inputs: [batch, …, channels]; [batch, channels, …] for NCHW.
        decay: of the moving averages: average = decay * average + (1 - decay) * moment.
        center, scale: whether there is a beta, a gamma.
        epsilon: is added to the variance.
        activation_fn: is applied to the result; None for none.
        param_initializers: of "beta", "gamma", "moving_mean" and "moving_variance".
        param_regularizers: of "beta" and "gamma".
        updates_collections: collections for the ops that move the averages; with None the result waits for
            them.
        is_training: a bool or a scalar bool: the batch's moments, or else the averages, normalise.
        reuse, variables_collections, outputs_collections, trainable, scope: see `fully_connected`; the scope
            is by default "BatchNorm".
        batch_weights: [batch]; how much an example counts in the moments.
        fused: False never takes the fused op; None and True take it where it can be.
        data_format: "NHWC" or "NCHW".
        zero_debias_moving_mean: corrects the mean's average for its start at zero.
        renorm, renorm_clipping, renorm_decay: batch renormalisation; see `tf.layers.batch_normalization`.
        adjustment: a function of the inputs' shape; see there.

    Raises:
        ValueError: another layout, inputs of unknown rank or number of channels, or renormalisation together
            with what `tf.layers` does not have.
    """
    given = dict(locals())
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    inputs = given["inputs"] = tf.convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    simple = batch_weights is None and not renorm and adjustment is None
    fusible = fused is not False and rank in (2, 4) and simple
    if fusible and (rank == 2 or not _has_layer(given)):
        return _fused_batch_norm(given)
    if rank is None:
        raise ValueError("Input has undefined rank:", inputs.shape)
    with tf.variable_scope(scope, "BatchNorm", [inputs], reuse=reuse, custom_getter=variable_getter()) as sc:
        if _has_layer(given):
            outputs = _by_layer(given, sc, fusible)
        elif renorm:
            raise ValueError(
                "renorm is not supported with batch_weights, updates_collections or zero_debias_moving_mean"
            )
        else:
            outputs = _by_moments(given, sc)
        return finished(outputs, sc.name, outputs_collections, activation_fn)


def _has_layer(given: Given) -> bool:
    return (
        given["batch_weights"] is None
        and given["updates_collections"] == tf.GraphKeys.UPDATE_OPS
        and not given["zero_debias_moving_mean"]
    )


def _by_layer(given: Given, scope: Any, fused: bool) -> Any:
    initializers = {**_DEFAULTS, **(given["param_initializers"] or {})}
    regularizers = given["param_regularizers"] or {}
    layer = tf.layers.BatchNormalization(
        axis=1 if given["data_format"] == "NCHW" else -1,
        momentum=given["decay"],
        epsilon=given["epsilon"],
        center=given["center"],
        scale=given["scale"],
        beta_initializer=initializers["beta"],
        gamma_initializer=initializers["gamma"],
        moving_mean_initializer=initializers["moving_mean"],
        moving_variance_initializer=initializers["moving_variance"],
        beta_regularizer=regularizers.get("beta"),
        gamma_regularizer=regularizers.get("gamma"),
        trainable=given["trainable"],
        renorm=given["renorm"],
        renorm_clipping=given["renorm_clipping"],
        renorm_momentum=given["renorm_decay"],
        adjustment=given["adjustment"],
        name=scope.name,
        _scope=scope,
        _reuse=given["reuse"],
        fused=fused,
    )
    outputs = layer(given["inputs"], training=given["is_training"])
    for name in ("beta", "gamma", "moving_mean", "moving_variance"):
        variable = getattr(layer, name)
        if variable is not None:
            add_to_variable_collections(variable, given["variables_collections"], name)
    return outputs


# ---- variables


def _variable(given: Given, name: str, shape: Any, dtype: Any, regularized: bool = False) -> Any:
    collections = utils.get_variable_collections(given["variables_collections"], name)
    return model_variable(
        name,
        shape=shape,
        dtype=dtype,
        initializer={**_DEFAULTS, **(given["param_initializers"] or {})}[name],
        regularizer=(given["param_regularizers"] or {}).get(name) if regularized else None,
        collections=collections,
        trainable=name in ("beta", "gamma") and given["trainable"],
    )


def _averages(given: Given, scope: Any, shape: Any, dtype: Any) -> tuple[Any, Any]:
    """The variables of the moving averages, which are never partitioned."""
    with tf.variable_scope(scope, reuse=scope.reuse) as within:
        within.set_partitioner(None)
        mean = _variable(given, "moving_mean", shape, dtype)
        variance = _variable(given, "moving_variance", shape, dtype)
    return mean, variance


def _updates(given: Given, averages: tuple[Any, Any], moments: tuple[Any, Any]) -> tuple[Any, Any]:
    """The ops that move the averages towards the moments."""
    decay, debias = given["decay"], given["zero_debias_moving_mean"]
    mean = assign_moving_average(averages[0], moments[0], decay, zero_debias=debias)
    return mean, assign_moving_average(averages[1], moments[1], decay, zero_debias=False)


def _channels(inputs: Any, data_format: str) -> int:
    channels: int | None = inputs.shape.as_list()[1 if data_format == "NCHW" else -1]
    if channels is None:
        raise ValueError("`C` dimension must be known but is None")
    return channels


# ---- by moments and products


def _by_moments(given: Given, scope: Any) -> Any:
    inputs, first = given["inputs"], given["data_format"] == "NCHW"
    dtype, rank = inputs.dtype.base_dtype, inputs.shape.ndims
    channels = _channels(inputs, given["data_format"])
    axes = [0, *range(2, rank)] if first else list(range(rank - 1))
    broadcast = [1, channels, *[1] * (rank - 2)] if first else None
    weights = given["batch_weights"]
    if weights is not None:
        weights = tf.reshape(tf.convert_to_tensor(weights), [-1, *[1] * (rank - 1)])
    beta = _variable(given, "beta", [channels], dtype) if given["center"] else None
    gamma = _variable(given, "gamma", [channels], dtype) if given["scale"] else None
    averages = _averages(given, scope, [channels], dtype)
    known = utils.constant_value(given["is_training"])
    moments = averages
    if known is None or known:
        if weights is None:
            found = tf.nn.moments(inputs, axes)
        else:
            found = tf.nn.weighted_moments(inputs, axes, weights)
        moments = _used_moments(given, averages, found)
    mean, variance = moments
    factors = [mean, variance, beta, gamma]
    if broadcast is not None:
        factors = [None if each is None else tf.reshape(each, broadcast) for each in factors]
    mean, variance, beta, gamma = factors
    outputs = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, given["epsilon"])
    outputs.set_shape(inputs.shape)
    return outputs


def _used_moments(given: Given, averages: tuple[Any, Any], found: tuple[Any, Any]) -> Any:
    """The batch's moments in training, else the averages; in training these are moved."""
    training, collections = given["is_training"], given["updates_collections"]
    if collections is None:

        def moved() -> tuple[Any, Any]:
            with tf.control_dependencies(_updates(given, averages, found)):
                return tf.identity(found[0]), tf.identity(found[1])

        return utils.smart_cond(training, moved, lambda: averages)
    updates = utils.smart_cond(training, lambda: _updates(given, averages, found), lambda: averages)
    for update in updates:
        tf.add_to_collections(collections, update)
    return utils.smart_cond(training, lambda: found, lambda: averages)


# ---- by the fused op


def _fused_batch_norm(given: Given) -> Any:
    inputs, data_format = given["inputs"], given["data_format"]
    with tf.variable_scope(given["scope"], "BatchNorm", [inputs], reuse=given["reuse"]) as sc:
        shape, is_matrix = inputs.shape, inputs.shape.ndims == 2
        channels = _channels(inputs, data_format)
        dtype = tf.float32 if inputs.dtype.base_dtype == tf.float16 else inputs.dtype.base_dtype
        matrix = inputs
        if is_matrix:
            inputs = tf.reshape(inputs, _as_image(channels, data_format))
        beta = gamma = None
        if given["center"]:
            beta = _variable(given, "beta", [channels], dtype, True)
        if given["scale"]:
            gamma = _variable(given, "gamma", [channels], dtype, True)
        beta = tf.constant(0.0, dtype=dtype, shape=[channels]) if beta is None else beta
        gamma = tf.constant(1.0, dtype=dtype, shape=[channels]) if gamma is None else gamma
        averages = _averages(given, sc, [channels], dtype)
        outputs = _fused(given, inputs, gamma, beta, averages)
        outputs.set_shape(inputs.shape)
        if is_matrix:
            outputs = tf.reshape(outputs, tf.shape(matrix))
        outputs.set_shape(shape)
        return finished(outputs, sc.name, given["outputs_collections"], given["activation_fn"])


def _as_image(channels: int, data_format: str) -> list[int]:
    return [-1, channels, 1, 1] if data_format == "NCHW" else [-1, 1, 1, channels]


def _fused(given: Given, inputs: Any, gamma: Any, beta: Any, averages: tuple[Any, Any]) -> Any:
    training, collections = given["is_training"], given["updates_collections"]
    options = {"epsilon": given["epsilon"], "data_format": given["data_format"]}

    def in_training() -> Any:
        return tf.nn.fused_batch_norm(inputs, gamma, beta, **options)

    def in_inference() -> Any:
        return tf.nn.fused_batch_norm(
            inputs, gamma, beta, mean=averages[0], variance=averages[1], is_training=False, **options
        )

    outputs, *moments = utils.smart_cond(training, in_training, in_inference)
    known = utils.constant_value(training)
    if known is not None and not known:
        return outputs
    found = (moments[0], moments[1])
    if collections is None:

        def moved() -> Any:
            with tf.control_dependencies(_updates(given, averages, found)):
                return tf.identity(outputs)

        return utils.smart_cond(training, moved, lambda: outputs)
    updates = utils.smart_cond(training, lambda: _updates(given, averages, found), lambda: averages)
    for update in updates:
        tf.add_to_collections(collections, update)
    return outputs
