"""`tf.image.resize_images(images, height, width, …)` of TensorFlow 0.x, and `tf.image.random_crop`."""

from __future__ import annotations

import numbers
from typing import Any

import flowstone

__all__ = ["install", "random_crop", "resize_images"]

_image: Any = flowstone.image
_resize_images: Any = _image.resize_images


def random_crop(image: Any, size: Any, seed: int | None = None, name: str | None = None) -> Any:
    """An image [height, width, channels] cropped to [height, width] of `size` at a random place."""
    image = flowstone.convert_to_tensor(image)
    size = list(size) if isinstance(size, (list, tuple)) else flowstone.unstack(size)
    channels = image.shape[-1].value
    depth = flowstone.shape(image)[-1] if channels is None else channels
    return flowstone.random_crop(image, [*size[:2], depth], seed=seed, name=name)


def _is_number(value: Any) -> bool:
    if isinstance(value, numbers.Integral):
        return True
    return isinstance(value, flowstone.Tensor) and value.shape.ndims == 0


def resize_images(images: Any, *args: Any, **kwargs: Any) -> Any:
    """`tf.image.resize_images(images, size, method, …)`, or `(images, new_height, new_width, method, …)`."""
    if "new_height" in kwargs or "new_width" in kwargs:
        rest = list(args)
        height = kwargs.pop("new_height") if "new_height" in kwargs else rest.pop(0)
        width = kwargs.pop("new_width") if "new_width" in kwargs else rest.pop(0)
        return _resize_images(images, [height, width], *rest, **kwargs)
    if len(args) >= 2 and _is_number(args[0]) and _is_number(args[1]):
        return _resize_images(images, [args[0], args[1]], *args[2:], **kwargs)
    return _resize_images(images, *args, **kwargs)


def install() -> None:
    """Has `tf.image` understand both forms."""
    _image.resize_images = resize_images
    _image.random_crop = random_crop
