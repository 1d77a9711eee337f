"""Fourier transforms over several axes with given lengths: the forms that are names of `tf` itself."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.signals import real_transforms

__all__ = ["fftnd", "ifftnd", "irfftnd", "rfftnd"]


def fftnd(input: Any, fft_length: Any, axes: Any, name: str | None = None) -> Tensor:
    """The transform of complex numbers over `axes`, each cut or padded with zeros to its length."""
    return real_transforms.fftnd(input, fft_length, axes, name=name)


def ifftnd(input: Any, fft_length: Any, axes: Any, name: str | None = None) -> Tensor:
    """The inverse of `fftnd`."""
    return real_transforms.ifftnd(input, fft_length, axes, name=name)


def rfftnd(
    input: Any, fft_length: Any, axes: Any, Tcomplex: Any = dtypes.complex64, name: str | None = None
) -> Tensor:
    """As `fftnd` of real numbers, of type `Tcomplex`: the last of the axes becomes n / 2 + 1."""
    result = real_transforms.rfftnd(input, fft_length, axes, name=name)
    return result if result.dtype == Tcomplex else F.Cast(result, DstT=Tcomplex)


def irfftnd(
    input: Any, fft_length: Any, axes: Any, Treal: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The inverse of `rfftnd`, of type `Treal`."""
    result = real_transforms.irfftnd(input, fft_length, axes, name=name)
    return result if result.dtype == Treal else F.Cast(result, DstT=Treal)
