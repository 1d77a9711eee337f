"""Images from the bytes of their files: the ops, and `decode_image`, which finds the format.

All but DecodeBmp take a JPEG, PNG or GIF file, whichever it is. `dct_method` has no influence: see
`io/image_files/jpeg.py`. The work is done on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, KernelFactory
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, format_dims
from flowstone.framework.types.values import to_runtime
from flowstone.io.image_files.bmp import decode_bmp as read_bmp
from flowstone.io.image_files.formats import format_of
from flowstone.io.image_files.gif import decode_gif as read_gif
from flowstone.io.image_files.jpeg import JpegOptions, jpeg_shape
from flowstone.io.image_files.jpeg import decode_jpeg as read_jpeg
from flowstone.io.image_files.png import decode_png as read_png
from flowstone.io.image_files.webp import decode_webp as read_webp
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank

__all__: list[str] = []

Array = np.ndarray[Any, Any]

_DCT_METHODS = ("", "INTEGER_FAST", "INTEGER_ACCURATE")
_JPEG_OPTIONS = (
    "channels: int = 0 ; ratio: int = 1 ; fancy_upscaling: bool = true ; "
    "try_recover_truncated: bool = false ; acceptable_fraction: float = 1 ; dct_method: string = ''"
)


def _data(contents: Array) -> bytes:
    """The bytes of a scalar string."""
    if contents.ndim:
        raise invalid(f"contents must be scalar, got shape {format_dims(contents.shape)}")
    data: bytes = contents.item()
    return data


def _channels(node: Node) -> int:
    channels: int = node.attributes["channels"]
    if channels not in (0, 1, 3, 4):
        raise invalid(f"channels must be 0, 1, 3 or 4, got {channels}")
    return channels


def _image(data: bytes, channels: int, bits: int = 8, options: JpegOptions | None = None) -> Array:
    """The pixels of a JPEG or PNG file, or of a GIF file with one frame."""
    kind = format_of(data)
    if kind == "PNG":
        return read_png(data, channels, bits)
    if kind == "JPEG":
        pixels = read_jpeg(data, channels, options)
    elif kind == "GIF":
        frames = _frames(data, channels)
        if len(frames) != 1:
            raise invalid(
                f"Got {len(frames)} frames, but animated gifs can only be decoded by tf.image.decode_gif or "
                "tf.image.decode_image"
            )
        if bits != 8:
            raise invalid("GIF does not support uint16 output")
        pixels = frames[0]
    else:
        raise invalid("The contents are a BMP file: use `decode_bmp` or `decode_image` instead")
    return pixels if bits == 8 else pixels.astype(np.uint16) * np.uint16(257)


def _frames(data: bytes, channels: int, most: int | None = None) -> Array:
    if channels not in (0, 3):
        raise invalid(f"channels must be 0 or 3 for GIF, got {channels}")
    return read_gif(data, most)


def _infer_image(node: Node) -> Dims:
    require_rank(node.dims(0), 0)
    return None, None, node.attributes["channels"] or None


def _declared(
    name: str, inputs: str, attributes: str, infer: Callable[[Node], Any], **types: Any
) -> Callable[[KernelFactory], Any]:
    """Declares an op of the host; the result registers its kernel."""
    declaration = op(name, inputs, attributes, capturable=False, **types)
    declaration.not_differentiable()
    declaration.infer(infer)
    return declaration.kernel(CPU)


# ---- JPEG


def _options(node: Node) -> JpegOptions:
    attributes = node.attributes
    if attributes["ratio"] not in (1, 2, 4, 8):
        raise invalid(f"ratio must be 1, 2, 4, or 8, got {attributes['ratio']}")
    if _text(attributes["dct_method"]) not in _DCT_METHODS:
        raise invalid("dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}")
    return JpegOptions(
        attributes["ratio"],
        attributes["fancy_upscaling"],
        attributes["try_recover_truncated"],
        attributes["acceptable_fraction"],
    )


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


@_declared("DecodeJpeg", "contents: string -> image: uint8", _JPEG_OPTIONS, _infer_image)
def _(node: Node, env: Environment) -> Callable[[Array], Any]:
    channels, options = _channels(node), _options(node)
    return lambda contents: torch.from_numpy(_image(_data(contents), channels, 8, options))


def _infer_crop(node: Node) -> Dims:
    require_rank(node.dims(0), 0)
    (size,) = require_rank(node.dims(1), 1)
    if size not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {size}")
    window = node.constant(1)
    height, width = (None, None) if window is None else (int(window[2]), int(window[3]))
    return height, width, node.attributes["channels"] or None


@_declared(
    "DecodeAndCropJpeg", "contents: string, crop_window: int32 -> image: uint8", _JPEG_OPTIONS, _infer_crop
)
def _(node: Node, env: Environment) -> Callable[[Array, Any], Any]:
    channels, options = _channels(node), _options(node)

    def decode(contents: Array, window: Any) -> Any:
        data = _data(contents)
        if tuple(window.shape) != (4,):
            raise invalid(f"crop_window must have shape [4], not {format_dims(tuple(window.shape))}")
        if format_of(data) != "JPEG":
            raise invalid(f"DecodeAndCropJpeg takes JPEG files only, but detected {format_of(data)}")
        y, x, height, width = window.tolist()
        pixels = read_jpeg(data, channels, options)
        rows, columns, _ = pixels.shape
        if y < 0 or x < 0 or height <= 0 or width <= 0 or y + height > rows or x + width > columns:
            raise invalid(
                f"Invalid JPEG data or crop window: an image of {rows} x {columns} pixels has no window "
                f"{[y, x, height, width]}"
            )
        return torch.from_numpy(np.ascontiguousarray(pixels[y : y + height, x : x + width]))

    return decode


@_declared(
    "ExtractJpegShape",
    "contents: string -> image_shape: output_type",
    "output_type: type in [int32, int64] = int32",
    lambda node: (3,),
)
def _(node: Node, env: Environment) -> Callable[[Array], Any]:
    kind = node.attributes["output_type"].torch
    return lambda contents: torch.tensor(jpeg_shape(_data(contents)), dtype=kind)


# ---- PNG, GIF, BMP


@_declared(
    "DecodePng", "contents: string -> image: dtype",
    "channels: int = 0 ; dtype: type in [uint8, uint16] = uint8",
    _infer_image,
)  # fmt: skip
def _(node: Node, env: Environment) -> Callable[[Array], Any]:
    dtype, channels = node.attributes["dtype"], _channels(node)
    return lambda contents: to_runtime(_image(_data(contents), channels, 8 * dtype.size), dtype)


def _infer_frames(node: Node) -> Dims:
    require_rank(node.dims(0), 0)
    return None, None, None, 3


@_declared("DecodeGif", "contents: string -> image: uint8", "", _infer_frames)
def _(node: Node, env: Environment) -> Callable[[Array], Any]:
    def decode(contents: Array) -> Any:
        data = _data(contents)
        frames = read_gif(data) if format_of(data) == "GIF" else _image(data, 3)[None]
        return torch.from_numpy(frames)

    return decode


@_declared("DecodeBmp", "contents: string -> image: uint8", "channels: int = 0", _infer_image)
def _(node: Node, env: Environment) -> Callable[[Array], Any]:
    channels = _channels(node)

    def decode(contents: Array) -> Any:
        data = _data(contents)
        if format_of(data) != "BMP":
            raise invalid(
                f"Trying to decode {format_of(data)} format using DecodeBmp op. Use `decode_image` instead."
            )
        return torch.from_numpy(read_bmp(data, channels))

    return decode


@_declared(
    "DecodeWebP",
    "contents: string -> image: dtype",
    "channels: int = 0 ; dtype: type in [uint8] = uint8",
    lambda node: (None, None, None, node.attributes["channels"] or None),
)
def _(node: Node, env: Environment) -> Callable[[Array], Any]:
    return lambda contents: torch.from_numpy(read_webp(_data(contents), node.attributes["channels"]))


# ---- any


@_declared(
    "DecodeImage", "contents: string -> image: dtype",
    "channels: int = 0 ; dtype: type in [uint8, uint16, float32] = uint8 ; expand_animations: bool = true",
    lambda node: None,
)  # fmt: skip
def _(node: Node, env: Environment) -> Callable[[Array], Any]:
    dtype, expands = node.attributes["dtype"], node.attributes["expand_animations"]
    bits, channels = 8 if dtype is dtypes.uint8 else 16, _channels(node)

    def decode(contents: Array) -> Any:
        data = _data(contents)
        kind = format_of(data)
        if kind == "PNG":
            pixels = read_png(data, channels, bits)
        elif kind == "GIF":
            pixels = _frames(data, channels, None if expands else 1)
            pixels = pixels if expands else pixels[0]
        else:
            pixels = read_bmp(data, channels) if kind == "BMP" else read_jpeg(data, channels)
        if dtype is dtypes.float32:
            return torch.from_numpy(pixels.astype(np.float32) / np.iinfo(pixels.dtype).max)
        if bits == 16 and pixels.dtype == np.uint8:
            pixels = pixels.astype(np.uint16) * np.uint16(257)
        return to_runtime(pixels, dtype)

    return decode
