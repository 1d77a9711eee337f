"""Batch normalisation of `tf.layers`: the class `BatchNormalization` and the function that calls it once.

In training, inputs are normalised by the moments of the batch, and moving averages of these are kept; in
inference, inputs are normalised by the averages. The ops that move the averages are in the collection
UPDATE_OPS: a training step has to run them besides its own.

Batches of images whose channels are normalised take one op (`fused`); all else is made of moments and
products. Batch renormalisation is in `renormalization`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.layers.arguments import ONES, ZEROS, initializer_named, smart_cond, smart_constant_value
from flowstone.layers.base import InputSpec, Layer
from flowstone.layers.renormalization import Clipping, composed, corrected_moments, moved_variance, moved_when
from flowstone.ops.arrays.constants import constant, ones_like, zeros_like
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.networks.normalization import batch_normalization as normalized
from flowstone.ops.networks.normalization import fused_batch_norm, moments
from flowstone.ops.numbers.reductions import reduce_mean
from flowstone.ops.variables.variable_creation import VariableAggregation, VariableSynchronization
from flowstone.training.optimizers.moving_averages import move_average

__all__ = ["BatchNorm", "BatchNormalization", "batch_norm", "batch_normalization"]

Function = Callable[..., Any]
_NARROW = (dtypes.float16, dtypes.bfloat16)


class BatchNormalization(Layer):
    """gamma * (inputs - mean) / sqrt(variance + epsilon) + beta, by channel.

    Args:
        axis: the dimension of the channels, or several.
        momentum: of the moving averages: average = momentum * average + (1 - momentum) * moment.
        epsilon: is added to the variance.
        center, scale: whether there is a beta, a gamma.
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer: of the
            variables.
        beta_regularizer, gamma_regularizer: functions of the variable that return a loss.
        beta_constraint, gamma_constraint: functions that an optimiser applies to the variable's new value.
        renorm: whether the batch's moments are corrected towards their moving averages (Ioffe, 2017), with
            ``renorm_clipping`` ({"rmin", "rmax", "dmax"}) of the correction and `renorm_momentum` of averages
            of its own.
        fused: False never takes the fused op; None and True take it where it can be.
        virtual_batch_size: the size of parts of the batch that are normalised each by itself.
        adjustment: a function of the inputs' shape that returns a scale and a bias to apply, in training
            only, to the normalised values before gamma and beta.

    A call's argument `training` is a bool or a scalar bool tensor. The variables are ``gamma``, ``beta``,
    ``moving_mean`` and ``moving_variance``. ValueError for inputs of unknown rank or number of channels.
    """

    supports_masking = True

    def __init__(
        self, axis: Any = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True,
        scale: bool = True, beta_initializer: Any = ZEROS, gamma_initializer: Any = ONES,
        moving_mean_initializer: Any = ZEROS, moving_variance_initializer: Any = ONES,
        beta_regularizer: Function | None = None, gamma_regularizer: Function | None = None,
        beta_constraint: Function | None = None, gamma_constraint: Function | None = None,
        renorm: bool = False, renorm_clipping: Clipping | None = None, renorm_momentum: float = 0.99,
        fused: bool | None = None, trainable: bool = True, virtual_batch_size: int | None = None,
        adjustment: Function | None = None, name: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, **kwargs)
        self.axis = _axes(axis)
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        self.beta_initializer = initializer_named(beta_initializer)
        self.gamma_initializer = initializer_named(gamma_initializer)
        self.moving_mean_initializer = initializer_named(moving_mean_initializer)
        self.moving_variance_initializer = initializer_named(moving_variance_initializer)
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.renorm, self.renorm_clipping = renorm, dict(renorm_clipping or {})
        self.renorm_momentum, self.fused = renorm_momentum, fused
        self.virtual_batch_size, self.adjustment = virtual_batch_size, adjustment
        unknown = set(self.renorm_clipping) - {"rmax", "rmin", "dmax"}
        if renorm and unknown:
            raise ValueError(
                f"renorm_clipping {renorm_clipping} contains keys not in ['rmax', 'rmin', 'dmax']"
            )
        if virtual_batch_size is not None:
            if virtual_batch_size <= 0:
                raise ValueError(
                    "virtual_batch_size must be a positive integer that divides the true batch size of the "
                    f"input Tensor. Received: {virtual_batch_size}"
                )
            if adjustment is not None:
                raise ValueError("When using virtual_batch_size, adjustment cannot be specified")

    def get_config(self) -> dict[str, Any]:
        """What it is made of; an only axis is a number before the layer is built."""
        config = super().get_config()
        is_open = not self.built and len(self.axis) == 1
        return {**config, "axis": self.axis[0] if is_open else self.axis}

    # ---- variables

    def build(self, input_shape: Any) -> None:
        self._build_for(as_shape(input_shape))
        super().build(input_shape)

    def _build_for(self, input_shape: TensorShape) -> None:
        sizes = self._known_sizes(input_shape)
        rank = len(sizes)
        dtype = dtypes.as_dtype(self.dtype or dtypes.float32)
        if not dtype.is_floating:
            raise TypeError(f"Unable to build `BatchNormalization` with non-floating point dtype {dtype}")
        self.input_spec = InputSpec(ndim=rank, axes=sizes_at(sizes, self.axis))
        plain = self.virtual_batch_size is None and self.adjustment is None and not self.renorm
        narrow_enough = dtype in (*_NARROW, dtypes.float32)
        self.fused = (
            self.fused is not False and plain and narrow_enough and rank == 4 and self.axis in ([1], [3])
        )
        shape: list[int | None]
        if self.virtual_batch_size is not None:
            self.axis = [axis + 1 for axis in self.axis]  # the batch is split in two dimensions
            sizes = [None, None, *sizes[1:]]
        if len(self.axis) == 1 and self.virtual_batch_size is None:
            shape = [sizes[self.axis[0]]]
        else:
            shape = [sizes[i] if i in self.axis else 1 for i in range(len(sizes))]
        self._make_variables(shape, dtypes.float32 if dtype in _NARROW else dtype)

    def _known_sizes(self, shape: TensorShape) -> list[int | None]:
        """The inputs' sizes, with the axes checked against them and made numbers from 0 on."""
        if shape.ndims is None:
            raise ValueError("Input has undefined rank:", shape)
        axes = [axis + shape.ndims if axis < 0 else axis for axis in self.axis]
        for axis in axes:
            if not 0 <= axis < shape.ndims:
                raise ValueError(f"Invalid axis: {axis}")
        if len(set(axes)) != len(axes):
            raise ValueError(f"Duplicate axis: {axes}")
        sizes = shape.as_list()
        if any(sizes[axis] is None for axis in axes):
            raise ValueError("Input has undefined `axis` dimension. Input shape: ", shape)
        self.axis = axes
        return sizes

    def _make_variables(self, shape: Any, dtype: Any) -> None:
        self.gamma = self.beta = self._fixed_gamma = self._fixed_beta = None
        if not self.scale and self.fused:
            self._fixed_gamma = constant(np.ones(shape, np.float32))
        if self.scale:
            self.gamma = self.add_weight(
                "gamma", shape, dtype, self.gamma_initializer, self.gamma_regularizer,
                constraint=self.gamma_constraint,
            )  # fmt: skip
        if not self.center and self.fused:
            self._fixed_beta = constant(np.zeros(shape, np.float32))
        if self.center:
            self.beta = self.add_weight(
                "beta", shape, dtype, self.beta_initializer, self.beta_regularizer,
                constraint=self.beta_constraint,
            )  # fmt: skip
        self._set_scope(None)
        scope: Any = self._scope
        partitioner = scope.partitioner
        scope.set_partitioner(None)
        try:
            mean_initializer, variance_initializer = (
                self.moving_mean_initializer,
                self.moving_variance_initializer,
            )
            self.moving_mean = self._average("moving_mean", shape, dtype, mean_initializer)
            self.moving_variance = self._average("moving_variance", shape, dtype, variance_initializer)
            if self.renorm:
                root = _root_of(variance_initializer)
                self.moving_stddev = self._average("moving_stddev", shape, dtype, root)
                self.renorm_mean = self._average("renorm_mean", shape, dtype, mean_initializer)
                self.renorm_stddev = self._average("renorm_stddev", shape, dtype, root)
        finally:
            scope.set_partitioner(partitioner)

    def _average(self, name: str, shape: Any, dtype: Any, initializer: Any) -> Any:
        return self.add_weight(
            name, shape, dtype, initializer, trainable=False, aggregation=VariableAggregation.MEAN,
            synchronization=VariableSynchronization.ON_READ,
        )  # fmt: skip

    # ---- outputs

    def call(self, inputs: Any, training: Any = False, *args: Any, **kwargs: Any) -> Tensor:
        x = convert_to_tensor(inputs)
        training = False if training is None else training
        if self.fused:
            return self._fused(x, training)
        parts = x if self.virtual_batch_size is None else self._in_parts(x)
        y = self._normalized(parts, training)
        if parts is not x:
            sizes = x.shape.as_list()
            y = F.Reshape(y, shape_of(x) if None in sizes[1:] else np.array([-1, *sizes[1:]], np.int32))
        y.set_shape(x.shape)
        return y

    def _in_parts(self, x: Tensor) -> Tensor:
        """x [batch, …] as [size of a part, number of parts, …]."""
        found = shape_of(x) if None in (x.dims or ())[1:] else None
        others = [
            size if size is not None or found is None else found[i]
            for i, size in enumerate(x.dims or ())
            if i > 0
        ]
        return F.Reshape(x, convert_to_tensor([self.virtual_batch_size, -1, *others], name="Reshape/shape"))

    def _fused(self, x: Tensor, training: Any) -> Tensor:
        y: Tensor
        layout = "NCHW" if self.axis == [1] else "NHWC"
        gamma = self._fixed_gamma if self.gamma is None else self.gamma
        beta = self._fixed_beta if self.beta is None else self.beta

        def by_batch() -> tuple[Tensor, Tensor, Tensor]:
            return fused_batch_norm(x, gamma, beta, epsilon=self.epsilon, data_format=layout)

        def by_averages() -> tuple[Tensor, Tensor, Tensor]:
            return fused_batch_norm(
                x, gamma, beta, self.moving_mean, self.moving_variance, self.epsilon, layout,
                is_training=False,
            )  # fmt: skip

        y, mean, variance = smart_cond(training, by_batch, by_averages)
        known = smart_constant_value(training)
        if known is not None:
            momentum = convert_to_tensor(self.momentum)
        else:
            momentum = smart_cond(
                training, lambda: convert_to_tensor(self.momentum), lambda: convert_to_tensor(1.0)
            )
        if known is not False:
            moved = move_average(self.moving_mean, mean, momentum, zero_debias=False)
            self._note(moved, x)
            moved = move_average(self.moving_variance, variance, momentum, zero_debias=False)
            self._note(moved, x)
        return y

    def _note(self, update: Any, x: Tensor) -> None:
        if self.trainable:
            self.add_update(getattr(update, "op", update), inputs=x)

    def _normalized(self, x: Tensor, training: Any) -> Tensor:
        rank = len(x.dims or ())
        scale, offset = self._spread(self.gamma, rank), self._spread(self.beta, rank)
        if smart_constant_value(training) is False:
            mean, variance = self.moving_mean, self.moving_variance
        else:
            mean, variance, scale, offset = self._trained(x, training, scale, offset)
        mean, variance = (_of_type(self._spread(v, rank), x) for v in (mean, variance))
        offset, scale = (None if v is None else _of_type(v, x) for v in (offset, scale))
        return normalized(x, mean, variance, offset, scale, self.epsilon)

    def _trained(self, x: Tensor, training: Any, scale: Any, offset: Any) -> tuple[Any, Any, Any, Any]:
        """The batch's moments in training, else the averages, and scale and offset; moves the averages."""
        rank = len(x.dims or ())
        if self.adjustment is not None:
            adjusted, shift = self.adjustment(shape_of(x))
            adjusted = smart_cond(training, lambda: adjusted, lambda: ones_like(adjusted))
            shift = smart_cond(training, lambda: shift, lambda: zeros_like(shift))
            scale, offset = composed(adjusted, shift, scale, offset)
        in_parts = self.virtual_batch_size is not None
        axes = [i for i in range(rank) if i not in self.axis and not (in_parts and i == 1)]
        wide = F.Cast(x, DstT=dtypes.float32) if x.dtype.base_dtype in _NARROW else x
        of_batch = moments(wide, axes, keep_dims=in_parts or len(self.axis) > 1)
        mean = smart_cond(training, lambda: of_batch[0], lambda: self.moving_mean)
        variance = smart_cond(training, lambda: of_batch[1], lambda: self.moving_variance)
        new_mean, new_variance = mean, variance
        if in_parts:
            new_mean, new_variance = (reduce_mean(v, 1, keepdims=True) for v in (mean, variance))
        if self.renorm:
            r, d, new_mean, new_variance = corrected_moments(self, new_mean, new_variance, training)
            r = self._spread(F.StopGradient(r, name="renorm_r"), rank)
            d = self._spread(F.StopGradient(d, name="renorm_d"), rank)
            scale, offset = composed(r, d, scale, offset)
        self._note(moved_when(training, self.moving_mean, new_mean, self.momentum), x)
        if self.renorm:
            self._note(moved_variance(self, new_variance, training), x)
        else:
            self._note(moved_when(training, self.moving_variance, new_variance, self.momentum), x)
        return mean, variance, scale, offset

    def _spread(self, v: Any, rank: int) -> Any:
        """A vector, one element a channel, so that it broadcasts to the inputs; a variable as it is where it
        does."""
        if v is None or len(v.shape) == rank or self.axis == [rank - 1]:
            return v
        return F.Reshape(v, np.array([-1 if i in self.axis else 1 for i in range(rank)], np.int32))

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output: that of the inputs."""
        return as_shape(input_shape)


def _axes(axis: Any) -> list[int]:
    if isinstance(axis, (int, np.integer)):
        return [int(axis)]
    if not isinstance(axis, (list, tuple)):
        raise TypeError(f"axis must be int or list, type given: {type(axis)}")
    return [int(each) for each in axis]


def sizes_at(sizes: list[int | None], axes: list[int]) -> dict[int, int | None]:
    """The size of each of the axes."""
    return {axis: sizes[axis] for axis in axes}


def _root_of(initializer: Any) -> Function:
    """An initialiser with the square roots of the values of another."""

    def root(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Tensor:
        make = initializer() if isinstance(initializer, type) else initializer
        return F.Sqrt(make(shape, dtype=dtype))

    return root


def _of_type(v: Any, x: Tensor) -> Any:
    return v if v.dtype.base_dtype is x.dtype.base_dtype else F.Cast(v, DstT=x.dtype.base_dtype)


def batch_normalization(
    inputs: Any, axis: Any = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True,
    scale: bool = True, beta_initializer: Any = ZEROS, gamma_initializer: Any = ONES,
    moving_mean_initializer: Any = ZEROS, moving_variance_initializer: Any = ONES,
    beta_regularizer: Function | None = None, gamma_regularizer: Function | None = None,
    beta_constraint: Function | None = None, gamma_constraint: Function | None = None,
    training: Any = False, trainable: bool = True, name: str | None = None, reuse: bool | None = None,
    renorm: bool = False, renorm_clipping: Clipping | None = None, renorm_momentum: float = 0.99,
    fused: bool | None = None, virtual_batch_size: int | None = None, adjustment: Function | None = None,
) -> Tensor:  # fmt: skip
    """gamma * (inputs - mean) / sqrt(variance + epsilon) + beta, by channel.

    A `BatchNormalization` layer's only call. In training the moments are those of the batch, and the ops of
    the collection UPDATE_OPS move the averages, by which inference normalises.
    """
    layer = BatchNormalization(
        axis, momentum, epsilon, center, scale, beta_initializer, gamma_initializer, moving_mean_initializer,
        moving_variance_initializer, beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint,
        renorm, renorm_clipping, renorm_momentum, fused, trainable, virtual_batch_size, adjustment, name,
        _reuse=reuse, _scope=name,
    )  # fmt: skip
    result: Tensor = layer(inputs, training=training)
    return result


BatchNorm, batch_norm = BatchNormalization, batch_normalization
