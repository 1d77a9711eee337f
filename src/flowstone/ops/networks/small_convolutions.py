"""Convolutions of few small images, and both their gradients, on a host: sums of products in machine code.

A call of oneDNN costs tens of microseconds, whatever it convolves. Where the native tier's own sums
(`network_code.direct_windows`) take less, `lowering/convolutions/direct.py` marks the node as `direct`. What
is not finite where images are padded is computed as ever: the zeros around images are part of the sums here.

    [1, 16, 16, 8] to 8 channels, 3 x 3: 16 us by ATen's call, so 9; its gradients 19 and 17, so 10 and 8
    [1, 64, 64, 3] to 16 channels, 3 x 3: 165 us, so 45
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.machine import network_code
from flowstone.framework.machine.network_code import Windows
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.networks.convolution_arrangement import Arrangement

__all__ = ["small_convolution", "windows_of"]

_OPERANDS = {"results": (0, 1), "images": (2, 1), "filter": (0, 2)}
"""Which inputs of a node are images, or their gradient, and what these are multiplied by."""


def windows_of(seen: Arrangement, dtype: Any) -> Windows | None:
    """Where the windows of a convolution of this type lie; None where it is of another kind, or a product of
    matrices."""
    geometry = seen.geometry
    if dtype is not dtypes.float32 or not geometry.last or geometry.rank != 4 or seen.groups > 1:
        return None
    if set(seen.kernel[:2]) == {1}:
        return None
    return Windows(
        images=tuple(seen.image),  # type: ignore[arg-type]
        taps=_pair(seen.kernel[:2]),
        outputs=seen.kernel[3],
        counts=(seen.image[0], *_pair(seen.counts)),
        strides=_pair(seen.strides),
        dilations=_pair(seen.dilations),
        before=_pair(seen.before),
    )


def small_convolution(
    node: Node,
    kind: str,
    seen: Arrangement,
    usual: Callable[[], Any],
    biased: bool = False,
    rectified: bool = False,
) -> Callable[..., torch.Tensor] | None:
    """The kernel of a convolution ("results"), or of its gradient by "images" or "filter", that is marked for
    machine code; with a bias for its third input, and with Relu. `usual` makes the kernel that computes the
    same otherwise."""
    windows = windows_of(seen, node.outputs[0].dtype) if node.attributes.get("direct") else None
    direct = None if windows is None else network_code.direct_windows(kind, windows, biased, rectified)
    if direct is None:
        return None
    operands = (0, 1, 2) if biased else _OPERANDS[kind]
    dims = {
        "results": seen.result_dims(seen.given_counts),
        "images": seen.given_image,
        "filter": seen.given_kernel,
    }[kind]

    def run(*inputs: torch.Tensor) -> torch.Tensor:
        found = direct(*[inputs[i] for i in operands])
        if found is None:
            result: torch.Tensor = usual()(*inputs)
            return result
        return found if found.shape == dims else found.view(dims)

    return run


def _pair(numbers: Any) -> tuple[int, int]:
    first, second = numbers
    return first, second
