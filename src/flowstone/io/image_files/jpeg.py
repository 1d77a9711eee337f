"""JPEG files.

Pixels are libjpeg's with the accurate integer transform. TensorFlow takes the fast one unless told otherwise,
whose values differ by up to 7 of 255 from the accurate ones.
"""

from __future__ import annotations

import io
import struct
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from flowstone.io.image_files.formats import check_size, refuse

__all__ = ["JpegOptions", "decode_jpeg", "encode_jpeg", "jpeg_shape"]

Array = np.ndarray[Any, Any]

_END = b"\xff\xd9"
_ERRORS = (OSError, SyntaxError, ValueError, EOFError, struct.error, IndexError, KeyError, TypeError)


class JpegOptions(NamedTuple):
    """How a file is read.

    `ratio`: 1, 2, 4 or 8, by which the image is smaller; `smooth`: whether colours are interpolated where the
    file has one for four pixels (where it has one for two, they always are); `recovers`: whether what is
    missing of a file becomes grey; else, of a file that ends early, `fraction` of the rows must be there, and
    the others are 0.
    """

    ratio: int = 1
    smooth: bool = True
    recovers: bool = False
    fraction: float = 1.0


def jpeg_shape(data: bytes) -> tuple[int, int, int]:
    """Height, width and channels of the file (1, 3 or 4)."""
    image = _opened(data)
    return image.height, image.width, len(image.getbands())


def decode_jpeg(data: bytes, channels: int = 0, options: JpegOptions | None = None) -> Array:
    """The pixels, uint8 [height, width, channels]; 0 `channels`: as many as the file has, 1 or 3."""
    options = options or JpegOptions()
    if channels not in (0, 1, 3):
        refuse(f"JPEG images have 1 or 3 channels, not {channels}")
    if options.recovers:
        data += _END
    image = _opened(data)
    wanted = channels or (1 if image.mode == "L" else 3)
    if not options.smooth and options.ratio == 1 and wanted == 3 and _has_halved_colours(image):
        return _unsmoothed(image, data, options)
    found = _read(image, data, options, "L" if wanted == 1 and image.mode in ("L", "RGB") else None)
    if found.mode == "CMYK":
        if wanted == 1:
            refuse("A JPEG image of cyan, magenta, yellow and black has no grey form: ask for 3 channels")
        return _of_cmyk(np.asarray(found))
    pixels = np.array(found)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 < wanted else pixels


def _opened(data: bytes) -> JpegImageFile:
    try:
        image = JpegImageFile(io.BytesIO(data))
    except _ERRORS as error:
        refuse(f"Invalid JPEG data, size {len(data)}: {error}")
    check_size(data, "JPEG", image.width, image.height, 3)
    return image


def _read(image: JpegImageFile, data: bytes, options: JpegOptions, mode: str | None) -> JpegImageFile:
    """The image, read from its opened file. `mode`: of Pillow, into which the file is to be decoded."""
    # A size between two of those that libjpeg can scale to, so that Pillow takes this one.
    size: Any = image.width / (options.ratio + 0.5), image.height / (options.ratio + 0.5)
    image.draft(mode, size)
    try:
        image.load()
    except _ERRORS as error:
        rows = _rows_read(image) if options.fraction < 1 else 0
        if rows < max(1.0, image.height * options.fraction):
            refuse(f"Invalid JPEG data, size {len(data)}: {error}")
        image.tile = []
    return image


def _rows_read(image: JpegImageFile) -> int:
    """How many rows there are of an image that could not be read to its end."""
    image.tile = []
    filled = np.flatnonzero(np.asarray(image).reshape(image.height, -1).any(axis=1))
    return int(filled[-1]) + 1 if filled.size else 0


def _has_halved_colours(image: JpegImageFile) -> bool:
    """Whether there is one colour for two by two pixels."""
    return image.mode == "RGB" and [layer[1:3] for layer in image.layer] == [(2, 2), (1, 1), (1, 1)]


def _unsmoothed(image: JpegImageFile, data: bytes, options: JpegOptions) -> Array:
    """The pixels, each with the colour of its square of four.

    An image that is decoded at half its size has the colours as they stand in the file. The formula is that
    of JFIF.
    """
    light = np.asarray(_read(image, data, options, "YCbCr"))[:, :, 0].astype(np.int32)
    half = _read(_opened(data), data, options._replace(ratio=2), "YCbCr")
    halves = np.asarray(half)[:, :, 1:].astype(np.int32) - 128
    blue, red = (
        np.repeat(np.repeat(halves[:, :, i], 2, axis=0), 2, axis=1)[: light.shape[0], : light.shape[1]]
        for i in range(2)
    )
    pixels = [light + _scaled(1.402, red), light - _scaled(0.34414, blue, 0.71414, red),
              light + _scaled(1.772, blue)]  # fmt: skip
    return np.clip(np.stack(pixels, axis=2), 0, 255).astype(np.uint8)


def _scaled(weight: float, values: Array, other: float = 0.0, others: Array | int = 0) -> Array:
    """``weight * values + other * others``, rounded as libjpeg does, in 16 bits."""
    half = 32768 if not other else 32767
    found: Array = (round(weight * 65536) * values + round(other * 65536) * others + half) >> 16
    return found


def _of_cmyk(pixels: Array) -> Array:
    """Red, green and blue of cyan, magenta, yellow and black, which Pillow gives as how much ink there is."""
    rest = 255 - pixels.astype(np.int32)
    return (rest[:, :, :3] * rest[:, :, 3:] // 255).astype(np.uint8)


# ---- writing


def encode_jpeg(
    pixels: Array,
    quality: int = 95,
    progressive: bool = False,
    optimizes: bool = False,
    halves_colours: bool = True,
    density: tuple[str, int, int] = ("in", 300, 300),
    metadata: bytes = b"",
) -> bytes:
    """The file of uint8 pixels [height, width, 1 or 3]. `density`: the unit, "in" or "cm", and pixels of it
    in both directions; `metadata`: in XMP."""
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    unit, x, y = density
    out = io.BytesIO()
    image.save(
        out, "JPEG", quality=quality, progressive=progressive, optimize=optimizes or progressive,
        subsampling=2 if halves_colours and pixels.shape[2] == 3 else 0, dpi=(x, y), xmp=metadata or None,
    )  # fmt: skip
    data = bytearray(out.getvalue())
    if unit == "cm":
        data[13] = 2  # the header's unit; Pillow knows inches only
    return bytes(data)
