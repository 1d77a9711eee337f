"""How alike images are, and how they change from pixel to pixel.

PSNR is the peak signal-to-noise ratio. SSIM is the structural similarity of Z. Wang and others, "Image
quality assessment: from error visibility to structural similarity" (2004): means, variances and the
covariance of two images below a Gaussian window. MS-SSIM joins those at several scales ("Multiscale
structural similarity for image quality assessment", 2003). The window is separable, so it moves along the
rows, then along the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import zeros
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.packing import stack, unstack
from flowstone.ops.arrays.padding import tile
from flowstone.ops.arrays.shapes import reshape, shape, size
from flowstone.ops.control.conditionals import Assert
from flowstone.ops.images.colour_functions import convert_image_dtype
from flowstone.ops.networks.depthwise_layers import depthwise_conv2d
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.comparisons import equal, greater_equal
from flowstone.ops.numbers.functions import log
from flowstone.ops.numbers.reductions import reduce_all, reduce_mean, reduce_prod, reduce_sum

_MULTISCALE_POWERS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)

# ---- within an image


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the absolute differences of neighbouring pixels: of an image a scalar, of a batch [batch].

    ValueError if `images` has neither three nor four dimensions.
    """
    with get_default_graph().name_scope(name or "total_variation"):
        images = convert_to_tensor(images, name="images")
        rank = None if images.dims is None else len(images.dims)
        if rank not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        if rank == 3:
            differences = images[1:, :, :] - images[:-1, :, :], images[:, 1:, :] - images[:, :-1, :]
            axes = None
        else:
            differences = (
                images[:, 1:, :, :] - images[:, :-1, :, :],
                images[:, :, 1:, :] - images[:, :, :-1, :],
            )
            axes = [1, 2, 3]
        down, across = (reduce_sum(F.Abs(one), axis=axes) for one in differences)
        return down + across


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """The differences (down, across) of neighbouring pixels of images [batch, height, width, channels].

    Both have the images' shape; the last row or column is zero. ValueError for other ranks.
    """
    image = convert_to_tensor(image, name="image")
    if image.dims is None or len(image.dims) != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {image.shape}.")
    sizes = shape(image)
    batch, height, width, depth = unstack(sizes)
    down = image[:, 1:, :, :] - image[:, :-1, :, :]
    across = image[:, :, 1:, :] - image[:, :, :-1, :]
    row, column = ([batch, 1, width, depth], 1), ([batch, height, 1, depth], 2)
    joined = [
        concat([x, zeros(stack(last), x.dtype)], axis) for x, (last, axis) in ((down, row), (across, column))
    ]
    return reshape(joined[0], sizes), reshape(joined[1], sizes)


def sobel_edges(image: Any) -> Tensor:
    """Sobel's gradients (down, across) of images [batch, height, width, channels], in a fifth dimension.

    The border is mirrored. float16, float32 or float64.
    """
    image = convert_to_tensor(image, name="image")
    static = image.shape
    sizes = shape(image)
    smooth, change = np.array([1, 2, 1]), np.array([-1, 0, 1])
    kernels = np.stack([np.outer(change, smooth), np.outer(smooth, change)], -1)
    kernel = convert_to_tensor(kernels.reshape(3, 3, 1, 2), image.dtype)
    filters = tile(kernel, [1, 1, sizes[-1], 1], name="sobel_filters")
    padded = F.MirrorPad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = depthwise_conv2d(padded, filters, [1, 1, 1, 1], "VALID")
    result = reshape(edges, concat([sizes, [2]], 0))
    result.set_shape(static.concatenate([2]))
    return result


# ---- of two images


def _comparable(one: Tensor, other: Tensor) -> list[Operation]:
    """Checks that both have three dimensions or more and equal sizes; ValueError if it is known that not."""
    for x in (one, other):
        if x.dims is not None and len(x.dims) < 3:
            raise ValueError(f"Shape {x.shape} must have rank at least 3")
    if one.dims is not None and other.dims is not None:
        pairs = zip(one.dims[-3:], other.dims[-3:])
        if any(a != b for a, b in pairs if None not in (a, b)):
            raise ValueError(f"Shapes {one.shape} and {other.shape} are not compatible.")
    first, second = F.ShapeN([one, other])
    return [
        Assert(greater_equal(size(first), 3), [first, second], summarize=10),
        Assert(reduce_all(equal(first[-3:], second[-3:])), [first, second], summarize=10),
    ]


def _as_floats(images: Sequence[Tensor], max_val: Any) -> list[Tensor]:
    """The images as float32, and the greatest value that they can have."""
    greatest = F.Cast(max_val, DstT=images[0].dtype)
    return [convert_image_dtype(x, dtypes.float32) for x in (*images, greatest)]


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of images [..., height, width, channels] in decibels, float32 [...].

    `max_val` is the greatest value that pixels can have. ValueError or InvalidArgumentError for different
    sizes.
    """
    with get_default_graph().name_scope(name or "PSNR"):
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        greatest = convert_image_dtype(cast(max_val, a.dtype), dtypes.float32)
        one, other = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        error = reduce_mean(F.SquaredDifference(one, other), axis=[-3, -2, -1])
        peak = 20 * F.Log(greatest) / log(10.0)
        ratio = F.Sub(peak, np.float32(10 / np.log(10)) * F.Log(error), name="psnr")
        with get_default_graph().control_dependencies(_comparable(one, other)):
            return F.Identity(ratio)


def _window(size: int, sigma: float) -> np.ndarray[Any, Any]:
    x = np.arange(size, dtype=np.float64) - (size - 1) / 2
    weights = np.exp(-(x**2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum(), np.float32)


def _similarity(
    x: Tensor, y: Tensor, greatest: Tensor, size: int, sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """SSIM, and its factor of contrast and structure, at each place of the window in a batch of images."""
    channels = shape(x)[-1]
    window = _window(size, sigma)
    filters = [
        F.Tile(window.reshape(sizes), F.Pack([1, 1, channels, 1]))
        for sizes in ((size, 1, 1, 1), (1, size, 1, 1))
    ]

    def mean(images: Tensor) -> Tensor:
        for one in filters:
            images = F.DepthwiseConv2dNative(images, one, strides=[1, 1, 1, 1], padding="VALID")
        return images

    c1, c2 = (k1 * greatest) ** 2, (k2 * greatest) ** 2
    mean_x, mean_y = mean(x), mean(y)
    product, squares = mean_x * mean_y * 2, F.Square(mean_x) + F.Square(mean_y)
    luminance = (product + c1) / (squares + c1)
    structure = (mean(x * y) * 2 - product + c2) / (mean(F.Square(x) + F.Square(y)) - squares + c2)
    return luminance * structure, structure


def _flat(images: Tensor) -> Tensor:
    """Images with all that comes before height, width and channels as one dimension."""
    if images.dims is not None and len(images.dims) == 4:
        return images
    return F.Reshape(images, F.ConcatV2([[-1], shape(images)[-3:]], 0))


def _unflat(values: Tensor, images: Tensor) -> Tensor:
    """Values [n, ...] of flat images with the dimensions that came before."""
    if images.dims is not None and len(images.dims) == 4:
        return values
    result = F.Reshape(values, F.ConcatV2([shape(images)[:-3], shape(values)[1:]], 0))
    if images.dims is not None and values.dims is not None:
        result.set_shape((*images.dims[:-3], *values.dims[1:]))
    return result


def _large_enough(images: Tensor, size: int) -> list[Operation]:
    sizes = F.Shape(images)
    return [Assert(F.All(F.GreaterEqual(sizes[-3:-1], size), [0]), [sizes, size], summarize=10)]


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """The structural similarity of images [..., height, width, channels], float32 [...]: 1 if they are equal.

    `max_val` is the greatest value that pixels can have. The Gaussian window has `filter_size` and
    `filter_sigma`; `k1` and `k2` keep quotients finite. `return_index_map`: the similarity at each place of
    the window, [..., rows, columns], in place of its mean. ValueError or InvalidArgumentError for images of
    different sizes, or smaller than the window.
    """
    one, other = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
    with get_default_graph().control_dependencies(_comparable(one, other)):
        one = F.Identity(one)
    x, y, greatest = _as_floats((one, other), max_val)
    with get_default_graph().control_dependencies(_large_enough(x, filter_size)):
        flat = F.Identity(_flat(x))
    similar, _ = _similarity(flat, _flat(y), greatest, filter_size, filter_sigma, k1, k2)
    result = reduce_mean(similar, axis=[-1] if return_index_map else [-3, -2, -1])
    return _unflat(result, x)


def _halved(images: Tensor) -> Tensor:
    """Means of two by two pixels; the last row or column counts twice if it is alone."""
    rest = F.FloorMod(shape(images)[1:3], 2)
    amounts = F.Pad(F.ExpandDims(rest, -1), [[1, 1], [1, 0]])
    padded = F.MirrorPad(images, amounts, mode="SYMMETRIC")
    return F.AvgPool(padded, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = _MULTISCALE_POWERS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of images [..., height, width, channels] at several scales, float32 [...].

    Each scale has half the size of the one before; the similarities, negative ones as 0, to the power of
    `power_factors` are multiplied. Other arguments and errors as for `ssim`, at the smallest scale.
    """
    with get_default_graph().name_scope("MS-SSIM"):
        one, other = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
        with get_default_graph().control_dependencies(_comparable(one, other)):
            one = F.Identity(one)
        whole, y, greatest = _as_floats((one, other), max_val)
        x, y = _flat(whole), _flat(y)
        parts = []
        for scale in range(len(power_factors)):
            with get_default_graph().name_scope(f"Scale{scale}"):
                if scale:
                    x, y = _halved(x), _halved(y)
                with get_default_graph().control_dependencies(_large_enough(x, filter_size)):
                    x = F.Identity(x)
                found = _similarity(x, y, greatest, filter_size, filter_sigma, k1, k2)
                is_last = scale == len(power_factors) - 1
                parts.append(F.Relu(reduce_mean(found[0 if is_last else 1], axis=[-3, -2])))
        powers = F.Pow(F.Pack(parts, axis=-1), list(power_factors))
        result = reduce_mean(reduce_prod(powers, axis=[-1]), axis=[-1])
        return _unflat(result, whole)
