"""The bytes of files that hold images: EncodeJpeg, EncodePng. The work is done on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims, format_dims
from flowstone.framework.types.values import to_numpy
from flowstone.io.image_files.jpeg import encode_jpeg as write_jpeg
from flowstone.io.image_files.png import encode_png as write_png
from flowstone.ops.arrays.arrays import boxed, invalid
from flowstone.ops.networks.windows import require_rank

__all__: list[str] = []

Array = np.ndarray[Any, Any]
_LARGEST = 65535  # pixels, of a side that a JPEG file can hold


def _scalar(node: Node) -> Dims:
    require_rank(node.dims(0), 3)
    return ()


def _jpeg_pixels(image: Any, wanted: str = "") -> Array:
    """The pixels of a tensor. InvalidArgumentError for shapes that no JPEG file has."""
    dims = tuple(image.shape)
    if len(dims) != 3:
        raise invalid(f"image must be 3-dimensional{format_dims(dims)}")
    expected = {"grayscale": 1, "rgb": 3}.get(wanted)
    if expected is not None and dims[2] != expected:
        raise invalid(f"format {wanted} expects {expected} channels, got {format_dims(dims)}")
    if dims[2] not in (1, 3):
        raise invalid(f"image must have 1 or 3 channels, got {format_dims(dims)}")
    if not 0 < dims[0] <= _LARGEST or not 0 < dims[1] <= _LARGEST:
        raise invalid(f"JPEG images have 1 to {_LARGEST} pixels along each side, got {format_dims(dims)}")
    return np.ascontiguousarray(image.numpy())


def _check_quality(quality: int) -> int:
    if not 0 <= quality <= 100:
        raise invalid(f"quality must be in [0,100], got {quality}")
    return quality


encode_jpeg_op = op(
    "EncodeJpeg",
    "image: uint8 -> contents: string",
    "format: string in ['', 'grayscale', 'rgb'] = '' ; quality: int = 95 ; progressive: bool = false ; "
    "optimize_size: bool = false ; chroma_downsampling: bool = true ; density_unit: string in ['in', 'cm'] "
    "= 'in' ; x_density: int = 300 ; y_density: int = 300 ; xmp_metadata: string = ''",
    capturable=False,
)
encode_jpeg_op.infer(_scalar)
encode_jpeg_op.not_differentiable()


@encode_jpeg_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any], Any]:
    attributes = node.attributes
    metadata = attributes["xmp_metadata"]
    metadata = metadata.encode(errors="surrogateescape") if isinstance(metadata, str) else metadata
    density = attributes["density_unit"], attributes["x_density"], attributes["y_density"]

    quality = _check_quality(attributes["quality"])
    progressive, optimizes = attributes["progressive"], attributes["optimize_size"]
    halves_colours = attributes["chroma_downsampling"]

    def encode(image: Any) -> Any:
        pixels = _jpeg_pixels(image, attributes["format"])
        return boxed(write_jpeg(pixels, quality, progressive, optimizes, halves_colours, density, metadata))

    return encode


encode_variable_op = op(
    "EncodeJpegVariableQuality", "images: uint8, quality: int32 -> contents: string", "", capturable=False
)
encode_variable_op.not_differentiable()


@encode_variable_op.infer
def _(node: Node) -> Dims:
    require_rank(node.dims(0), 3)
    require_rank(node.dims(1), 0)
    return ()


@encode_variable_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any, Any], Any]:
    return lambda image, quality: boxed(write_jpeg(_jpeg_pixels(image), _check_quality(int(quality))))


encode_png_op = op(
    "EncodePng", "image: T -> contents: string",
    "compression: int = -1 ; T: type in [uint8, uint16] = uint8", capturable=False,
)  # fmt: skip
encode_png_op.not_differentiable()


@encode_png_op.infer
def _(node: Node) -> Dims:
    dims = node.dims(0)
    if dims is not None and len(dims) < 3:
        raise ValueError(f"Shape must be at least rank 3 but is rank {len(dims)}")
    return None if dims is None else dims[:-3]


@encode_png_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[[Any], Any]:
    compression, dtype = node.attributes["compression"], node.attributes["T"]

    if not -1 <= compression <= 9:
        raise invalid(f"compression should be in [-1,9], got {compression}")

    def encode(image: Any) -> Any:
        dims = tuple(image.shape)
        if len(dims) < 3:
            raise invalid(f"image must be 3-dimensional{format_dims(dims)}")
        if dims[-1] not in (1, 2, 3, 4):
            raise invalid(f"image must have 1, 2, 3, or 4 channels, got {dims[-1]}")
        if not dims[-3] or not dims[-2]:
            raise invalid(f"image must not be empty, got {format_dims(dims)}")
        pixels = to_numpy(image, dtype)
        if len(dims) == 3:
            return boxed(write_png(pixels, compression))
        files = np.empty(dims[:-3], object)
        for place in np.ndindex(files.shape):
            files[place] = write_png(pixels[place], compression)
        return files

    return encode
