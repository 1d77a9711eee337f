"""Fully connected layers, the older ones too, and biases by themselves."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope
from flowstone.contrib.framework.variables import model_variable
from flowstone.contrib.layers.initializers import xavier_initializer
from flowstone.contrib.layers.utils import get_variable_collections
from flowstone.contrib.layers.variables_of_layers import (
    Function,
    add_to_variable_collections,
    finished,
    variable_getter,
)

__all__ = [
    "bias_add",
    "elu",
    "fully_connected",
    "legacy_fully_connected",
    "legacy_linear",
    "legacy_relu",
    "linear",
    "relu",
    "relu6",
]

XAVIER = xavier_initializer()
ZEROS = tf.zeros_initializer()


@add_arg_scope
def fully_connected(
    inputs: Any, num_outputs: int, activation_fn: Function | None = tf.nn.relu,
    normalizer_fn: Function | None = None, normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = XAVIER, weights_regularizer: Function | None = None,
    biases_initializer: Any = ZEROS, biases_regularizer: Function | None = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    scope: Any = None,
) -> Any:  # fmt: skip
    """A fully connected layer: activation(inputs @ weights + biases), along the last dimension.

    Args:
        inputs: [..., in], of rank 2 at least.
        num_outputs: the size of the last dimension of the output.
        activation_fn: None for none.
        normalizer_fn: is applied to the product in place of the biases, with `normalizer_params`.
        weights_initializer, weights_regularizer: of the variable ``weights`` [in, num_outputs].
        biases_initializer, biases_regularizer: of ``biases``; an initialiser of None leaves these out.
        reuse: whether the scope's variables are taken again; needs `scope`.
        variables_collections: collections for all variables, or a dict with those for "weights" and "biases".
        outputs_collections: collections for the output, under the scope's name.
        trainable: whether the variables are in TRAINABLE_VARIABLES.
        scope: of the variables; default "fully_connected", made unique.

    Raises:
        ValueError: inputs of rank below 2, an unknown last size, or `num_outputs` that is no integer.
    """
    if not isinstance(num_outputs, int):
        raise ValueError(f"num_outputs type should be one of [int], got {type(num_outputs)}.")
    getter = variable_getter({"bias": "biases", "kernel": "weights"})
    with tf.variable_scope(scope, "fully_connected", [inputs], reuse=reuse, custom_getter=getter) as sc:
        layer = tf.layers.Dense(
            units=num_outputs,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=sc.name,
            dtype=tf.convert_to_tensor(inputs).dtype.base_dtype,
            _scope=sc,
            _reuse=reuse,
        )
        outputs = layer(tf.convert_to_tensor(inputs))
        add_to_variable_collections(layer.kernel, variables_collections, "weights")
        if layer.bias is not None:
            add_to_variable_collections(layer.bias, variables_collections, "biases")
        return finished(
            outputs, sc.name, outputs_collections, activation_fn, normalizer_fn, normalizer_params
        )


linear = functools.partial(fully_connected, activation_fn=None)
relu = functools.partial(fully_connected, activation_fn=tf.nn.relu)
relu6 = functools.partial(fully_connected, activation_fn=tf.nn.relu6)
elu = functools.partial(fully_connected, activation_fn=tf.nn.elu)


@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Function | None = None,
    initializer: Any = ZEROS,
    regularizer: Function | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """Adds the variable ``biases`` to `inputs`, one for each channel.

    `data_format` says where the channels of images are; other inputs have them last. For the other arguments
    see `fully_connected`. ValueError for another layout and an unknown number of channels.
    """
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    with tf.variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as sc:
        inputs = tf.convert_to_tensor(inputs)
        shape = inputs.shape
        if shape.ndims is None:
            raise ValueError("Dims of shape must be known but is None")
        images = shape.ndims == 4
        if data_format == "NCHW" and not images:
            raise ValueError("Data format NCHW only supports 4D Tensor")
        channels = shape.as_list()[1 if images and data_format == "NCHW" else -1]
        if channels is None:
            raise ValueError("`C` dimension must be known but is None")
        biases = model_variable(
            "biases",
            shape=[channels],
            dtype=inputs.dtype.base_dtype,
            initializer=initializer,
            regularizer=regularizer,
            collections=get_variable_collections(variables_collections, "biases"),
            trainable=trainable,
        )
        outputs = tf.nn.bias_add(inputs, biases, data_format=data_format if images else None)
        return finished(outputs, sc.name, outputs_collections, activation_fn)


# ---- the older layers


@add_arg_scope
def legacy_fully_connected(
    x: Any, num_output_units: int, activation_fn: Function | None = None, weight_init: Any = XAVIER,
    bias_init: Any = ZEROS, name: str | None = None,
    weight_collections: Sequence[str] = (tf.GraphKeys.WEIGHTS,),
    bias_collections: Sequence[str] = (tf.GraphKeys.BIASES,),
    output_collections: Sequence[str] = (tf.GraphKeys.ACTIVATIONS,), trainable: bool = True,
    weight_regularizer: Function | None = None, bias_regularizer: Function | None = None,
) -> Any:  # fmt: skip
    """activation(x @ weights + bias), the layer of the first versions; see `fully_connected`.

    Args:
        x: [..., in], of rank 2 at least.
        num_output_units: the size of the last dimension of the output.
        activation_fn: None for none.
        weight_init, weight_collections, weight_regularizer: of the variable ``weights``.
        bias_init, bias_collections, bias_regularizer: of ``bias``; an initialiser of None leaves it out.
        name: the variable scope; default "fully_connected", made unique.
        output_collections: collections for the output.
        trainable: whether the variables are in TRAINABLE_VARIABLES.

    Raises:
        ValueError: `x` is of unknown rank, of rank below 2, or its last size is not known.
    """
    with tf.variable_scope(name, "fully_connected", [x]):
        x = tf.convert_to_tensor(x)
        rank = x.shape.ndims
        if rank is None:
            raise ValueError("dims of x must be known but is None")
        if rank < 2:
            raise ValueError(f"rank of x must be at least 2 not: {rank}")
        num_input_units = x.shape.as_list()[-1]
        if num_input_units is None:
            raise ValueError("last dimension of x must be known but is None")
        dtype = x.dtype.base_dtype
        w = tf.get_variable(
            "weights",
            shape=[num_input_units, num_output_units],
            dtype=dtype,
            initializer=weight_init,
            collections=[*weight_collections, tf.GraphKeys.GLOBAL_VARIABLES],
            regularizer=weight_regularizer,
            trainable=trainable,
        )
        y = tf.matmul(x if rank == 2 else tf.reshape(x, [-1, num_input_units]), w)
        if bias_init is not None:
            bias = tf.get_variable(
                "bias",
                shape=[num_output_units],
                dtype=dtype,
                initializer=bias_init,
                collections=[*bias_collections, tf.GraphKeys.GLOBAL_VARIABLES],
                regularizer=bias_regularizer,
                trainable=trainable,
            )
            y = tf.nn.bias_add(y, bias)
        if rank > 2:
            sizes = tf.unstack(tf.shape(x))
            y = tf.reshape(y, tf.stack([*sizes[:-1], num_output_units]))
            y.set_shape([*x.shape.as_list()[:-1], num_output_units])
        y = y if activation_fn is None else activation_fn(y)
        tf.add_to_collections({*output_collections, tf.GraphKeys.ACTIVATIONS}, y)
        return y


legacy_linear = functools.partial(legacy_fully_connected, activation_fn=None)
legacy_relu = functools.partial(legacy_fully_connected, activation_fn=tf.nn.relu)
