"""BMP files as TensorFlow reads them: uncompressed pixels of 8, 24 or 32 bits, palettes passed over."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from flowstone.io.image_files.formats import check_size, refuse

__all__ = ["decode_bmp"]

_HEADER = 32  # bytes that are read of it


def decode_bmp(data: bytes, channels: int = 0) -> np.ndarray[Any, Any]:
    """The pixels, uint8 [height, width, channels].

    `channels`: 0, as many as the file has, 1, 3 or 4; 1, what a file of 8 bits has; 3 or 4, made of what
    there is: grey in each colour, alpha 255.
    """
    if len(data) < _HEADER:
        refuse(
            f"Incomplete bmp content, requires at least {_HEADER} bytes to find the header, got {len(data)}"
        )
    offset, _, width, height, _, bits = struct.unpack_from("<iiiiHH", data, 10)
    depth = bits // 8
    if depth not in (1, 3, 4) or bits % 8:
        refuse(f"Number of channels inherent in the image must be 1, 3 or 4, was {depth} ({bits} bits)")
    if channels == 1 and depth != 1:
        refuse(f"channels attribute {channels} does not match bits per pixel from file {depth}")
    rows = abs(height)
    check_size(data, "BMP", width, rows, depth)
    stride = (width * depth + 3) // 4 * 4
    size = stride * (rows - 1) + width * depth
    if offset < _HEADER or offset + size > len(data):
        refuse(f"Incomplete bmp content, requires at least {offset + size} bytes, got {len(data)} bytes")
    flat = np.zeros(stride * rows, np.uint8)
    flat[:size] = np.frombuffer(data, np.uint8, size, offset)
    pixels = flat.reshape(rows, stride)[:, : width * depth].reshape(rows, width, depth)
    if height > 0:
        pixels = pixels[::-1]
    if depth > 1:
        pixels = pixels[:, :, [2, 1, 0, 3][:depth]]
    if channels > 1 == depth:
        pixels = np.repeat(pixels, 3, axis=2)
    if channels == 4 > depth:
        pixels = np.concatenate([pixels, np.full_like(pixels[:, :, :1], 255)], axis=2)
    return np.ascontiguousarray(pixels[:, :, : channels or depth])
