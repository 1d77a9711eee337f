"""`tf.keras.layers.BatchNormalization` as that of `tf.layers` computes it, and `LayerNormalization`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.keras.published import own
from flowstone.layers.normalization import BatchNormalization as _Computed
from flowstone.layers.normalization import _axes, _root_of

__all__ = ["extend"]

_BORROWED = (
    "_build_for",
    "_known_sizes",
    "_in_parts",
    "_fused",
    "_note",
    "_normalized",
    "_trained",
    "_spread",
)
_PARTS = ("initializers", "regularizers", "constraints")


def _keep(layer: Any, **given: Any) -> None:
    """Keeps initialisers, regularisers and constraints that a layer was given, by the arguments' names."""
    for name, value in given.items():
        setattr(layer, name, own(f"{name.rpartition('_')[2]}s").get(value))


def _add_gamma_and_beta(layer: Any, shape: Any, dtype: Any) -> None:
    """Makes the two weights, None for one that the layer does without."""
    for kind, is_there in (("gamma", layer.scale), ("beta", layer.center)):
        initializer, regularizer, constraint = (getattr(layer, f"{kind}_{part[:-1]}") for part in _PARTS)
        made = None
        if is_there:
            made = layer.add_weight(
                kind, shape, dtype, initializer, regularizer, True, constraint, experimental_autocast=False
            )
        setattr(layer, kind, made)


def _class_of_batches(layer: Any) -> Any:
    class BatchNormalization(layer):  # type: ignore[misc]
        """gamma * (inputs - mean) / sqrt(variance + epsilon) + beta, by channel; see `tf.layers`.

        The moments are those of the batch in training, which `training` says, or else the learning phase.
        The updates of the moving averages are the layer's `updates`.
        """

        def __init__(
            self, axis: Any = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True,
            scale: bool = True, beta_initializer: Any = "zeros", gamma_initializer: Any = "ones",
            moving_mean_initializer: Any = "zeros", moving_variance_initializer: Any = "ones",
            beta_regularizer: Any = None, gamma_regularizer: Any = None, beta_constraint: Any = None,
            gamma_constraint: Any = None, renorm: bool = False, renorm_clipping: Any = None,
            renorm_momentum: float = 0.99, fused: bool | None = None, trainable: bool = True,
            virtual_batch_size: int | None = None, adjustment: Any = None, name: str | None = None,
            **kwargs: Any,
        ) -> None:  # fmt: skip
            super().__init__(name=name, trainable=trainable, **kwargs)
            self.axis = list(axis) if isinstance(axis, (list, tuple)) else axis
            self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
            _keep(
                self, beta_initializer=beta_initializer, gamma_initializer=gamma_initializer,
                moving_mean_initializer=moving_mean_initializer,
                moving_variance_initializer=moving_variance_initializer, beta_regularizer=beta_regularizer,
                gamma_regularizer=gamma_regularizer, beta_constraint=beta_constraint,
                gamma_constraint=gamma_constraint,
            )  # fmt: skip
            self.renorm, self.renorm_clipping = renorm, dict(renorm_clipping or {})
            self.renorm_momentum, self.fused = renorm_momentum, fused
            self.virtual_batch_size, self.adjustment = virtual_batch_size, adjustment
            self.supports_masking = True

        def build(self, input_shape: Any) -> None:
            """Makes the variables, for this shape of inputs."""
            self.axis = _axes(self.axis)
            self._build_for(tf.TensorShape(input_shape))
            self.built = True

        def _make_variables(self, shape: Any, dtype: Any) -> None:
            self._fixed_gamma = self._fixed_beta = None
            if not self.scale and self.fused:
                self._fixed_gamma = tf.constant(1.0, tf.float32, shape)
            _add_gamma_and_beta(self, shape, dtype)
            if not self.center and self.fused:
                self._fixed_beta = tf.constant(0.0, tf.float32, shape)
            mean, variance = self.moving_mean_initializer, self.moving_variance_initializer
            averages = {"moving_mean": mean, "moving_variance": variance}
            if self.renorm:
                root = _root_of(variance)
                averages.update(moving_stddev=root, renorm_mean=mean, renorm_stddev=root)
            for name, initializer in averages.items():
                made = self.add_weight(
                    name, shape, dtype, initializer, trainable=False, experimental_autocast=False,
                    synchronization=tf.VariableSynchronization.ON_READ,
                    aggregation=tf.VariableAggregation.MEAN,
                )  # fmt: skip
                setattr(self, name, made)

        def call(self, inputs: Any, training: Any = None) -> Any:
            """The normalised inputs."""
            if training is None:
                training = own("backend").learning_phase()
            if isinstance(training, int):
                training = bool(training)
            return _Computed.call(self, inputs, training)

        def compute_output_shape(self, input_shape: Any) -> Any:
            """That of the inputs."""
            return input_shape

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            config = {
                name: getattr(self, name) for name in ("axis", "momentum", "epsilon", "center", "scale")
            }
            config.update(_serialized(self, ("beta", "gamma"), ("moving_mean", "moving_variance")))
            if self.renorm:
                config.update(renorm=True, renorm_clipping=self.renorm_clipping)
                config["renorm_momentum"] = self.renorm_momentum
            if self.virtual_batch_size is not None:
                config["virtual_batch_size"] = self.virtual_batch_size
            return {**super().get_config(), **config}

    for name in _BORROWED:
        setattr(BatchNormalization, name, getattr(_Computed, name))
    return BatchNormalization


def _serialized(layer: Any, kinds: tuple[str, ...], averages: tuple[str, ...] = ()) -> dict[str, Any]:
    """The configurations of the initialisers, regularisers and constraints of weights."""
    found = {}
    for part in _PARTS:
        serialize, name = own(part).serialize, part[:-1]
        for kind in kinds:
            found[f"{kind}_{name}"] = serialize(getattr(layer, f"{kind}_{name}"))
        if part == "initializers":
            found.update({f"{kind}_{name}": serialize(getattr(layer, f"{kind}_{name}")) for kind in averages})
    return found


def _class_of_layers(layer: Any) -> Any:
    class LayerNormalization(layer):  # type: ignore[misc]
        """gamma * (inputs - mean) / sqrt(variance + epsilon) + beta, by each example's moments along `axis`.

        Source: Ba, Kiros and Hinton, "Layer Normalization" (2016). ValueError for inputs of unknown rank, and
        for an axis that they do not have or that is there twice.
        """

        def __init__(
            self, axis: Any = -1, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
            beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", beta_regularizer: Any = None,
            gamma_regularizer: Any = None, beta_constraint: Any = None, gamma_constraint: Any = None,
            trainable: bool = True, name: str | None = None, **kwargs: Any,
        ) -> None:  # fmt: skip
            super().__init__(name=name, trainable=trainable, **kwargs)
            if not isinstance(axis, (int, list, tuple)):
                raise ValueError(
                    "Expected an int or a list/tuple of ints for the argument 'axis', but received instead: "
                    f"{axis}"
                )
            self.axis: Any = axis if isinstance(axis, int) else list(axis)
            self.epsilon, self.center, self.scale = epsilon, center, scale
            _keep(
                self, beta_initializer=beta_initializer, gamma_initializer=gamma_initializer,
                beta_regularizer=beta_regularizer, gamma_regularizer=gamma_regularizer,
                beta_constraint=beta_constraint, gamma_constraint=gamma_constraint,
            )  # fmt: skip
            self.supports_masking = True

        def build(self, input_shape: Any) -> None:
            """Makes the variables, for this shape of inputs."""
            rank = len(input_shape)
            self.axis = [axis + rank if axis < 0 else axis for axis in _axes(self.axis)]
            for axis in self.axis:
                if not 0 <= axis < rank:
                    raise ValueError(f"Invalid axis: {axis}")
            if len(set(self.axis)) != len(self.axis):
                raise ValueError(f"Duplicate axis: {tuple(self.axis)}")
            shape = [input_shape[axis] for axis in self.axis]
            _add_gamma_and_beta(self, shape, None)
            self.built = True

        def call(self, inputs: Any) -> Any:
            """The normalised inputs."""
            rank = inputs.shape.ndims
            mean, variance = tf.nn.moments(inputs, self.axis, keep_dims=True)
            sizes = [inputs.shape[i].value if i in self.axis else 1 for i in range(rank)]
            is_last = rank != 1 and self.axis == [rank - 1]
            scale, offset = (
                v if v is None or is_last else tf.reshape(v, np.array(sizes, np.int32))
                for v in (self.gamma, self.beta)
            )
            outputs = tf.nn.batch_normalization(inputs, mean, variance, offset, scale, self.epsilon)
            outputs.set_shape(inputs.shape)
            return outputs

        def compute_output_shape(self, input_shape: Any) -> Any:
            """That of the inputs."""
            return input_shape

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            config = {name: getattr(self, name) for name in ("axis", "epsilon", "center", "scale")}
            return {**super().get_config(), **config, **_serialized(self, ("beta", "gamma"))}

    return LayerNormalization


def extend(module: ModuleType) -> None:
    """Puts both classes into `keras.layers.normalization`."""
    names = vars(module)
    names["BatchNormalization"] = _class_of_batches(names["Layer"])
    names["LayerNormalization"] = _class_of_layers(names["Layer"])
    for made in (names["BatchNormalization"], names["LayerNormalization"]):
        made.__module__ = module.__name__
