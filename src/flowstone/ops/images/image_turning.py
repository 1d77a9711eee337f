"""Images flipped, turned and transposed, always or at random.

An image has three dimensions, [height, width, channels], or a batch of images four.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.conditionals import case, cond
from flowstone.ops.images.image_checks import checked_image
from flowstone.ops.randomness.random import random_uniform

_TRANSPOSITIONS = {3: [1, 0, 2], 4: [0, 2, 1, 3]}


def _rank(image: Tensor) -> int:
    """3 or 4; an image of unknown rank counts as one image."""
    rank = 3 if image.dims is None else len(image.dims)
    if rank not in (3, 4):
        raise ValueError(f"'image' must have either 3 or 4 dimensions, has {rank}.")
    return rank


def _of_rank(result: Tensor, image: Tensor) -> Tensor:
    """`result`, which is as `image`; of unknown rank it is said to be one image, as in TensorFlow."""
    result.set_shape((None, None, None) if image.dims is None else image.dims)
    return result


def _flip(image: Any, axis: int, name: str) -> Tensor:
    with get_default_graph().name_scope(name):
        image = checked_image(convert_to_tensor(image, name="image"))
        return _of_rank(F.ReverseV2(image, [_rank(image) - 3 + axis]), image)


def flip_left_right(image: Any) -> Tensor:
    """`image` with its columns in reverse order. ValueError for less than three dimensions."""
    return _flip(image, 1, "flip_left_right")


def flip_up_down(image: Any) -> Tensor:
    """`image` with its rows in reverse order. ValueError for less than three dimensions."""
    return _flip(image, 0, "flip_up_down")


def _random_flip(image: Any, axis: int, seed: int | None, name: str) -> Tensor:
    with get_default_graph().name_scope(name) as scope:
        image = checked_image(convert_to_tensor(image, name="image"))
        if _rank(image) == 3:
            is_flipped = F.Less(random_uniform([], 0.0, 1.0, seed=seed), 0.5)
            result: Tensor = cond(is_flipped, lambda: F.ReverseV2(image, [axis]), lambda: image, name=scope)
            return _of_rank(result, image)
        batch = shape(image)[0]
        chance = F.Reshape(random_uniform([batch], 0.0, 1.0, seed=seed), [batch, 1, 1, 1])
        share = F.Round(chance)
        if share.dtype is not image.dtype:
            share = F.Cast(share, DstT=image.dtype)
        flipped = F.ReverseV2(image, [axis + 1])
        mixed: Tensor = share * flipped + (1 - share) * image
        return mixed


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """`image` as it is or as by `flip_left_right`, equally likely; each image of a batch for itself."""
    return _random_flip(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """`image` as it is or as by `flip_up_down`, equally likely; each image of a batch for itself."""
    return _random_flip(image, 0, seed, "random_flip_up_down")


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """`image` turned `k` times by 90 degrees against the clock; `k` is an integer or an int32 tensor."""
    with get_default_graph().name_scope(name or "rot90") as scope:
        image = checked_image(convert_to_tensor(image, name="image"))
        rank = _rank(image)
        turns = convert_to_tensor(k, "int32", name="k")
        if turns.dims is not None and turns.dims != ():
            raise ValueError(f"Shape must be rank 0 but is rank {len(turns.dims)}")
        ways = _ways(image, rank)
        turns = F.FloorMod(turns, 4)
        result: Tensor = case(
            [(F.Equal(turns, n), ways[n]) for n in (1, 2, 3)], default=ways[0], exclusive=True, name=scope
        )
        result.set_shape((*(image.dims or ())[: rank - 3], None, None, (image.dims or (None,))[-1]))
        return result


def _ways(image: Tensor, rank: int) -> list[Callable[[], Tensor]]:
    """The image turned 0, 1, 2 and 3 times."""
    columns, swap = [rank - 2], _TRANSPOSITIONS[rank]
    return [
        lambda: image,
        lambda: F.Transpose(F.ReverseV2(image, columns), swap, name="transpose"),
        lambda: F.ReverseV2(image, [rank - 3, rank - 2]),
        lambda: F.ReverseV2(F.Transpose(image, swap, name="transpose"), columns),
    ]


def transpose(image: Any, name: str | None = None) -> Tensor:
    """`image` with rows as columns. ValueError for ranks other than 3 and 4."""
    with get_default_graph().name_scope(name or "transpose"):
        image = checked_image(convert_to_tensor(image, name="image"))
        return F.Transpose(image, _TRANSPOSITIONS[_rank(image)], name="transpose")


def transpose_image(image: Any, name: str | None = None) -> Tensor:
    """`transpose` by its old name."""
    return transpose(image, name)
