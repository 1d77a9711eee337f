"""Functions from files to images and back: `tf.image.decode_jpeg` and its like.

>>> import flowstone as tf, numpy as np
>>> with tf.Graph().as_default(), tf.Session() as session:
...     file = tf.image.encode_png(np.arange(12, dtype=np.uint8).reshape(2, 2, 3))
...     session.run(tf.image.decode_image(file)).shape
(2, 2, 3)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.control.conditionals import cond
from flowstone.ops.images.colour_functions import convert_image_dtype
from flowstone.ops.randomness.random import random_uniform

__all__ = [
    "adjust_jpeg_quality",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "is_jpeg",
    "random_jpeg_quality",
]


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """The pixels of a JPEG file, uint8 [height, width, channels]. PNG files and GIFs of one frame do, too.

    Args:
        contents: the file, a string scalar.
        channels: 0, as many as the file has; 1, grey; 3, colours.
        ratio: 1, 2, 4 or 8, by which the image is smaller than in the file.
        fancy_upscaling: whether colours are interpolated where the file has one for four pixels.
        try_recover_truncated: whether what is missing of the file becomes grey.
        acceptable_fraction: which share of the rows there must be; the others are 0.
        dct_method: "", "INTEGER_FAST" or "INTEGER_ACCURATE", all of which are the accurate one here.

    InvalidArgumentError in the step for files that cannot be read.
    """
    return F.DecodeJpeg(
        contents, channels=channels, ratio=ratio, fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated, acceptable_fraction=acceptable_fraction,
        dct_method=dct_method, name=name,
    )  # fmt: skip


def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """The window `crop_window` of a JPEG file, int32 [4]: the first row and column, height and width.

    The other arguments are those of `decode_jpeg`. InvalidArgumentError for a window that leaves the image.
    """
    return F.DecodeAndCropJpeg(
        contents, crop_window, channels=channels, ratio=ratio, fancy_upscaling=fancy_upscaling,
        try_recover_truncated=try_recover_truncated, acceptable_fraction=acceptable_fraction,
        dct_method=dct_method, name=name,
    )  # fmt: skip


def extract_jpeg_shape(contents: Any, output_type: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """Height, width and channels of a JPEG file, of which only the head is read: int32 or int64 [3]."""
    return F.ExtractJpegShape(contents, output_type=output_type, name=name)


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """The pixels of a PNG file, uint8 or uint16 [height, width, channels]. JPEG files and GIFs of one frame
    do, too.

    `channels`: 0, as many as the file has; 1, grey; 3, colours; 4, colours and alpha.
    """
    return F.DecodePng(contents, channels=channels, dtype=dtype, name=name)


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """The frames of a GIF file, uint8 [frames, height, width, 3]."""
    return F.DecodeGif(contents, name=name)


def decode_webp(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """The frames of a WebP file, uint8 [frames, height, width, 3 or 4]. `channels`: 0, or as many as the file
    has."""
    return F.DecodeWebP(contents, channels=channels, dtype=dtype, name=name)


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """The pixels of a BMP file, uint8 [height, width, channels].

    `channels`: 0, as many as the file has; 1, for a grey one; 3, colours; 4, colours and alpha.
    """
    return F.DecodeBmp(contents, channels=channels, name=name)


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str | bytes = "",
    name: str | None = None,
) -> Tensor:
    """The JPEG file of an image, uint8 [height, width, 1 or 3]: a string scalar.

    Args:
        image: the pixels.
        format: "grayscale" or "rgb", if the image must be one.
        quality: 0 to 100.
        progressive: whether the file shows a rough image first.
        optimize_size: whether to spend time on a smaller file of the same image.
        chroma_downsampling: whether four pixels share a colour.
        density_unit: "in" or "cm".
        x_density, y_density: pixels of such a unit.
        xmp_metadata: of the file.
    """
    return F.EncodeJpeg(
        image, format=format, quality=quality, progressive=progressive, optimize_size=optimize_size,
        chroma_downsampling=chroma_downsampling, density_unit=density_unit, x_density=x_density,
        y_density=y_density, xmp_metadata=xmp_metadata, name=name,
    )  # fmt: skip


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """The PNG files of images, uint8 or uint16 [..., height, width, 1 to 4]: strings [...].

    `compression`: from 0, none, to 9; -1: what is usual.
    """
    return F.EncodePng(convert_to_tensor(image), compression=compression, name=name)


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether a string scalar begins as a JPEG file does: bool, []."""
    with get_default_graph().name_scope(name or "is_jpeg"):
        return F.Equal(F.Substr(contents, 0, 3), b"\xff\xd8\xff")


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = dtypes.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """The pixels of a JPEG, PNG, GIF or BMP file, [height, width, channels]; a GIF's, [frames, height, width,
    3].

    Args:
        contents: the file, a string scalar.
        channels: as for `decode_png`; None: as many as the file has.
        dtype: uint8, uint16, or a type of floats, whose values are then from 0 to 1.
        expand_animations: whether a GIF gives all frames; else it gives the first, [height, width, 3].

    Raises ValueError for other `channels`; InvalidArgumentError in the step for other files.
    """
    channels, dtype = channels or 0, dtypes.as_dtype(dtype)
    if channels not in (0, 1, 3, 4):
        raise ValueError("channels must be in (None, 0, 1, 3, 4)")
    with get_default_graph().name_scope(name or "decode_image"):
        contents = convert_to_tensor(contents, dtypes.string)
        beginning = F.Substr(contents, 0, 3)

        def bmp() -> Tensor:
            is_bmp = F.Equal(F.Substr(contents, 0, 2), b"BM")
            return _checked(is_bmp, "Unable to decode bytes as JPEG, PNG, GIF, or BMP", lambda: (
                convert_image_dtype(decode_bmp(contents, channels), dtype)))  # fmt: skip

        def gif() -> Tensor:
            has_colours = convert_to_tensor(channels not in (1, 4))
            message = "Channels must be in (None, 0, 3) when decoding GIF images"
            frames = _checked(has_colours, message, lambda: decode_gif(contents))
            return convert_image_dtype(frames if expand_animations else frames[0], dtype)

        def png() -> Tensor:
            kind = dtypes.uint8 if dtype is dtypes.uint8 else dtypes.uint16
            return convert_image_dtype(decode_png(contents, channels, kind), dtype)

        def other() -> Tensor:
            found: Tensor = cond(F.Equal(beginning, b"GIF"), gif, bmp, name="cond_gif")
            return found

        def no_jpeg() -> Tensor:
            found: Tensor = cond(F.Equal(beginning, b"\x89PN"), png, other, name="cond_png")
            return found

        def jpeg() -> Tensor:
            return convert_image_dtype(decode_jpeg(contents, channels), dtype)

        found: Tensor = cond(is_jpeg(contents), jpeg, no_jpeg, name="cond_jpeg")
        return found


def _checked(holds: Tensor, message: str, make: Callable[[], Tensor]) -> Tensor:
    """What `make` gives, after the check that `holds`."""
    with get_default_graph().control_dependencies([F.Assert.operation(holds, [message])]):
        return make()


def adjust_jpeg_quality(
    image: Any, jpeg_quality: Any, dct_method: str = "", name: str | None = None
) -> Tensor:
    """An image [height, width, 1 or 3] after it was written to a JPEG file and read again.

    `jpeg_quality`: a scalar from 0 to 100. Floats of the image are taken to be from 0 to 1.
    """
    with get_default_graph().name_scope(name or "adjust_jpeg_quality"):
        image = convert_to_tensor(image, name="image")
        channels = image.shape[-1].value if image.shape.ndims else None
        dtype = image.dtype.base_dtype
        pixels = convert_image_dtype(image, dtypes.uint8)
        quality = convert_to_tensor(jpeg_quality, dtypes.int32)
        written = F.EncodeJpegVariableQuality(pixels, quality)
        read = decode_jpeg(written, channels if channels in (1, 3) else 0, dct_method=dct_method)
        return convert_image_dtype(read, dtype, saturate=True)


def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """`adjust_jpeg_quality` with a random quality of ``[min_jpeg_quality, max_jpeg_quality)``.

    Raises ValueError unless 0 <= min_jpeg_quality < max_jpeg_quality <= 100.
    """
    if min_jpeg_quality < 0 or max_jpeg_quality < 0 or min_jpeg_quality > 100 or max_jpeg_quality > 100:
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed)
    return adjust_jpeg_quality(image, quality)
