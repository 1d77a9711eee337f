"""Layers of `tf.layers` that need no neighbourhood: dense products, dropout, flattening.

Each class has a function that makes the layer and calls it once. Function arguments are those of the class,
with `inputs` first and `reuse` (of the variables of another call with the same name) last.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.layers.activations import activation_named
from flowstone.layers.arguments import ZEROS, initializer_named, normalize_data_format, smart_cond
from flowstone.layers.base import InputSpec, Layer
from flowstone.ops.algebra.tensor_contractions import tensordot
from flowstone.ops.arrays.rearranging import transpose
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.networks.neural_net import bias_add
from flowstone.ops.networks.neural_net import dropout as dropped
from flowstone.ops.numbers.casts import cast

__all__ = [
    "Dense",
    "Dropout",
    "Flatten",
    "FullyConnected",
    "dense",
    "dropout",
    "flatten",
    "fully_connected",
]

Function = Callable[..., Any]


class Dense(Layer):
    """activation(inputs · kernel + bias), over the last dimension of inputs of two or more.

    Args:
        units: the size of the output's last dimension.
        activation: a function or its name; None for none.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: None for that of the variable scope.
        kernel_regularizer, bias_regularizer: functions of the variable that return a loss.
        activity_regularizer: a function of the output that returns a loss.
        kernel_constraint, bias_constraint: functions that an optimiser applies to the variable's new value.

    The variables are ``kernel`` [last dimension of the inputs, units] and ``bias`` [units]. ValueError where
    that dimension is not known, TypeError for inputs that are not floating.
    """

    supports_masking = True

    def __init__(
        self, units: int, activation: Any = None, use_bias: bool = True, kernel_initializer: Any = None,
        bias_initializer: Any = ZEROS, kernel_regularizer: Function | None = None,
        bias_regularizer: Function | None = None, activity_regularizer: Function | None = None,
        kernel_constraint: Function | None = None, bias_constraint: Function | None = None,
        trainable: bool = True, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units, self.use_bias = int(units), use_bias
        self.activation = activation_named(activation)
        self.kernel_initializer = initializer_named(kernel_initializer)
        self.bias_initializer = initializer_named(bias_initializer)
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self._activates = activation is not None
        self.input_spec = InputSpec(min_ndim=2)
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        if self.dtype is not None and not dtypes.as_dtype(self.dtype).is_floating:
            raise TypeError(f"Unable to build `Dense` layer with non-floating point dtype {self.dtype}")
        size = as_shape(input_shape)[-1].value
        if size is None:
            raise ValueError("The last dimension of the inputs to `Dense` should be defined. Found `None`.")
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.kernel = self.add_weight(
            "kernel", [size, self.units], initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer, constraint=self.kernel_constraint,
        )  # fmt: skip
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [self.units], initializer=self.bias_initializer,
                regularizer=self.bias_regularizer, constraint=self.bias_constraint,
            )  # fmt: skip
        super().build(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        x = convert_to_tensor(inputs)
        if self.dtype is not None and x.dtype.base_dtype.name != self.dtype:
            x = cast(x, self.dtype)
        rank = len(x.dims or ())
        y = F.MatMul(x, self.kernel) if rank == 2 else tensordot(x, self.kernel, [[rank - 1], [0]])
        if self.use_bias:
            y = bias_add(y, self.bias)
        return self.activation(y) if self._activates else y

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output for inputs of `input_shape`. ValueError where its last dimension is
        not known."""
        shape = as_shape(input_shape).with_rank_at_least(2)
        if shape[-1].value is None:
            raise ValueError(f"The innermost dimension of input_shape must be defined, but saw: {shape}")
        return TensorShape([*shape.as_list()[:-1], self.units])


def dense(
    inputs: Any, units: int, activation: Any = None, use_bias: bool = True, kernel_initializer: Any = None,
    bias_initializer: Any = ZEROS, kernel_regularizer: Function | None = None,
    bias_regularizer: Function | None = None, activity_regularizer: Function | None = None,
    kernel_constraint: Function | None = None, bias_constraint: Function | None = None,
    trainable: bool = True, name: str | None = None, reuse: bool | None = None,
) -> Tensor:  # fmt: skip
    """activation(inputs · kernel + bias), over the last dimension; a `Dense` layer's only call."""
    layer = Dense(
        units, activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer,
        bias_regularizer, activity_regularizer, kernel_constraint, bias_constraint, trainable, name,
        _scope=name, _reuse=reuse,
    )  # fmt: skip
    result: Tensor = layer(inputs)
    return result


class Dropout(Layer):
    """In training, inputs with elements set to 0 with probability `rate`, the others divided by 1 - rate.

    Args:
        rate: a number from 0 to 1, or a scalar tensor.
        noise_shape: it broadcasts to the inputs' shape; elements that share an entry are dropped together.
            None in it stands for the inputs' size.
        seed: of the random numbers.

    A call's argument `training` is a bool or a scalar bool tensor. False leaves the inputs as they are.
    """

    supports_masking = True

    def __init__(
        self,
        rate: Any = 0.5,
        noise_shape: Any = None,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = False, *args: Any, **kwargs: Any) -> Any:
        return smart_cond(
            False if training is None else training,
            lambda: dropped(
                inputs, noise_shape=self._get_noise_shape(inputs), seed=self.seed, rate=self.rate
            ),
            lambda: F.Identity(inputs),
        )

    def _get_noise_shape(self, inputs: Any) -> Any:
        """`noise_shape` with the inputs' sizes for None; subclasses override it."""
        if self.noise_shape is None or isinstance(self.noise_shape, Tensor):
            return self.noise_shape
        found = shape_of(inputs)
        sizes = [found[i] if size is None else size for i, size in enumerate(self.noise_shape)]
        return convert_to_tensor(sizes)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output: that of the inputs."""
        return as_shape(input_shape)


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """In training, inputs with elements set to 0 with probability `rate`, the others divided by 1 - rate.

    A `Dropout` layer's only call; `training` is a bool or a scalar bool tensor.
    """
    result: Tensor = Dropout(rate, noise_shape, seed, name)(inputs, training=training)
    return result


class Flatten(Layer):
    """[batch, ...] as a matrix [batch, all other dimensions].

    `data_format` "channels_first" has the channels come last in it, so that both layouts give one result.
    """

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = normalize_data_format(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        x = convert_to_tensor(inputs)
        rank = len(x.dims or ())
        if self.data_format == "channels_first" and rank > 2:
            x = transpose(x, [0, *range(2, rank), 1])
        sizes = self.compute_output_shape(inputs.shape).as_list()
        if sizes[0] is not None:
            to: Any = [sizes[0], -1 if sizes[1] is None else sizes[1]]
        else:
            to = [shape_of(x)[0], -1 if sizes[1] is None else sizes[1]]
        y = F.Reshape(x, convert_to_tensor(to, dtypes.int32, name="Reshape/shape"))
        y.set_shape(sizes)
        return y

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output for inputs of `input_shape`."""
        batch, *others = as_shape(input_shape).as_list()
        return TensorShape([batch, None if None in others else math.prod(others)])


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """[batch, ...] as a matrix [batch, all other dimensions]; a `Flatten` layer's only call."""
    result: Tensor = Flatten(data_format, name=name)(inputs)
    return result


FullyConnected = Dense
fully_connected = dense
