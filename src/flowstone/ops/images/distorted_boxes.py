"""Random crops: of a size that is given, or of random sizes and aspect ratios that still show an object.

The random sequences are those of `randomness.random`, and with a seed as an input those of `philox`; they are
not TensorFlow's. Attempts are drawn many at once, and the first that meets the demands counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from flowstone.framework import errors
from flowstone.framework.kernel import CPU, Environment, Kernel
from flowstone.framework.node import Node
from flowstone.framework.operation import Shapes, op
from flowstone.framework.scope import get_default_graph
from flowstone.framework.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.op_seeds import SEEDS, generator_of
from flowstone.ops.randomness.stateless import state_of_seed

_AT_ONCE = 256  # attempts


class Demands(NamedTuple):
    """What a crop must fulfil; the ranges are (least, greatest), areas in shares of the image."""

    ratios: tuple[float, float]  # width / height
    areas: tuple[float, float]
    covered: float  # the least share of some object
    attempts: int
    allows_no_object: bool


def _pair(values: list[float], what: str, greatest: float) -> tuple[float, float]:
    if len(values) != 2:
        raise invalid(f"{what} field must specify 2 dimensions, got {values}")
    low, high = values
    if not (0 < low <= greatest and 0 < high <= greatest):
        raise invalid(f"{what} must be positive and at most {greatest}: {values}")
    return low, high


def _demands(node: Node, covered: float) -> Demands:
    a = node.attributes
    if a["max_attempts"] <= 0:
        raise invalid(f"Max attempts must be positive: {a['max_attempts']}")
    if not covered >= 0:
        raise invalid(f"Min object covered must be non-negative: {covered}")
    return Demands(
        _pair(list(a["aspect_ratio_range"]), "Aspect ratio range", math.inf),
        _pair(list(a["area_range"]), "Area range", 1.0),
        covered,
        a["max_attempts"],
        a["use_image_if_no_bounding_boxes"],
    )


def _image_size(size: torch.Tensor) -> tuple[int, int]:
    if size.dim() != 1:
        raise invalid(f"image_size must be 1-dimensional: {list(size.shape)}")
    if len(size) != 3:
        raise invalid(f"image_size must contain 3 elements: {list(size.shape)}")
    height, width, _ = size.tolist()
    if height < 0 or width < 0:
        raise invalid(f"Image height and width must not be negative, got {height} and {width}")
    return height, width


def _objects(boxes: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """The boxes in pixels, [n, 4]: y1, x1, y2, x2."""
    if boxes.dim() != 3:
        raise invalid(f"input boxes must be 3-dimensional [batch, num_boxes, coords]: {list(boxes.shape)}")
    if boxes.shape[2] != 4:
        raise invalid(f"bounding boxes must have shape [4], got {list(boxes.shape)}")
    flat = boxes.reshape(-1, 4)
    if not bool(((flat >= 0) & (flat <= 1)).all()):
        raise invalid(f"All bounding box coordinates must be in [0.0, 1.0]: {flat.tolist()}")
    return (flat * torch.tensor([height, width, height, width])).long()


def _attempts(count: int, sizes: tuple[int, int], demands: Demands, draw: Callable[..., Any]) -> torch.Tensor:
    """Random crops that fit the image and have an allowed area, [at most `count`, 4]: y, x, height, width."""
    height, width = sizes
    random = draw(count, 4)
    low, high = demands.ratios
    ratio = low + random[:, 0] * (high - low)
    least, most = (share * height * width for share in demands.areas)
    shortest, tallest = torch.round((least / ratio).sqrt()), torch.round((most / ratio).sqrt())
    fitting = torch.floor((width + 0.5 - 1e-7) / ratio)
    tallest = torch.minimum(tallest, fitting).clamp_(max=height)
    shortest = torch.minimum(shortest, tallest)
    rows = shortest + torch.floor(random[:, 1] * (tallest - shortest + 1))
    rows = torch.where(rows * torch.round(rows * ratio) < least, rows + 1, rows)
    rows = torch.where(rows * torch.round(rows * ratio) > most, rows - 1, rows)
    columns = torch.round(rows * ratio)
    area = rows * columns
    fits = (rows > 0) & (columns > 0) & (rows <= height) & (columns <= width)
    fits &= (area >= least) & (area <= most)
    top = torch.floor(random[:, 2] * (height - rows + 1))
    left = torch.floor(random[:, 3] * (width - columns + 1))
    return torch.stack([top, left, rows, columns], 1)[fits].long()


def _shows_object(crops: torch.Tensor, objects: torch.Tensor, covered: float) -> torch.Tensor:
    """Whether each crop has at least this share of one of the objects."""
    top, left, rows, columns = crops.unsqueeze(2).unbind(1)
    y1, x1, y2, x2 = objects.unbind(1)
    high = (torch.minimum(top + rows, y2) - torch.maximum(top, y1)).clamp_(min=0)
    wide = (torch.minimum(left + columns, x2) - torch.maximum(left, x1)).clamp_(min=0)
    area = (y2 - y1) * (x2 - x1)
    share = (high * wide).double() / area.clamp(min=1)
    return ((share >= covered) & (area > 0)).any(1)


def _crop(
    sizes: tuple[int, int], objects: torch.Tensor, demands: Demands, draw: Callable[..., Any]
) -> list[int]:
    """y, x, height and width of the first attempt that meets the demands, or of the whole image."""
    if 0 in sizes:
        return [0, 0, *sizes]
    if not len(objects):
        if not demands.allows_no_object:
            raise invalid(
                "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you "
                "wish to not provide any bounding boxes."
            )
        objects = torch.tensor([[0, 0, *sizes]])
    for start in range(0, demands.attempts, _AT_ONCE):
        crops = _attempts(min(_AT_ONCE, demands.attempts - start), sizes, demands, draw)
        crops = crops[_shows_object(crops, objects, demands.covered)]
        if len(crops):
            return crops[0].tolist()
    return [0, 0, *sizes]


def _sample(
    size: torch.Tensor, boxes: torch.Tensor, demands: Demands, draw: Callable[..., Any]
) -> list[torch.Tensor]:
    height, width = sizes = _image_size(size)
    top, left, rows, columns = _crop(sizes, _objects(boxes, height, width), demands, draw)
    edges = torch.tensor([top, left, top + rows, left + columns], dtype=torch.float32)
    box = edges / torch.tensor([height, width, height, width])
    begin = torch.tensor([top, left, 0], dtype=size.dtype)
    extent = torch.tensor([rows, columns, -1]).to(size.dtype)
    return [begin, extent, box.view(1, 1, 4)]


def _drawing(node: Node, env: Environment) -> Callable[..., Any]:
    generator = generator_of(node, env)
    return lambda *shape: torch.rand(*shape, generator=generator, dtype=torch.float64)


_TYPES = "T: type in [uint8, int8, int16, int32, int64]"
_RANGES = (
    "aspect_ratio_range: list(float) = [0.75, 1.33] ; area_range: list(float) = [0.05, 1] ; "
    "max_attempts: int = 100 ; use_image_if_no_bounding_boxes: bool = false"
)
_RESULTS = "begin: T, size: T, bboxes: float"


def _infer_sample(node: Node) -> Shapes:
    sizes, boxes = require_rank(node.dims(0), 1), require_rank(node.dims(1), 3)
    if sizes[0] not in (None, 3):
        raise ValueError(f"Dimension must be 3 but is {sizes[0]}")
    if boxes[2] not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {boxes[2]}")
    if len(node.inputs) > 2:
        require_rank(node.dims(2), 0)
    return [(3,), (3,), (1, 1, 4)]


# Sizes and places are the host's, as in TensorFlow: these have no GPU kernel.
sample_distorted_bounding_box_op = op(
    "SampleDistortedBoundingBox",
    f"image_size: T, bounding_boxes: float -> {_RESULTS}",
    f"{_TYPES} ; {SEEDS} ; min_object_covered: float = 0.1 ; {_RANGES}",
    stateful=True,
)
sample_distorted_bounding_box_v2_op = op(
    "SampleDistortedBoundingBoxV2",
    f"image_size: T, bounding_boxes: float, min_object_covered: float -> {_RESULTS}",
    f"{_TYPES} ; {SEEDS} ; {_RANGES}",
    stateful=True,
)
stateless_sample_distorted_bounding_box_op = op(
    "StatelessSampleDistortedBoundingBox",
    f"image_size: T, bounding_boxes: float, min_object_covered: float, seed: Tseed -> {_RESULTS}",
    f"{_TYPES} ; Tseed: type in [int32, int64] ; {_RANGES}",
)
for _declaration in (
    sample_distorted_bounding_box_op,
    sample_distorted_bounding_box_v2_op,
    stateless_sample_distorted_bounding_box_op,
):
    _declaration.infer(_infer_sample)
    _declaration.not_differentiable()


@sample_distorted_bounding_box_op.kernel(CPU)  # a box is four numbers, drawn until one fits
def _(node: Node, env: Environment) -> Kernel:
    draw = _drawing(node, env)
    covered = node.attributes["min_object_covered"]
    return lambda size, boxes: _sample(size, boxes, _demands(node, covered), draw)


@sample_distorted_bounding_box_v2_op.kernel(CPU)  # a box is four numbers, drawn until one fits
def _(node: Node, env: Environment) -> Kernel:
    draw = _drawing(node, env)

    def run(size: torch.Tensor, boxes: torch.Tensor, covered: torch.Tensor) -> list[torch.Tensor]:
        if covered.dim():
            raise invalid(f"min_object_covered must be 0-D, got {list(covered.shape)}")
        return _sample(size, boxes, _demands(node, float(covered)), draw)

    return run


@stateless_sample_distorted_bounding_box_op.kernel(CPU)  # a box is four numbers, drawn until one fits
def _(node: Node, env: Environment) -> Kernel:
    def run(
        size: torch.Tensor, boxes: torch.Tensor, covered: torch.Tensor, seed: torch.Tensor
    ) -> list[torch.Tensor]:
        if covered.dim():
            raise invalid(f"min_object_covered must be 0-D, got {list(covered.shape)}")
        state = state_of_seed(seed)

        def draw(rows: int, columns: int) -> torch.Tensor:
            nonlocal state
            values = philox.uniform(state, rows * columns, torch.float64, seed.device)
            state = state.skipped(rows * columns)
            return values.view(rows, columns)

        return _sample(size, boxes, _demands(node, float(covered)), draw)

    return run


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = None,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """A random crop of an image that shows enough of an object: a named tuple (begin, size, bboxes).

    `image_size`: three integers, height, width and channels. `bounding_boxes`: the objects, float32
    [batch, n, 4] of ``[y1, x1, y2, x2]`` in [0, 1]. The crop has at least `min_object_covered` (0.1) of one
    object, a ratio of width to height in `aspect_ratio_range` (0.75, 1.33) and a share of the image in
    `area_range` (0.05, 1), or is the whole image after `max_attempts` (100). Without objects,
    `use_image_if_no_bounding_boxes` says that the image is one; else InvalidArgumentError, as for boxes and
    ranges that cannot be. The graph's seed has no influence, these two have. `begin` and `size` are for
    `tf.slice`; `bboxes` [1, 1, 4] is the crop as a box.
    """
    given = {
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "max_attempts": max_attempts,
        "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes,
    }
    attributes = {key: value for key, value in given.items() if value is not None}
    with get_default_graph().name_scope(name or "sample_distorted_bounding_box"):
        return sample_distorted_bounding_box_v2_op.several(
            image_size,
            bounding_boxes,
            0.1 if min_object_covered is None else min_object_covered,
            seed=seed or 0,
            seed2=seed2 or 0,
            **attributes,
        )


# ---- of a given size

random_crop_op = op(
    "RandomCrop",
    "image: T, size: int64 -> output: T",
    f"T: type in [uint8, int8, int16, int32, int64, float, double] ; {SEEDS}",
    stateful=True,
    host=["size"],
    deprecated=(8, "tf.random_crop"),
)
random_crop_op.not_differentiable()


@random_crop_op.infer
def _(node: Node) -> Dims:
    channels = require_rank(node.dims(0), 3)[2]
    size = node.constant_dims(1)
    if size is not None and len(size) != 2:
        raise ValueError(f"Dimension must be 2 but is {len(size)}")
    return (*(size or (None, None)), channels)


@random_crop_op.kernel(CPU)  # a box is four numbers, drawn until one fits
def _(node: Node, env: Environment) -> Kernel:
    draw = _drawing(node, env)

    def run(image: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        if image.dim() != 3:
            raise invalid(f"input must be 3-dimensional [height, width, channels]: {list(image.shape)}")
        if tuple(size.shape) != (2,):
            raise invalid(f"size must be a vector of size 2 (height, width): {list(size.shape)}")
        wanted = size.tolist()
        for what, length, count in zip(("height", "width"), image.shape, wanted):
            if count < 0:
                raise invalid(f"{what} must not be negative, got {count}")
            if count > length:
                raise errors.FailedPreconditionError(None, None, f"{what} must be <= {length}, got {count}")
        spans = zip(image.shape, wanted, draw(2).tolist())
        for axis, (length, count, share) in enumerate(spans):
            image = image.narrow(axis, int(share * (length - count + 1)), count)
        return image.clone(memory_format=torch.contiguous_format)

    return run
