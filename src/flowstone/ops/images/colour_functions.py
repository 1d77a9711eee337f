"""Images of other types, colour spaces, brightness, contrast, gamma, hue and saturation, given or random.

Images are [height, width, channels] or have more dimensions before these. Adjustments compute in floating
point and give the type that they got, integers saturated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.algebra.tensor_contractions import tensordot
from flowstone.ops.arrays.constants import ones
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.padding import tile
from flowstone.ops.arrays.shapes import expand_dims, rank, shape
from flowstone.ops.control.checks import assert_equal, assert_greater_equal
from flowstone.ops.control.control_flow import with_dependencies
from flowstone.ops.images.colours import hsv_to_rgb_op, rgb_to_hsv_op
from flowstone.ops.images.image_checks import checked_image, require
from flowstone.ops.numbers.casts import cast, saturate_cast
from flowstone.ops.numbers.reductions import reduce_mean, reduce_prod
from flowstone.ops.randomness.random import random_uniform

_COMPUTED = (dtypes.float16, dtypes.float32)


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Tensor:
    """`image` with elements of another type, scaled so that white stays white.

    White is 1 for floating types, and the greatest number for integers. Between integer types, values are
    multiplied or divided by whole numbers. `saturate`: what lies outside the new type's range becomes its
    end. TypeError for types that are no real numbers.
    """
    image, dtype = convert_to_tensor(image, name="image"), dtypes.as_dtype(dtype)
    source = image.dtype.base_dtype
    if not all(one.is_floating or one.is_integer for one in (source, dtype)):
        raise TypeError(f"Cannot convert images of {source.name} to {dtype.name}")
    if source is dtype:
        return F.Identity(image, name=name)
    with get_default_graph().name_scope(name or "convert_image") as scope:
        if source.is_integer and dtype.is_integer:
            return _between_integers(image, dtype, saturate, scope)
        if source.is_floating and dtype.is_floating:
            return cast(image, dtype, scope)  # type: ignore[no-any-return]
        if dtype.is_floating:
            return F.Mul(cast(image, dtype), 1.0 / source.max, name=scope)
        return _cast(F.Mul(image, dtype.max + 0.5), dtype, saturate, scope)


def _cast(image: Tensor, dtype: DType, saturate: bool, name: str) -> Tensor:
    return saturate_cast(image, dtype, name) if saturate else cast(image, dtype, name)


def _between_integers(image: Tensor, dtype: DType, saturate: bool, name: str) -> Tensor:
    own, other = int(image.dtype.max), int(dtype.max)
    if own > other:
        return _cast(F.FloorDiv(image, (own + 1) // (other + 1), name="div"), dtype, saturate, name)
    wide = saturate_cast(image, dtype) if saturate else cast(image, dtype)
    return F.Mul(wide, (other + 1) // (own + 1), name=name)


def _computable(image: Tensor) -> Tensor:
    """As float32, or float16 if it is that."""
    return image if image.dtype in _COMPUTED else convert_image_dtype(image, dtypes.float32)


# ---- adjustments


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """`image` with `delta` added to every element, where 1 is white."""
    with get_default_graph().name_scope("adjust_brightness") as scope:
        image = convert_to_tensor(image, name="image")
        floats = _computable(image)
        added = F.Add(floats, cast(delta, floats.dtype), name=scope)
        return convert_image_dtype(added, image.dtype, saturate=True)


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """`images`, each channel's distance from its mean multiplied by the factor."""
    with get_default_graph().name_scope("adjust_contrast") as scope:
        images = convert_to_tensor(images, name="images")
        adjusted = F.AdjustContrastv2(_computable(images), contrast_factor, name=scope)
        return convert_image_dtype(adjusted, images.dtype, saturate=True)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """``gain * image ** gamma``, where 1 is white. ValueError or InvalidArgumentError for negative gammas."""
    with get_default_graph().name_scope("adjust_gamma"):
        image = convert_to_tensor(image, name="image")
        floats = _computable(image)
        checks = require(gamma >= 0, "Gamma should be a non-negative real number.")
        if checks:
            gamma = with_dependencies(checks, gamma)
        return convert_image_dtype(gain * floats**gamma, image.dtype, saturate=True)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """RGB `image` with its hue turned by `delta`, in whole turns. InvalidArgumentError for other channels."""
    with get_default_graph().name_scope(name or "adjust_hue"):
        image = convert_to_tensor(image, name="image")
        return convert_image_dtype(F.AdjustHue(_computable(image), delta), image.dtype)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """RGB `image` with its saturation multiplied, at most to 1. InvalidArgumentError for other channels."""
    with get_default_graph().name_scope(name or "adjust_saturation"):
        image = convert_to_tensor(image, name="image")
        adjusted = F.AdjustSaturation(_computable(image), saturation_factor)
        return convert_image_dtype(adjusted, image.dtype)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a number in [-max_delta, max_delta). ValueError if `max_delta` is negative."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def _between(lower: float, upper: float, seed: int | None) -> Tensor:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return random_uniform([], lower, upper, seed=seed)


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_contrast` by a number in [lower, upper). ValueError without 0 <= lower < upper."""
    return adjust_contrast(image, _between(lower, upper, seed))


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_saturation` by a number in [lower, upper). ValueError without 0 <= lower < upper."""
    return adjust_saturation(image, _between(lower, upper, seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a number in [-max_delta, max_delta). ValueError if `max_delta` is not in [0, 0.5]."""
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def per_image_standardization(image: Any) -> Tensor:
    """Each image with mean 0 and deviation 1, computed in float32 and given in its own type. A batch may come
    before it.

    The deviation counts as at least ``1 / sqrt(elements)``, so that an image of one colour becomes zeros.
    Integers are scaled as by `convert_image_dtype` on either way, and saturated: convert an image to floats
    before.
    """
    with get_default_graph().name_scope("per_image_standardization") as scope:
        image = checked_image(convert_to_tensor(image, name="image"))
        given = image.dtype
        image = _computable(image)
        count = reduce_prod(shape(image)[-3:])
        axes = [-1, -2, -3]
        mean = reduce_mean(image, axis=axes, keepdims=True)
        deviation = _deviation(image, axes)
        deviation = F.Maximum(deviation, F.Rsqrt(F.Cast(count, DstT=image.dtype)))
        result = F.RealDiv(image - mean, deviation, name=scope)
        return convert_image_dtype(result, given, saturate=True)


def _deviation(image: Tensor, axes: list[int]) -> Tensor:
    graph = get_default_graph()
    with graph.name_scope("reduce_std"):
        with graph.name_scope("reduce_variance"):
            mean = reduce_mean(image, axis=axes, keepdims=True)
            variance = reduce_mean(F.Square(image - mean), axis=axes, keepdims=True)
        return F.Sqrt(variance)


# ---- colour spaces


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """RGB images, channels last, of any type as images of one channel: 0.2989 R + 0.587 G + 0.114 B."""
    with get_default_graph().name_scope(name or "rgb_to_grayscale") as scope:
        images = convert_to_tensor(images, name="images")
        floats = convert_image_dtype(images, dtypes.float32)
        grey = tensordot(floats, [0.2989, 0.5870, 0.1140], [[-1], [-1]])
        return convert_image_dtype(F.ExpandDims(grey, -1), images.dtype, name=scope)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Images of one channel, the last dimension, with that channel three times. ValueError for more."""
    with get_default_graph().name_scope(name or "grayscale_to_rgb") as scope:
        images = convert_to_tensor(images, name="images")
        dims = images.dims
        if dims is not None and dims[-1:] not in ((None,), (1,)):
            raise ValueError("Last dimension of a grayscale image should be size 1.")
        checks = []
        if dims is None or None in dims:
            message = "Last dimension of a grayscale image should be size 1."
            checks.append(assert_equal(shape(images)[-1], 1, message=message))
            message = "A grayscale image must be at least two-dimensional."
            checks.append(assert_greater_equal(rank(images), 3, message=message))
        images = with_dependencies(checks, images)
        others = ones(expand_dims(rank(images) - 1, 0), dtypes.int32)
        colours = tile(images, concat([others, expand_dims(3, 0)], 0), name=scope)
        if dims is not None:
            colours.set_shape([*dims[:-1], 3])
        return colours


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """RGB images, channels last, as hue, saturation and value in [0, 1], of the same floating type."""
    return rgb_to_hsv_op(images, name=name)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value in [0, 1], the last dimension, as RGB of the same floating type."""
    return hsv_to_rgb_op(images, name=name)


_RGB_TO_YIQ = [
    [0.299, 0.59590059, 0.2115],
    [0.587, -0.27455667, -0.52273617],
    [0.114, -0.32134392, 0.31119955],
]
_YIQ_TO_RGB = [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]
_RGB_TO_YUV = [
    [0.299, -0.14714119, 0.61497538],
    [0.587, -0.28886916, -0.51496512],
    [0.114, 0.43601035, -0.10001026],
]
_YUV_TO_RGB = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]


def _mixed(images: Any, shares: Any) -> Tensor:
    images = convert_to_tensor(images, name="images")
    if not images.dtype.is_floating:
        raise TypeError(
            f"Colours are mixed in floating types, not in {images.dtype.name}: see convert_image_dtype."
        )
    kernel = convert_to_tensor(np.array(shares), images.dtype, name="kernel")
    return tensordot(images, kernel, [[-1], [0]])


def rgb_to_yiq(images: Any) -> Tensor:
    """RGB images, channels last, as luma, in-phase and quadrature (NTSC), of the same floating type."""
    return _mixed(images, _RGB_TO_YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """Luma, in-phase and quadrature (NTSC), the last dimension, as RGB of the same floating type."""
    return _mixed(images, _YIQ_TO_RGB)


def rgb_to_yuv(images: Any) -> Tensor:
    """RGB images, channels last, as luma and two differences of colours (PAL), of the same floating type."""
    return _mixed(images, _RGB_TO_YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """Luma and two differences of colours (PAL), the last dimension, as RGB of the same floating type."""
    return _mixed(images, _YUV_TO_RGB)
