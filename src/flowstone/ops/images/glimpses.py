"""Glimpses: windows of images around places of the user's choice, with noise where they leave the image.

Where a window begins, of an offset ``o``, an image of `length` and a window of `size`, along each dimension:

==========  ==========  ===============================================  ===================================
`centered`  normalized  ExtractGlimpse                                   ExtractGlimpseV2
==========  ==========  ===============================================  ===================================
yes         yes         o · length / 2 + length / 2 - size / 2           the same
yes         no          o / 2 + length / 2 - size / 2                    o + length / 2
no          yes         o · length - size / 2                            o · length
no          no          o - size / 2                                     o
==========  ==========  ===============================================  ===================================

Fractions are cut off. Noise is uniform between the least and the greatest value of the image, or `gaussian`
with its mean and deviation, cut to these values; or it is `zero`. ExtractGlimpse's is always uniform: in
TensorFlow 1.15 too, `uniform_noise` has no influence. On a host machine code copies the windows, where there
is the native tier.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine.image_code import GlimpseCut, glimpse_cut
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank
from flowstone.ops.randomness.op_seeds import fresh_seed

_FAR = 2.0**31  # pixels, beyond every image


def _infer_glimpse(node: Node) -> Dims:
    images, offsets = require_rank(node.dims(0), 4), require_rank(node.dims(2), 2)
    if offsets[1] not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {offsets[1]}")
    if node.attributes["uniform_noise"] and node.attributes.get("noise", "uniform") != "uniform":
        raise ValueError("The uniform_noise and noise should not be specified at the same time")
    batch = images[0] if offsets[0] is None else offsets[0]
    if images[0] is not None and images[0] != batch:
        raise ValueError(f"Dimensions must be equal, but are {images[0]} and {batch}")
    size = node.constant_dims(1)
    if size is not None and len(size) != 2:
        raise ValueError(f"Dimension must be 2 but is {len(size)}")
    return (batch, *(size or (None, None)), images[3])


def _checked_size(images: torch.Tensor, size: torch.Tensor, offsets: torch.Tensor) -> list[int]:
    """The rows and columns of glimpses. InvalidArgumentError unless the inputs go together."""
    if images.dim() != 4:
        raise invalid(f"input must be 4-dimensional (batch_size, height, width, depth): {list(images.shape)}")
    if size.shape != (2,):
        raise invalid(f"input must be a vector of size 2 (height, width): {list(size.shape)}")
    counts: list[int] = size.tolist()
    if min(counts) < 0:
        raise invalid(f"the size of a glimpse must not be negative: {counts}")
    if offsets.dim() != 2 or offsets.shape[1] != 2:
        raise invalid(f"offsets must be a matrix with 2 columns: {list(offsets.shape)}")
    if offsets.shape[0] != images.shape[0]:
        raise invalid(f"offsets should be {list(images.shape[:1])} but are {list(offsets.shape)}")
    return counts


def _starts(offset: torch.Tensor, length: int, size: int, mode: tuple[bool, bool, bool]) -> torch.Tensor:
    """Where windows begin; `mode` is centered, normalized, and whether it is the first version."""
    centred, normalized, is_first = mode
    place = offset * length if normalized else offset
    if centred and (normalized or is_first):
        place = place / 2 + length / 2
    elif centred:
        place = place + length / 2
    if is_first or (centred and normalized):
        place = place - size / 2
    return place.nan_to_num(nan=_FAR).clamp(-_FAR, _FAR).trunc().long()


def _noise(images: torch.Tensor, shape: list[int], kind: str, generator: torch.Generator) -> torch.Tensor:
    if kind == "zero" or not images.numel():
        return images.new_zeros(shape)
    low, high = images.amin((1, 2, 3), keepdim=True), images.amax((1, 2, 3), keepdim=True)
    if kind == "gaussian":
        deviation, mean = torch.std_mean(images, (1, 2, 3), correction=0, keepdim=True)
        values = torch.randn(shape, generator=generator, device=images.device)
        return torch.minimum(torch.maximum(values * deviation + mean, low), high)
    return torch.rand(shape, generator=generator, device=images.device) * (high - low) + low


def _glimpses(
    images: torch.Tensor,
    counts: list[int],
    offsets: torch.Tensor,
    mode: tuple[bool, bool, bool],
    noise: Callable[[list[int]], torch.Tensor],
) -> torch.Tensor:
    batch, height, width, channels = images.shape
    spans = zip(offsets.unbind(1), (height, width), counts)
    rows, columns = (
        _starts(offset, length, count, mode)[:, None] + torch.arange(count, device=images.device)
        for offset, length, count in spans
    )
    in_rows, in_columns = (rows >= 0) & (rows < height), (columns >= 0) & (columns < width)
    inside = in_rows.unsqueeze(2) & in_columns.unsqueeze(1)
    if not images.numel():
        return noise([batch, *counts, channels])
    number = torch.arange(batch, device=images.device)[:, None, None]
    found = images[number, rows.clamp(0, height - 1).unsqueeze(2), columns.clamp(0, width - 1).unsqueeze(1)]
    if bool(inside.all()):
        return found
    return torch.where(inside.unsqueeze(3), found, noise([batch, *counts, channels]))


def _cut(
    native: GlimpseCut,
    images: torch.Tensor,
    counts: list[int],
    offsets: torch.Tensor,
    mode: tuple[bool, bool, bool],
    noise: Callable[[list[int]], torch.Tensor] | None,
) -> torch.Tensor:
    """`_glimpses` by machine code; noise is made where a window leaves its image, else that is 0."""
    batch, height, width, channels = images.shape
    rows, columns = counts
    numbers = _origins(height, rows, width, columns, mode)
    shape = [batch, rows, columns, channels]
    out = images.new_zeros(shape) if noise is None else torch.empty(shape)
    if not native(images, offsets, numbers, out) and noise is not None:
        out = noise(shape)
        native(images, offsets, numbers, out)
    return out


@functools.lru_cache(maxsize=256)
def _origins(
    height: int, rows: int, width: int, columns: int, mode: tuple[bool, bool, bool]
) -> tuple[float, ...]:
    return (*_origin(height, rows, mode), *_origin(width, columns, mode))


def _origin(length: int, size: int, mode: tuple[bool, bool, bool]) -> tuple[float, float, float, float]:
    """Windows begin at ``(offset a) b + c - d``, see `_starts`: these four numbers."""
    centred, normalized, is_first = mode
    is_halved = centred and (normalized or is_first)
    is_moved = is_first or (centred and normalized)
    return (
        length if normalized else 1.0,
        0.5 if is_halved else 1.0,
        length / 2 if centred else 0.0,
        size / 2 if is_moved else 0.0,
    )


def _kernel(node: Node, env: Environment) -> Kernel:
    attributes = node.attributes
    is_first = node.type == "ExtractGlimpse"
    mode = (attributes["centered"], attributes["normalized"], is_first)
    kind = "uniform" if is_first else attributes["noise"]
    if kind not in ("uniform", "gaussian", "zero"):
        raise invalid(f"noise could only be uniform, gaussian, or zero, got {kind}")

    generator = env.state(node, lambda: _fresh_generator(env.device))

    native = glimpse_cut() if env.device.type == "cpu" else None

    def run(images: torch.Tensor, size: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        counts = _checked_size(images, size, offsets)

        def noise(shape: list[int]) -> torch.Tensor:
            return _noise(images, shape, kind, generator)

        if native is not None and images.numel():
            return _cut(native, images, counts, offsets, mode, None if kind == "zero" else noise)
        return _glimpses(images, counts, offsets, mode, noise)

    return run


def _fresh_generator(device: torch.device) -> torch.Generator:
    generator = torch.Generator(device=device)
    generator.manual_seed(fresh_seed())
    return generator


_SIGNATURE = "input: float, size: int32, offsets: float -> glimpse: float"
_PLACES = "centered: bool = true ; normalized: bool = true ; uniform_noise: bool = true"

# TensorFlow's definitions do not tell that the noise is another in every step.
extract_glimpse_op = op("ExtractGlimpse", _SIGNATURE, _PLACES, host=["size"], stateful=True, capturable=False)
extract_glimpse_op.not_differentiable()
extract_glimpse_v2_op = op(
    "ExtractGlimpseV2",
    _SIGNATURE,
    f"{_PLACES} ; noise: string = 'uniform'",
    host=["size"],
    stateful=True,
    capturable=False,
)
extract_glimpse_v2_op.no_gradient()
for _declaration in (extract_glimpse_op, extract_glimpse_v2_op):
    _declaration.infer(_infer_glimpse)
    _declaration.kernel(CPU, GPU)(_kernel)


def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> Tensor:
    """Windows of float32 images [batch, height, width, channels], one an image: [batch, *size, channels].

    `offsets`: float32 [batch, 2], the rows and columns of the windows' middles. `normalized`: they are shares
    of the height and width, not pixels. `centered`: 0 is the image's middle and, if normalized, -1 and 1 its
    borders; else 0 is the upper left corner. Where a window leaves the image it has random values between the
    image's least and greatest, whatever `uniform_noise` is. InvalidArgumentError for shapes that do not fit.
    """
    return extract_glimpse_op(
        input,
        size,
        offsets,
        centered=centered,
        normalized=normalized,
        uniform_noise=uniform_noise,
        name=name,
    )
