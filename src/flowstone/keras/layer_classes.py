"""Names of `tf.keras.layers` that the package has elsewhere or not at all."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.keras.published import own

__all__ = ["Input"]


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = None,
    sparse: bool = False,
    tensor: Any = None,
    **keywords: Any,
) -> Any:
    """A tensor that begins a model: a placeholder of (batch_size, *shape), or `tensor`.

    Also takes `batch_shape`, the whole shape. Raises ValueError for neither a shape nor a tensor, or both
    shapes.
    """
    keywords.pop("ragged", None)
    whole = keywords.get("batch_shape")
    if shape is not None and whole is not None:
        raise ValueError(
            "Only provide the `shape` OR `batch_input_shape` argument to Input, not both at the same time."
        )
    if shape is None and whole is None and tensor is None:
        raise ValueError(
            "Please provide to Input either a `shape` or a `tensor` argument. "
            "Note that `shape` does not include the batch dimension."
        )
    if batch_size is not None and shape is not None:
        keywords["batch_shape"], shape = (batch_size, *tf.TensorShape(shape).as_list()), None
    elif shape is not None:
        shape = tuple(tf.TensorShape(shape).as_list())
    dtype = None if dtype is None else tf.as_dtype(dtype).name
    published = own("layers").Input
    return published(shape=shape, name=name, dtype=dtype, sparse=sparse, tensor=tensor, **keywords)


# Names that only tf.keras.layers has, and the package's module and name.
_ELSEWHERE = {
    "Convolution2DTranspose": ("layers", "Conv2DTranspose"),
    "Convolution3DTranspose": ("layers", "Conv3DTranspose"),
    "SeparableConvolution1D": ("layers", "SeparableConv1D"),
    "SeparableConvolution2D": ("layers", "SeparableConv2D"),
    "Wrapper": ("layers.wrappers", "Wrapper"),
}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"flowstone does not have the name tf.keras.layers.{name}")
    module, there = _ELSEWHERE[name]
    return getattr(own(module), there)


def __dir__() -> list[str]:
    return sorted({*_ELSEWHERE, *__all__})
