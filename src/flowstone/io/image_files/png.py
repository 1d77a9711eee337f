"""PNG files, of 8 and 16 bits.

Grey of colours is that of libpng with the weights of ITU-R BT.601, in 15 bits; 16 bits become 8 by their high
byte, and 8 bits 16 by repeating it.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL.PngImagePlugin import PngImageFile

from flowstone.io.image_files.formats import check_size, refuse

__all__ = ["decode_png", "encode_png"]

Array = np.ndarray[Any, Any]

_WEIGHTS = (9797, 19234, 3737)  # of red, green and blue, of 32768
_GREY, _PALETTE, _GREY_ALPHA, _COLOUR_ALPHA = 0, 3, 4, 6  # the header's colour types
_TYPES = {1: _GREY, 2: _GREY_ALPHA, 3: 2, 4: _COLOUR_ALPHA}  # of so many channels


def decode_png(data: bytes, channels: int = 0, bits: int = 8) -> Array:
    """The pixels, uint8 or uint16 [height, width, channels]; 0 `channels`: as many as the file has.

    With 4 `channels`, the colour that a file names as transparent is so. Without alpha in the file, alpha is
    the largest value that the file's own bits can hold, as in TensorFlow.
    """
    try:
        pixels = _pixels(data)
        opaque = _opaque(data, pixels, channels)
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error, IndexError) as error:
        refuse(f"Invalid PNG data, size {len(data)}: {error}")
    pixels = _with_channels(pixels, channels or pixels.shape[2], opaque)
    if bits == 8 and pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
    if bits == 16 and pixels.dtype == np.uint8:
        pixels = pixels.astype(np.uint16) * np.uint16(257)
    return np.ascontiguousarray(pixels)


def _opaque(data: bytes, pixels: Array, channels: int) -> Array:
    """The alpha of pixels that have none, [height, width, 1]."""
    depth, kind = data[24], data[25]
    alpha = np.full_like(pixels[:, :, :1], min((1 << depth) - 1, np.iinfo(pixels.dtype).max))
    clear = _chunk(data, b"tRNS") if channels == 4 and pixels.shape[2] in (1, 3) else None
    if clear is None or kind == _PALETTE:
        return alpha
    alpha[:] = np.iinfo(pixels.dtype).max
    colour = np.array(struct.unpack(f">{pixels.shape[2]}H", clear[: 2 * pixels.shape[2]]))
    if depth < 8:
        colour = colour * (255 // ((1 << depth) - 1))
    alpha[np.all(pixels == colour, axis=2)] = 0
    return alpha


def _chunk(data: bytes, name: bytes) -> bytes | None:
    """The contents of the chunk `name` before the pixels, if there is one."""
    at = 8
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == name:
            return data[at + 8 : at + 8 + size]
        if kind == b"IDAT":
            return None
        at += 12 + size
    return None


def _pixels(data: bytes) -> Array:
    """The pixels as the file has them, with a palette's colours."""
    width, height, depth, kind = struct.unpack_from(">IIBB", data, 16)
    check_size(data, "PNG", width, height, 8 if depth == 16 else 4)
    if depth == 16:
        return _wide_pixels(data, kind)
    image = PngImageFile(io.BytesIO(data))
    if kind == _PALETTE:
        is_clear = "transparency" in image.info
        return np.array(image.convert("RGBA" if is_clear else "RGB"))
    if image.mode in ("1", "I"):
        return np.array(image.convert("L"))[:, :, None]
    found = np.array(image)
    return found if found.ndim == 3 else found[:, :, None]


def _wide_pixels(data: bytes, kind: int) -> Array:
    """The pixels of 16 bits. Pillow gives one byte of each at a time."""
    if kind == _GREY:
        image = PngImageFile(io.BytesIO(data))
        return np.array(image).astype(np.uint16)[:, :, None]
    if kind == _GREY_ALPHA:
        parts = _read_as(data, "RGBA", "RGBA")
        return parts.view(">u2").astype(np.uint16)
    mode = "RGBA" if kind == _COLOUR_ALPHA else "RGB"
    high, low = _read_as(data, mode, f"{mode};16B"), _read_as(data, mode, f"{mode};16L")
    return high.astype(np.uint16) << 8 | low


def _read_as(data: bytes, mode: str, raw_mode: str) -> Array:
    """The pixels that Pillow makes of the bytes when it takes them for those of `raw_mode`."""
    image = PngImageFile(io.BytesIO(data))
    image._mode = mode
    image.tile = [each._replace(args=raw_mode) for each in image.tile]
    image.info.pop("transparency", None)
    return np.array(image)


def _with_channels(pixels: Array, channels: int, opaque: Array) -> Array:
    """The pixels with so many channels: 1, grey; 2, grey and alpha; 3, colours; 4, colours and alpha."""
    count = pixels.shape[2]
    if count == channels:
        return pixels
    colours = pixels[:, :, : 3 if count > 2 else 1]
    if channels < 3 and count > 2:
        rounding = 16384 if pixels.dtype == np.uint16 else 0
        grey = (colours.astype(np.int64) @ np.array(_WEIGHTS) + rounding) >> 15
        colours = grey.astype(pixels.dtype)[:, :, None]
    elif channels > 2 and count < 3:
        colours = np.repeat(colours, 3, axis=2)
    if channels in (1, 3):
        return colours
    alpha = pixels[:, :, -1:] if count in (2, 4) else opaque
    return np.concatenate([colours, alpha], axis=2)


# ---- writing


def encode_png(pixels: Array, compression: int = -1) -> bytes:
    """The file of uint8 or uint16 pixels [height, width, 1 to 4 channels]. `compression`: zlib's, 0 to 9."""
    height, width, channels = pixels.shape
    depth = 8 * pixels.dtype.itemsize
    header = struct.pack(">IIBBBBB", width, height, depth, _TYPES[channels], 0, 0, 0)
    rows = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">")).view(np.uint8).reshape(height, -1)
    # Each row as its difference from the pixel before, which is filter 1: images compress best that way.
    step = channels * pixels.dtype.itemsize
    filtered = np.ones((height, rows.shape[1] + 1), np.uint8)
    filtered[:, 1:] = rows
    filtered[:, 1 + step :] -= rows[:, :-step]
    body = zlib.compress(filtered.tobytes(), compression)
    chunks = [(b"IHDR", header), (b"IDAT", body), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part))
        for name, part in chunks
    )
