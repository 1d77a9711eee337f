"""WebP files: all frames, as they look one after the other."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
from PIL.WebPImagePlugin import WebPImageFile

from flowstone.io.image_files.formats import check_size, refuse

__all__ = ["decode_webp"]


def decode_webp(data: bytes, channels: int = 0) -> np.ndarray[Any, Any]:
    """The frames, uint8 [frames, height, width, 3 or 4]; `channels`: how many there must be, 0 for any."""
    if not (data.startswith(b"RIFF") and data[8:12] == b"WEBP"):
        refuse(f"Invalid WebP data, size {len(data)}")
    if channels not in (0, 3, 4):
        refuse(f"WebP only supports 3 or 4 channels, got {channels}")
    frames: list[Any] = []
    try:
        width, height = _size(data)
        check_size(data, "WebP", width, height, 4)
        image = WebPImageFile(io.BytesIO(data))
        depth = len(image.getbands())
        if channels not in (0, depth):
            refuse(f"Number of channels requested, {channels}, does not match the file's {depth}")
        for number in range(image.n_frames):
            check_size(data, "WebP", width, height, 4 * (number + 1))
            image.seek(number)
            frames.append(np.asarray(image))
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, IndexError, TypeError) as error:
        refuse(f"Invalid WebP data, size {len(data)}: {error}")
    return np.stack(frames)


def _size(data: bytes) -> tuple[int, int]:
    """Width and height, of the first chunk."""
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF
