"""Generalised divisive normalisation: `GDN` and the function `gdn`.

Source: Ballé, Laparra and Simoncelli, "Density Modeling of Images Using a Generalized Normalization
Transformation" (2016):

    y[i] = x[i] / sqrt(beta[i] + sum over j of gamma[j, i] * x[j] ** 2)

To keep beta and gamma positive, what is trained are the roots of beta and gamma plus a small pedestal, kept
above a bound. The gradient passes that bound where it leads back above it.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.layers import InputSpec, Layer

__all__ = ["GDN", "gdn"]


@tf.RegisterGradient("GDNLowerBound")
def _slope_above(op: Any, slope: Any) -> tuple[Any, None]:
    """The gradient of max(inputs, bound): below the bound, what makes the inputs larger passes, too."""
    inputs, bound = op.inputs
    passes = tf.logical_or(inputs >= bound, slope < 0)
    return tf.cast(passes, slope.dtype) * slope, None


def _above(inputs: Any, bound: Any) -> Any:
    with tf.get_default_graph().gradient_override_map({"Maximum": "GDNLowerBound"}):
        return tf.maximum(inputs, bound, name="GDNLowerBound")


class GDN(Layer):
    """Divides each channel by a norm of all channels at its place; with `inverse` multiplies instead.

    Args:
        inverse: whether it is (approximately) the inverse of a `GDN` layer.
        beta_min: the least beta.
        gamma_init: the diagonal of gamma at first; beta is 1 at first.
        reparam_offset: the root of the pedestal.
        data_format: "channels_last" or "channels_first".
        activity_regularizer, trainable, name: as of every layer.

    Inputs have from 3 to 5 dimensions and a known number of channels, else ValueError. The variables are
    ``reparam_beta`` [channels] and ``reparam_gamma`` [channels, channels].
    """

    def __init__(
        self,
        inverse: bool = False,
        beta_min: float = 1e-6,
        gamma_init: float = 0.1,
        reparam_offset: float = 2**-18,
        data_format: str = "channels_last",
        activity_regularizer: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs)
        self.inverse, self.data_format = inverse, data_format
        self._beta_min, self._gamma_init, self._reparam_offset = beta_min, gamma_init, reparam_offset
        self.beta: Any = None
        self.gamma: Any = None
        if data_format not in ("channels_first", "channels_last"):
            raise ValueError(f"Unknown data format: '{data_format}'.")
        self.input_spec = InputSpec(min_ndim=3, max_ndim=5)

    def build(self, input_shape: Any) -> None:
        """Makes the variables, whose size is the number of channels."""
        shape = tf.TensorShape(input_shape)
        axis = 1 if self.data_format == "channels_first" else -1
        channels = shape.as_list()[axis]
        if channels is None:
            raise ValueError("The channel dimension of the inputs to `GDN` must be defined.")
        self.input_spec = InputSpec(min_ndim=3, max_ndim=5, axes={axis: channels})
        pedestal = self._reparam_offset**2
        beta_bound = (self._beta_min + pedestal) ** 0.5
        dtype = self.dtype or "float32"
        offset = tf.constant(pedestal, dtype)

        def reparameterized(values: Any, bound: float, name: str) -> Any:
            def initial(shape: Any, dtype: Any, partition_info: Any = None, **_: Any) -> Any:
                start = (
                    tf.constant(values, dtype=dtype, shape=shape)
                    if name == "beta"
                    else (self._gamma_init * tf.eye(channels, dtype=dtype))
                )
                return tf.sqrt(tf.maximum(start + pedestal, pedestal))

            size = [channels] if name == "beta" else [channels, channels]
            root = self.add_weight(f"reparam_{name}", shape=size, initializer=initial, trainable=True)
            return tf.square(_above(root, tf.constant(bound, dtype))) - offset

        self.beta = reparameterized(1.0, beta_bound, "beta")
        self.gamma = reparameterized(None, self._reparam_offset, "gamma")
        super().build(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The inputs, normalised."""
        inputs = tf.convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        channels = self.gamma.shape.as_list()[0]
        gamma = tf.reshape(self.gamma, [1] * (rank - 2) + [channels, channels])
        spaces = "WHD"[: rank - 2][::-1] if rank < 5 else "DHW"
        first = self.data_format == "channels_first"
        layout = f"NC{spaces}" if first else f"N{spaces}C"
        pool = tf.nn.convolution(tf.square(inputs), gamma, "VALID", data_format=layout)
        if not first:
            pool = tf.nn.bias_add(pool, self.beta)
        else:
            pool += tf.reshape(self.beta, [channels, *[1] * (rank - 2)])
        pool = tf.sqrt(pool)
        outputs = inputs * pool if self.inverse else inputs / pool
        outputs.set_shape(inputs.shape)
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return tf.TensorShape(input_shape)


def gdn(
    inputs: Any,
    inverse: bool = False,
    beta_min: float = 1e-6,
    gamma_init: float = 0.1,
    reparam_offset: float = 2**-18,
    data_format: str = "channels_last",
    activity_regularizer: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Any:
    """A `GDN` layer's only call; `reuse` takes the variables of the layer of this `name` again."""
    layer = GDN(
        inverse=inverse,
        beta_min=beta_min,
        gamma_init=gamma_init,
        reparam_offset=reparam_offset,
        data_format=data_format,
        activity_regularizer=activity_regularizer,
        trainable=trainable,
        name=name,
        dtype=tf.convert_to_tensor(inputs).dtype.base_dtype.name,
        _scope=name,
        _reuse=reuse,
    )
    return layer(inputs)
