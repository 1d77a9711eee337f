"""The layers of `tf.keras.layers`: the package's classes, with the arguments in TensorFlow's order.

Keras itself reads positional arguments after the first ones as those of Keras 1: `Conv2D(32, 3, 2)` has a
kernel of 3 × 2 there, and strides of 2 in `tf.keras`. A class here takes them as `tf.keras` does, by the
order in which the constructor names them. What it makes is of the package's class, of which it is a subclass;
whatever is of that class is an instance of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import flowstone as tf

__all__ = ["Input", "SameInstances", "in_order"]


class SameInstances(type):
    """The type of classes whose instances are all those of `published`."""

    published: type

    def __instancecheck__(cls, instance: Any) -> bool:
        own = vars(cls).get("published")
        return super().__instancecheck__(instance) if own is None else isinstance(instance, own)

    def __subclasscheck__(cls, other: type) -> bool:
        own = vars(cls).get("published")
        return super().__subclasscheck__(other) if own is None else issubclass(other, own)


def in_order(published: type) -> type:
    """A class that makes objects of the class `published` from arguments in the order of its constructor."""
    constructor: Callable[..., None] = vars(published)["__init__"]._original_function

    def new(cls: type, *arguments: Any, **keywords: Any) -> Any:
        if cls is not made:  # a program's own subclass
            return object.__new__(cls)
        layer: Any = object.__new__(published)
        initialize(layer, *arguments, **keywords)
        return layer

    def initialize(layer: Any, *arguments: Any, **keywords: Any) -> None:
        constructor(layer, *arguments, **keywords)

    initialize.__dict__["__signature__"] = inspect.signature(constructor)
    members = {
        "__new__": new,
        "__init__": initialize,
        "__doc__": published.__doc__,
        "__module__": published.__module__,
        "published": published,
    }
    made: type = SameInstances(published.__name__, (published,), members)
    return made


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

    Also takes `batch_shape`, the whole shape. Raises ValueError for neither a shape nor a tensor.
    """
    keywords.pop("ragged", None)
    if batch_size is not None and shape is not None:
        keywords["batch_shape"], shape = (batch_size, *tf.TensorShape(shape).as_list()), None
    elif shape is not None:
        shape = tuple(tf.TensorShape(shape).as_list())
    dtype = None if dtype is None else tf.as_dtype(dtype).name
    published = import_module("keras.layers").Input
    return published(shape=shape, name=name, dtype=dtype, sparse=sparse, tensor=tensor, **keywords)


# Names that only tf.keras.layers has, and the package's module and name.
_ELSEWHERE = {
    "Convolution2DTranspose": ("keras.layers", "Conv2DTranspose"),
    "Convolution3DTranspose": ("keras.layers", "Conv3DTranspose"),
    "SeparableConvolution1D": ("keras.layers", "SeparableConv1D"),
    "SeparableConvolution2D": ("keras.layers", "SeparableConv2D"),
    "Wrapper": ("keras.layers.wrappers", "Wrapper"),
}


def __getattr__(name: str) -> Any:
    module, own = _ELSEWHERE.get(name, ("keras.layers", name))
    found = None if name.startswith("_") else getattr(import_module(module), own, None)
    if found is None:
        raise AttributeError(f"flowstone does not have the name tf.keras.layers.{name}")
    if isinstance(found, type) and hasattr(vars(found).get("__init__"), "_original_function"):
        found = in_order(found)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_ELSEWHERE, *dir(import_module("keras.layers"))})
