"""Which format a file has, and how large an image may be that it holds."""

from __future__ import annotations

from typing import Any, NoReturn

from flowstone.framework import errors

__all__ = ["check_size", "format_of", "refuse"]

_MOST_BYTES = 3000  # of pixels, of each byte of a file: no format compresses more
_ALWAYS_ALLOWED = 1 << 24  # bytes of pixels
_BEGINNINGS = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
}


def refuse(message: str) -> NoReturn:
    """Raises InvalidArgumentError."""
    raise errors.InvalidArgumentError(None, None, message) from None


def format_of(data: bytes) -> str:
    """ "JPEG", "PNG", "GIF" or "BMP". InvalidArgumentError for others."""
    if not data:
        refuse("Input is empty.")
    for beginning, name in _BEGINNINGS.items():
        if data.startswith(beginning):
            return name
    refuse(
        "Unknown image file format. One of JPEG, PNG, GIF, BMP required, but the data begin with "
        f"{data[:16]!r}"
    )


def check_size(data: bytes, name: str, width: Any, height: Any, pixel_bytes: int) -> None:
    """InvalidArgumentError for an image without pixels, or with more than the file can hold."""
    if width <= 0 or height <= 0:
        refuse(f"{name} image with an invalid size, width {width} and height {height}")
    if width * height * pixel_bytes > max(_ALWAYS_ALLOWED, _MOST_BYTES * len(data)):
        refuse(f"Invalid {name} data: {len(data)} bytes cannot hold {width} x {height} pixels")
