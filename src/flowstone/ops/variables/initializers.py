"""Initialisers: functions of a shape that make the initial values of variables.

Each is called as ``initializer(shape, dtype=None, partition_info=None)`` and adds the nodes of a tensor of
that shape; `partition_info` tells a part of a partitioned variable about the whole. ``get_config`` and
``from_config`` turn one into plain values and back.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import as_shape
from flowstone.ops.arrays import constants
from flowstone.ops.randomness import random

__all__ = [
    "constant_initializer",
    "glorot_normal_initializer",
    "glorot_uniform_initializer",
    "ones_initializer",
    "orthogonal_initializer",
    "random_normal_initializer",
    "random_uniform_initializer",
    "truncated_normal_initializer",
    "uniform_unit_scaling_initializer",
    "variance_scaling_initializer",
    "zeros_initializer",
]

_TRUNCATED_DEVIATION = 0.87962566103423978  # of a standard normal distribution cut off at two deviations


class Initializer:
    """Makes the initial value of a variable from its shape."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of this shape. `dtype`: instead of the initialiser's own."""
        raise TypeError(f"{type(self).__name__} does not say how to make a value")

    def get_config(self) -> dict[str, Any]:
        """The arguments it was made with, as plain values."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """The initialiser of `get_config`'s result."""
        return cls(**config)


def _own(initializer: Any, dtype: Any) -> DType:
    return initializer.dtype if dtype is None else dtypes.as_dtype(dtype)


class Zeros(Initializer):
    """All zero (False, empty text)."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of zeros."""
        return constants.zeros(shape, _own(self, dtype))

    def get_config(self) -> dict[str, Any]:
        """``dtype``."""
        return {"dtype": self.dtype.name}


class Ones(Initializer):
    """All one."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of ones."""
        return constants.ones(shape, _own(self, dtype))

    def get_config(self) -> dict[str, Any]:
        """``dtype``."""
        return {"dtype": self.dtype.name}


class Constant(Initializer):
    """Given values: a scalar for all elements, or as many as there are (fewer: the last is repeated).

    TypeError for what is no number, text, list or array; with `verify_shape`, for values of another shape.
    """

    def __init__(self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                f"Invalid type for initial value={value} of type: {type(value).__name__}. "
                "Expected Python scalar, list or tuple of values, or numpy.ndarray."
            )
        self.value, self.dtype, self._verify_shape = value, dtypes.as_dtype(dtype), verify_shape

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: bool | None = None
    ) -> Tensor:
        """A constant of this shape."""
        verify = self._verify_shape if verify_shape is None else verify_shape
        return constants.constant(self.value, _own(self, dtype), shape, verify_shape=verify)

    def get_config(self) -> dict[str, Any]:
        """``value`` and ``dtype``."""
        return {"value": self.value, "dtype": self.dtype.name}


class RandomUniform(Initializer):
    """Uniform in [minval, maxval); `maxval` must be given for integers."""

    def __init__(
        self, minval: Any = 0, maxval: Any = None, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.minval, self.maxval, self.seed, self.dtype = minval, maxval, seed, dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A random tensor of this shape."""
        dtype = _own(self, dtype)
        maxval = 1.0 if self.maxval is None and dtype.is_floating else self.maxval
        return random.random_uniform(shape, self.minval, maxval, dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        """``minval``, ``maxval``, ``seed`` and ``dtype``."""
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed, "dtype": self.dtype.name}


class _Normal(Initializer):
    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.mean, self.stddev, self.seed, self.dtype = mean, stddev, seed, floating(dtype)

    def get_config(self) -> dict[str, Any]:
        """``mean``, ``stddev``, ``seed`` and ``dtype``."""
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed, "dtype": self.dtype.name}


class RandomNormal(_Normal):
    """Normal with this mean and standard deviation."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A random tensor of this shape."""
        return random.random_normal(shape, self.mean, self.stddev, _own(self, dtype), seed=self.seed)


class TruncatedNormal(_Normal):
    """Normal, values more than two standard deviations from the mean drawn again."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A random tensor of this shape."""
        return random.truncated_normal(shape, self.mean, self.stddev, _own(self, dtype), seed=self.seed)


class UniformUnitScaling(Initializer):
    """Uniform in ±factor * sqrt(3 / inputs), which keeps the scale of a layer's input; inputs: all but the
    last dimension.
    """

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        self.factor, self.seed, self.dtype = factor, seed, floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A random tensor of this shape."""
        whole = shape if partition_info is None else partition_info.full_shape
        inputs = max(math.prod(float(size) for size in _sizes(whole)[:-1]), 1.0)
        limit = math.sqrt(3 / inputs) * self.factor
        return random.random_uniform(shape, -limit, limit, _own(self, dtype), seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        """``factor``, ``seed`` and ``dtype``."""
        return {"factor": self.factor, "seed": self.seed, "dtype": self.dtype.name}


_DISTRIBUTIONS = ("uniform", "truncated_normal", "untruncated_normal")


class VarianceScaling(Initializer):
    """Random with variance scale / n, where n is the number of input units, output units or their average.

    `mode`: "fan_in", "fan_out" or "fan_avg"; `distribution`: "normal" and "truncated_normal" (cut off at
    two deviations), "untruncated_normal" or "uniform". For a convolution's filter the units are channels
    times receptive field. ValueError for other words or a scale that is not positive.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError(f"Argument `scale` must be a positive float. Received: {scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(
                f"Argument `mode` should be one of ('fan_in', 'fan_out', 'fan_avg'). Received: {mode}"
            )
        distribution = "truncated_normal" if distribution.lower() == "normal" else distribution.lower()
        if distribution not in _DISTRIBUTIONS:
            raise ValueError(
                "Argument `distribution` should be one of ('normal', uniform', 'truncated_normal', "
                f"'untruncated_normal'). Received: {distribution}"
            )
        self.scale, self.mode, self.distribution = scale, mode, distribution
        self.seed, self.dtype = seed, floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A random tensor of this shape."""
        fan_in, fan_out = _fans(shape if partition_info is None else partition_info.full_shape)
        units = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        variance, dtype = self.scale / max(1.0, units), _own(self, dtype)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random.random_uniform(shape, -limit, limit, dtype, seed=self.seed)
        deviation = math.sqrt(variance)
        if self.distribution == "untruncated_normal":
            return random.random_normal(shape, 0.0, deviation, dtype, seed=self.seed)
        deviation /= _TRUNCATED_DEVIATION
        return random.truncated_normal(shape, 0.0, deviation, dtype, seed=self.seed)

    def get_config(self) -> dict[str, Any]:
        """``scale``, ``mode``, ``distribution``, ``seed`` and ``dtype``."""
        return {
            "scale": self.scale,
            "mode": self.mode,
            "distribution": self.distribution,
            "seed": self.seed,
            "dtype": self.dtype.name,
        }


class GlorotUniform(VarianceScaling):
    """Uniform with variance 2 / (inputs + outputs): X. Glorot and Y. Bengio, AISTATS 2010. As in
    TensorFlow 1.15, of float32 where a call has no type, whatever `dtype` is."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed)

    def get_config(self) -> dict[str, Any]:
        """``seed`` and ``dtype``."""
        return {"seed": self.seed, "dtype": self.dtype.name}


class GlorotNormal(VarianceScaling):
    """Truncated normal with variance 2 / (inputs + outputs): X. Glorot and Y. Bengio, AISTATS 2010. As in
    TensorFlow 1.15, of float32 where a call has no type, whatever `dtype` is."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed)

    def get_config(self) -> dict[str, Any]:
        """``seed`` and ``dtype``."""
        return {"seed": self.seed, "dtype": self.dtype.name}


class Orthogonal(Initializer):
    """`gain` times an orthogonal matrix: rows or columns (the fewer) are orthonormal, all but the last
    dimension flattened.

    From the QR decomposition of a random normal matrix (A. Saxe et al., 2013). ValueError for fewer than
    two dimensions.
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        self.gain, self.seed, self.dtype = gain, seed, floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A random tensor of this shape."""
        sizes = _at_least_a_matrix(shape)
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        drawn = random.random_normal(
            (max(rows, columns), min(rows, columns)), dtype=_own(self, dtype), seed=self.seed
        )
        q, r = F.Qr(drawn, full_matrices=False)
        q = F.Mul(q, F.Sign(F.DiagPart(r)), name="mul")
        if rows < columns:
            with q.graph.name_scope("matrix_transpose"), q.graph.name_scope("transpose") as name:
                q = F.Transpose(q, [1, 0], name=name)
        orthogonal: Tensor = F.Reshape(q, list(sizes))
        return self.gain * orthogonal

    def get_config(self) -> dict[str, Any]:
        """``gain``, ``seed`` and ``dtype``."""
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


class Identity(Initializer):
    """`gain` times the identity matrix. ValueError unless the shape is a matrix's."""

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain, self.dtype = gain, floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The matrix of this shape."""
        sizes = _sizes(shape if partition_info is None else partition_info.full_shape)
        if len(sizes) != 2:
            raise ValueError("Identity matrix initializer can only be used for 2D matrices.")
        dtype = _own(self, dtype)
        value = constants.eye(*sizes, dtype=dtype)
        if partition_info is not None:
            value = F.Slice(value, list(partition_info.var_offset), list(_sizes(shape)))
        return F.Mul(convert_to_tensor(self.gain, dtype, name="mul/x"), value, name="mul")

    def get_config(self) -> dict[str, Any]:
        """``gain`` and ``dtype``."""
        return {"gain": self.gain, "dtype": self.dtype.name}


def floating(dtype: Any) -> DType:
    """The type; ValueError unless it is a floating-point one."""
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(
            f"Argument `dtype` is expected to be floating point. Received: <dtype: '{dtype.name}'>."
        )
    return dtype  # type: ignore[no-any-return]


def _sizes(shape: Any) -> tuple[Any, ...]:
    return as_shape(shape).dims_tuple or ()


def _at_least_a_matrix(shape: Any) -> tuple[int, ...]:
    sizes = _sizes(shape)
    if len(sizes) < 2:
        raise ValueError(
            "The tensor to initialize, specified by argument `shape` must be at least two-dimensional. "
            f"Received shape={shape}"
        )
    return sizes


def _fans(shape: Any) -> tuple[float, float]:
    """The numbers of input and output units of a weight of this shape."""
    sizes = _sizes(shape)
    if len(sizes) < 2:
        return (1.0, 1.0) if not sizes else (float(sizes[0]), float(sizes[0]))
    field = math.prod(sizes[:-2])
    return float(sizes[-2] * field), float(sizes[-1] * field)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 2 / inputs: K. He et al., ICCV 2015."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 2 / inputs: K. He et al., ICCV 2015."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 1 / inputs: Y. LeCun et al., Efficient BackProp, 1998."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 1 / inputs: Y. LeCun et al., Efficient BackProp, 1998."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


zeros_initializer = zeros = Zeros
ones_initializer = ones = Ones
constant_initializer = constant = Constant
random_uniform_initializer = random_uniform = RandomUniform
random_normal_initializer = random_normal = RandomNormal
truncated_normal_initializer = truncated_normal = TruncatedNormal
uniform_unit_scaling_initializer = uniform_unit_scaling = UniformUnitScaling
variance_scaling_initializer = variance_scaling = VarianceScaling
glorot_uniform_initializer = glorot_uniform = GlorotUniform
glorot_normal_initializer = glorot_normal = GlorotNormal
orthogonal_initializer = orthogonal = Orthogonal
identity = Identity
