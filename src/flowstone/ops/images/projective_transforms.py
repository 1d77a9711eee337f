"""Images seen through a projective transform: moved, turned, scaled, sheared, in perspective.

A transform is eight numbers ``[a0, a1, a2, b0, b1, b2, c0, c1]``. The pixel at column `x` and row `y` of the
result is that of the image at ``((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)``, where
``k = c0 x + c1 y + 1``. Where that is beyond the image, `fill_mode` says what is there:

========  =============================================
CONSTANT  the fill value, also where `k` is zero
REFLECT   the image mirrored: d c b a | a b c d | d c b a
WRAP      the image again: a b c d | a b c d | a b c d
NEAREST   its border: a a a a | a b c d | d d d d
========  =============================================

The gradient for the images is the transform of the result's gradient by the inverse matrix. On a host machine
code reads the pixels, where there is the native tier.
"""

from __future__ import annotations

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.image_code import projection
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank

_ATTRIBUTES = (
    "dtype: type in [uint8, int32, int64, half, bfloat16, float, double] ; interpolation: string ; "
    "fill_mode: string = 'CONSTANT'"
)
_FAR = 2.0**30  # pixels, beyond every image


def _infer_transformed(node: Node) -> Dims:
    images = require_rank(node.dims(0), 4)
    require_rank(node.dims(1), 2)
    require_rank(node.dims(2), 1)
    size = node.constant_dims(2)
    if size is not None and len(size) != 2:
        raise ValueError(f"Dimension must be 2 but is {len(size)}")
    return (images[0], *(size or (None, None)), images[3])


def _mirrored(place: torch.Tensor, length: int) -> torch.Tensor:
    place = torch.remainder(place, 2 * length)
    return torch.where(place >= length, 2 * length - place - 1, place)


def _wrapped(place: torch.Tensor, length: int) -> torch.Tensor:
    if length <= 1:
        return torch.zeros_like(place)
    before = place + length * ((-place / (length - 1)).trunc() + 1)
    after = place - length * (place / (length - 1)).trunc()
    return torch.where(place < 0, before, torch.where(place > length - 1, after, place))


def _mapped(place: torch.Tensor, length: int, mode: str) -> torch.Tensor:
    """Places as the mode understands them; without the mode CONSTANT they are in the image then."""
    if mode == "CONSTANT":
        return place
    if mode == "REFLECT":
        place = _mirrored(place, length)
    elif mode == "WRAP":
        place = _wrapped(place, length)
    return place.clamp(0, length - 1)


def _places(
    transforms: torch.Tensor, rows: int, columns: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Columns and rows in the images, [transforms, rows, columns] each, and where there are any."""
    x = torch.arange(columns, dtype=torch.float32, device=transforms.device)
    y = torch.arange(rows, dtype=torch.float32, device=transforms.device)[:, None]
    a0, a1, a2, b0, b1, b2, c0, c1 = transforms.float()[:, :, None, None].unbind(1)
    k = c0 * x + c1 * y + 1
    across, down = (a0 * x + a1 * y + a2) / k, (b0 * x + b1 * y + b2) / k
    return across, down, k != 0


def _nearest(place: torch.Tensor) -> torch.Tensor:
    """The nearest whole number; of a half, the one further from zero."""
    return torch.sign(place) * torch.floor(place.abs() + 0.5)


class _Reader:
    """Reads pixels at whole places of [batch, height, width, channels]; the fill value beyond the image."""

    def __init__(self, images: torch.Tensor, fill: torch.Tensor | float) -> None:
        self.images, self.fill = images, fill
        self.batch = torch.arange(len(images), device=images.device)[:, None, None]

    def __call__(self, down: torch.Tensor, across: torch.Tensor) -> torch.Tensor:
        _, height, width, _ = self.images.shape
        inside = (down >= 0) & (down < height) & (across >= 0) & (across < width)
        row, column = down.clamp(0, height - 1).long(), across.clamp(0, width - 1).long()
        found = self.images[self.batch, row, column]
        fill = torch.as_tensor(self.fill, dtype=torch.float32, device=found.device).to(found.dtype)
        return torch.where(inside.unsqueeze(3), found, fill)


def _between(read: _Reader, down: torch.Tensor, across: torch.Tensor, wide: torch.dtype) -> torch.Tensor:
    """Interpolated between the four pixels around each place."""
    top, left = torch.floor(down), torch.floor(across)
    low, right = (down - top).unsqueeze(3).to(wide), (across - left).unsqueeze(3).to(wide)
    upper = (1 - right) * read(top, left).to(wide) + right * read(top, left + 1).to(wide)
    lower = (1 - right) * read(top + 1, left).to(wide) + right * read(top + 1, left + 1).to(wide)
    return (1 - low) * upper + low * lower


def _check(images: torch.Tensor, transforms: torch.Tensor, size: torch.Tensor) -> tuple[int, int]:
    if images.dim() != 4:
        raise invalid(f"Input images must have rank 4, got shape {list(images.shape)}")
    count = len(transforms) if transforms.dim() else 0
    if transforms.dim() != 2 or transforms.shape[1] != 8 or count not in (1, len(images)):
        raise invalid(
            f"Input transform should be num_images x 8 or 1 x 8, got shape {list(transforms.shape)} for "
            f"{len(images)} images"
        )
    if tuple(size.shape) != (2,):
        raise invalid(f"output shape must be 1-dimensional with 2 elements: {list(size.shape)}")
    rows, columns = size.tolist()
    if rows <= 0 or columns <= 0:
        raise invalid(f"output dimensions must be positive, got {[rows, columns]}")
    return rows, columns


def _kernel(node: Node, env: Environment) -> Kernel:
    mode, interpolation = node.attributes["fill_mode"], node.attributes["interpolation"]
    if interpolation not in ("NEAREST", "BILINEAR"):
        raise invalid(f"Invalid interpolation {interpolation}. Supported types: NEAREST, BILINEAR")
    if mode not in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        raise invalid(f"Invalid mode {mode}. Supported types: REFLECT, WRAP, CONSTANT, NEAREST")
    wide = torch.float64 if node.dtype(0) is dtypes.float64 else torch.float32
    is_host, nearest = env.device.type == "cpu", interpolation == "NEAREST"
    native = projection(node.dtype(0).torch, mode, nearest) if is_host else None

    def run(
        images: torch.Tensor, transforms: torch.Tensor, size: torch.Tensor, fill: torch.Tensor | float = 0.0
    ) -> torch.Tensor:
        rows, columns = _check(images, transforms, size)
        batch, height, width, channels = images.shape
        if not images.numel():
            return images.new_zeros((batch, rows, columns, channels))
        if native is not None:
            value = fill if isinstance(fill, torch.Tensor) else torch.tensor(fill)
            return native(images, transforms, (rows, columns), value)
        across, down, known = _places(transforms, rows, columns)
        across, down = (p.nan_to_num(nan=-_FAR).clamp(-_FAR, _FAR) for p in (across, down))
        across, down = _mapped(across, width, mode), _mapped(down, height, mode)
        read = _Reader(images, fill)
        if nearest:
            result = read(_nearest(down), _nearest(across))
        else:
            result = _between(read, down, across, wide).to(images.dtype)
        if bool(known.all()):
            return result
        filled = torch.as_tensor(fill, dtype=torch.float32, device=result.device).to(result.dtype)
        return torch.where(known.unsqueeze(3), result, filled)

    return run


image_projective_transform_v2_op = op(
    "ImageProjectiveTransformV2",
    "images: dtype, transforms: float, output_shape: int32 -> transformed_images: dtype",
    _ATTRIBUTES,
    host=["output_shape"],
    capturable=False,
    cost=20,
)
image_projective_transform_v3_op = op(
    "ImageProjectiveTransformV3",
    "images: dtype, transforms: float, output_shape: int32, fill_value: float -> transformed_images: dtype",
    _ATTRIBUTES,
    host=["output_shape"],
    capturable=False,
    cost=20,
)


def _inverse(transforms: Tensor) -> Tensor:
    """The transforms of the inverse matrices, by the adjugate, divided by its last element."""
    a0, a1, a2, b0, b1, b2, c0, c1 = F.Unpack(transforms, num=8, axis=1)
    last = a0 * b1 - a1 * b0
    numbers = [
        *(b1 - b2 * c1, a2 * c1 - a1, a1 * b2 - a2 * b1),
        *(b2 * c0 - b0, a0 - a2 * c0, a2 * b0 - a0 * b2),
        *(b0 * c1 - b1 * c0, a1 * c0 - a0 * c1),
    ]
    return F.Pack([number / last for number in numbers], axis=1)


def _gradient(op: Operation, dy: Tensor) -> Gradients:
    images, transforms, *_ = op.inputs
    if images.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
        raise TypeError(f"Invalid dtype {images.dtype.name} for the gradient of a projective transform")
    modes = {key: op.attributes[key] for key in ("interpolation", "fill_mode")}
    size = F.Slice(F.Shape(images), [1], [2])
    rest = [F.Cast(0.0, DstT=dtypes.float32)] if op.type.endswith("V3") else []
    dx = getattr(F, op.type)(dy, _inverse(transforms), size, *rest, **modes)
    return (dx, *(None for _ in op.inputs[1:]))


def _complete(declaration: OpDeclaration) -> None:
    declaration.infer(_infer_transformed)
    declaration.kernel(CPU, GPU)(_kernel)
    declaration.gradient(_gradient)


for _declaration in (image_projective_transform_v2_op, image_projective_transform_v3_op):
    _complete(_declaration)
