"""The rank, dtype and sizes of dimensions that a layer expects of an input."""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import as_shape

__all__ = ["InputSpec"]


class InputSpec:
    """Constraints on one input of a layer; None means no constraint.

    Args:
        dtype: the element type.
        shape: the sizes, None for any size.
        ndim, min_ndim, max_ndim: the rank, exactly or within bounds.
        axes: sizes by dimension, as ``{-1: 64}``.
    """

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, int | None] | None = None,
    ) -> None:
        self.dtype, self.shape = dtype, None if shape is None else as_shape(shape).as_list()
        self.ndim = ndim if self.shape is None else len(self.shape)
        self.max_ndim, self.min_ndim = max_ndim, min_ndim
        self.axes = axes or {}

    def __repr__(self) -> str:
        given = {
            "dtype": self.dtype,
            "shape": self.shape and tuple(self.shape),
            "ndim": self.ndim,
            "max_ndim": self.max_ndim,
            "min_ndim": self.min_ndim,
            "axes": self.axes,
        }
        return f"InputSpec({', '.join(f'{name}={value}' for name, value in given.items() if value)})"

    def check(self, tensor: Tensor, layer_name: str, index: int = 0) -> None:
        """Raises ValueError if the static shape or type of `tensor`, the layer's input `index`, contradicts
        this."""
        fault = self._fault(tensor)
        if fault is not None:
            raise ValueError(f"Input {index} of layer {layer_name} is incompatible with the layer: {fault}")
        if self.shape is not None and any(
            size is not None and found not in (None, size)
            for size, found in zip(self.shape, tensor.dims or ())
        ):
            raise ValueError(
                f"Input {index} is incompatible with layer {layer_name}: "
                f"expected shape={tuple(self.shape)}, found shape={list(tensor.dims or ())}"
            )

    def _fault(self, tensor: Tensor) -> str | None:
        dims = tensor.dims
        if dims is None:
            ranked = self.ndim is not None or self.max_ndim is not None or self.min_ndim is not None
            return "its rank is undefined, but the layer requires a defined rank." if ranked else None
        whole = f"Full shape received: {list(dims)}"
        if self.ndim is not None and len(dims) != self.ndim:
            return f"expected ndim={self.ndim}, found ndim={len(dims)}. {whole}"
        if self.max_ndim is not None and len(dims) > self.max_ndim:
            return f"expected max_ndim={self.max_ndim}, found ndim={len(dims)}"
        if self.min_ndim is not None and len(dims) < self.min_ndim:
            return f": expected min_ndim={self.min_ndim}, found ndim={len(dims)}. {whole}"
        if self.dtype is not None and tensor.dtype.base_dtype != dtypes.as_dtype(self.dtype):
            return f"expected dtype={self.dtype}, found dtype={tensor.dtype}"
        for axis, size in self.axes.items():
            if size is not None and dims[axis] not in (None, size):
                value = f"expected axis {axis} of input shape to have value {size}"
                return f"{value} but received input with shape {list(dims)}"
        return None
