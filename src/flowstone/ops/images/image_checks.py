"""What functions of images ask of their arguments: while the graph is built if they can, else in a step."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.packing import unstack
from flowstone.ops.arrays.shapes import rank as rank_of
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.checks import assert_greater_equal, assert_positive
from flowstone.ops.control.conditionals import Assert
from flowstone.ops.control.control_flow import with_dependencies


def require_image(image: Tensor) -> list[Operation]:
    """The checks that are left to the step: that `image` has three dimensions or more, and none of them is 0.

    ValueError if it is known that it has not.
    """
    dims = image.dims
    if dims is not None and len(dims) < 3:
        raise ValueError("'image' must be at least three-dimensional.")
    if dims is not None and 0 in dims:
        raise ValueError(f"all dims of 'image.shape' must be > 0: {dims}")
    if dims is not None and None not in dims:
        return []
    message = ["all dims of 'image.shape' must be > 0."]
    positive = assert_positive(F.Shape(image), message)
    return [
        positive,
        assert_greater_equal(rank_of(image), 3, message="'image' must be at least three-dimensional."),
    ]


def checked_image(image: Tensor) -> Tensor:
    """`image`, available after the checks of `require_image`."""
    result: Tensor = with_dependencies(require_image(image), image)
    return result


def require(condition: Any, message: str) -> list[Operation]:
    """A check left to the step if `condition` is a tensor; ValueError if it is False."""
    if isinstance(condition, Tensor):
        return [Assert(condition, [message])]
    if not condition:
        raise ValueError(message)
    return []


def sizes_of(images: Tensor, rank: int) -> list[Any]:
    """One number, or a scalar tensor where it is unknown, for each of `rank` dimensions."""
    dims = (None,) * rank if images.dims is None else images.dims
    if len(dims) != rank:
        raise ValueError(f"Shape {images.shape} must have rank {rank}")
    if None not in dims:
        return list(dims)
    dynamic = unstack(shape(images), rank)
    return [dynamic[i] if n is None else n for i, n in enumerate(dims)]


def known_sizes(sizes: list[Any]) -> Dims:
    """The sizes that are numbers, None for the others."""
    return tuple(None if isinstance(n, Tensor) else int(n) for n in sizes)


def as_batch(images: Tensor, what: str = "image") -> tuple[Tensor, int | None]:
    """Images of four dimensions, and the rank that was given; an image becomes a batch of one.

    Of unknown rank it is taken for one image. ValueError for other ranks.
    """
    if images.dims is None:
        batch = F.ExpandDims(images, 0)
        batch.set_shape((None,) * 4)
        return batch, None
    if len(images.dims) == 3:
        return F.ExpandDims(images, 0), 3
    if len(images.dims) != 4:
        raise ValueError(f"'{what}' must have either 3 or 4 dimensions.")
    return images, 4
