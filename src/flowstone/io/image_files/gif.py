"""GIF files: all frames, each drawn over those before it."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
from PIL.GifImagePlugin import GifImageFile
from PIL.Image import DecompressionBombError, DecompressionBombWarning

from flowstone.io.image_files.formats import check_size, refuse

__all__ = ["decode_gif"]

_ERRORS = (
    OSError, SyntaxError, ValueError, struct.error, IndexError, TypeError, AttributeError,
    DecompressionBombError, DecompressionBombWarning,  # a frame that is far larger than the image
)  # fmt: skip


def decode_gif(data: bytes, most: int | None = None) -> np.ndarray[Any, Any]:
    """The frames, uint8 [frames, height, width, 3]; at most `most` of them."""
    frames: list[Any] = []
    try:
        image = GifImageFile(io.BytesIO(data))
        while most is None or len(frames) < most:
            check_size(data, "GIF", image.width, image.height, 3 * (len(frames) + 1))
            frames.append(np.asarray(image.convert("RGB")))
            try:
                image.seek(len(frames))
            except EOFError:
                break
    except _ERRORS as error:
        refuse(f"Invalid GIF data (size {len(data)}), {error}")
    return np.stack(frames)
