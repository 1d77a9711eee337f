"""Masked autoregressive flows, and the networks with masked kernels that make them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["MaskedAutoregressiveFlow", "masked_autoregressive_default_template", "masked_dense"]


class MaskedAutoregressiveFlow(Bijector):
    """y_i = x_i exp(s(y)_i) + t(y)_i, where s_i and t_i depend on y_0 … y_(i-1) only.

    The inverse takes one evaluation, `forward` one for each element of an event
    (Papamakarios et al., "Masked autoregressive flow for density estimation", 2017).

    Args:
        shift_and_log_scale_fn: gives (t, s) of y; either may be None.
        is_constant_jacobian: whether s does not depend on y.
        validate_args: see `Bijector`.
        unroll_loop: whether `forward` evaluates in the graph one by one, not in a loop of the step.
        name: the scope of its operations; ``masked_autoregressive_flow`` by default.
    """

    def __init__(
        self,
        shift_and_log_scale_fn: Any,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        unroll_loop: bool = False,
        name: str | None = None,
    ) -> None:
        self._shift_and_log_scale_fn, self._unroll_loop = shift_and_log_scale_fn, unroll_loop
        super().__init__(
            forward_min_event_ndims=1,
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            name=name or "masked_autoregressive_flow",
        )

    def _scaled(self, x: Any, y: Any) -> Any:
        shift, log_scale = self._shift_and_log_scale_fn(y)
        result = x if log_scale is None else x * tf.exp(log_scale)
        return result if shift is None else result + shift

    def _forward(self, x: Any) -> Any:
        if self._unroll_loop:
            count = x.shape.with_rank_at_least(1)[-1].value
            if count is None:
                raise ValueError("The static `event_size` must be known at graph construction.")
            y = tf.zeros_like(x)
            for _ in range(count):
                y = self._scaled(x, y)
            return y
        count = tf.shape(x)[-1]
        # The variables of a template are made outside the loop.
        start = tf.zeros_like(x)
        self._shift_and_log_scale_fn(start)
        return tf.while_loop(
            lambda index, _: index < count,
            lambda index, y: (index + 1, self._scaled(x, y)),
            (tf.constant(0), start),
            shape_invariants=(tf.TensorShape([]), x.shape),
        )[1]

    def _inverse(self, y: Any) -> Any:
        shift, log_scale = self._shift_and_log_scale_fn(y)
        x = y if shift is None else y - shift
        return x if log_scale is None else x * tf.exp(-log_scale)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        log_scale = self._shift_and_log_scale_fn(y)[1]
        if log_scale is None:
            return tf.constant(0.0, dtype=y.dtype, name="ildj")
        return -tf.reduce_sum(log_scale, axis=-1)


def _mask(num_blocks: int, n_in: int, n_out: int, exclusive: bool, dtype: Any) -> Any:
    """The kernel's mask [n_in, n_out]: a block of outputs sees blocks of inputs up to its own, or below."""
    mask = np.zeros([n_in, n_out], dtype=dtype)
    d_in, d_out = n_in // num_blocks, n_out // num_blocks
    for block in range(num_blocks):
        first = (block + exclusive) * d_out
        mask[block * d_in : (block + 1) * d_in, first:] = 1
    return mask


def masked_dense(
    inputs: Any,
    units: int,
    num_blocks: int | None = None,
    exclusive: bool = False,
    kernel_initializer: Any = None,
    reuse: bool | None = None,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A dense layer whose kernel is masked so that outputs depend on inputs of earlier blocks.

    Args:
        inputs: floating, [..., n] with a known n.
        units: the number of outputs.
        num_blocks: how many blocks inputs and outputs are divided into.
        exclusive: whether a block of outputs does not see its own block of inputs.
        kernel_initializer: of the kernel before its mask; Glorot's normal one by default.
        reuse, name: as of `tf.layers.dense`.
        args, kwargs: more arguments of `tf.layers.Dense`, from `activation` on.

    NotImplementedError if n is not known (Germain et al., "MADE", 2015).
    """
    inputs = tf.convert_to_tensor(inputs)
    depth = inputs.shape.with_rank_at_least(1)[-1].value
    if depth is None:
        raise NotImplementedError("Rightmost dimension must be known prior to graph execution.")
    mask = _mask(num_blocks or 1, depth, units, exclusive, inputs.dtype.as_numpy_dtype)
    initial = kernel_initializer or tf.glorot_normal_initializer()

    def masked_initializer(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return mask * initial(shape, dtype, partition_info)

    layer = tf.layers.Dense(
        units,
        *args,
        kernel_initializer=masked_initializer,
        kernel_constraint=lambda x: mask * x,
        name=name,
        dtype=inputs.dtype.base_dtype,
        _scope=name,
        _reuse=reuse,
        **kwargs,
    )
    return layer.apply(inputs)


@tf.custom_gradient
def _clip_with_gradient(x: Any, low: Any, high: Any) -> Any:
    """Clipped values whose gradient is that of the values."""

    def gradient(upstream: Any) -> Any:
        return upstream, None, None

    return tf.clip_by_value(x, low, high), gradient


def masked_autoregressive_default_template(
    hidden_layers: Any,
    shift_only: bool = False,
    activation: Any = tf.nn.relu,
    log_scale_min_clip: float = -5.0,
    log_scale_max_clip: float = 3.0,
    log_scale_clip_gradient: bool = False,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A template of masked dense layers that gives (shift, log_scale) for `MaskedAutoregressiveFlow`.

    Args:
        hidden_layers: the units of each hidden layer.
        shift_only: whether log_scale is None.
        activation: of the hidden layers.
        log_scale_min_clip, log_scale_max_clip: the bounds of log_scale.
        log_scale_clip_gradient: whether gradients stop at the bounds.
        name: the template's name, ``masked_autoregressive_default_template`` by default.
        args: nothing more is taken by position. TypeError for more.
        kwargs: more arguments of `masked_dense`.
    """

    if args:
        raise TypeError("More arguments of the template's layers must be given by name.")

    def clipped(log_scale: Any) -> Any:
        clip = tf.clip_by_value if log_scale_clip_gradient else _clip_with_gradient
        return clip(log_scale, log_scale_min_clip, log_scale_max_clip)

    def build(x: Any) -> Any:
        depth = x.shape.with_rank_at_least(1)[-1].value
        if depth is None:
            raise NotImplementedError("Rightmost dimension must be known prior to graph execution.")
        sizes, static = tf.shape(x), x.shape
        x = x[None] if static.ndims == 1 else x
        layer: Any = partial(masked_dense, num_blocks=depth, **kwargs)
        for index, units in enumerate(hidden_layers):
            x = layer(x, units, exclusive=index == 0, activation=activation)
        x = layer(x, (1 if shift_only else 2) * depth, exclusive=not hidden_layers)
        if shift_only:
            x = tf.reshape(x, sizes)
            x.set_shape(static)
            return x, None
        x = tf.reshape(x, tf.concat([sizes, [2]], axis=0))
        x.set_shape(static.concatenate([2]))
        shift, log_scale = tf.unstack(x, num=2, axis=-1)
        return shift, clipped(log_scale)

    return tf.make_template(name or "masked_autoregressive_default_template", build)
