"""Which inputs and outputs of an op are images."""

from __future__ import annotations

from typing import NamedTuple


class Images(NamedTuple):
    """Positions: of the `inputs` and `outputs` that are images, in the order of dimensions that the attribute
    ``data_format`` says; of the input that is the `shape` of such an image, and of the `filter`.
    """

    inputs: tuple[int, ...] = (0,)
    outputs: tuple[int, ...] = (0,)
    shape: int | None = None
    filter: int | None = None
