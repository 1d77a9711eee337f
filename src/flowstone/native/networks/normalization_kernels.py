"""Batch normalisation in machine code, as functions of tensors (`normalization_code.py`).

Images have their channels last and are contiguous float32 on a host, as is all else. What a plan first asks
for is compiled on a thread (`prepare`); what is called before it is there waits.
"""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.networks.normalization_code import FACTORS, PLACES, WORDS, normalization_code

__all__ = ["Moments", "differentiate", "normalize", "prepare"]

_WORK = 8  # of an element, in additions


class Moments(NamedTuple):
    """Of each channel: the mean, the variance, and that with Bessel's correction."""

    mean: torch.Tensor
    variance: torch.Tensor
    corrected: torch.Tensor


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: normalization_code(host.lanes()), WORDS, PLACES)


def prepare(elements: float, activation: str, has_more: bool = False, is_gradient: bool = False) -> None:
    """Has the function compiled that `normalize`, or else `differentiate`, calls for so many elements."""
    name = _gradient(activation) if is_gradient else _forward(activation, has_more)
    _library().prepare(name, waits=elements >= machine.current().profile.normalization_much)


def _forward(activation: str, has_more: bool) -> str:
    return f"normalize{activation}{'_sum' if has_more else ''}"


def _gradient(activation: str) -> str:
    return f"differentiate{activation}"


def _words(x: torch.Tensor, epsilon: float) -> dict[str, int]:
    channels, lanes = x.shape[-1], host.lanes()
    has_team = x.numel() * _WORK >= machine.current().profile.native_team
    return {
        "threads": torch.get_num_threads() if has_team else 1,
        "rows": x.numel() // channels, "channels": channels,
        "wide_channels": -(-channels // lanes) * lanes,
        "epsilon": struct.unpack("<q", struct.pack("<d", epsilon))[0],
    }  # fmt: skip


def _scratch(words: dict[str, int]) -> dict[str, torch.Tensor]:
    wide = words["wide_channels"]
    sums = torch.zeros(2 * words["threads"] * wide, dtype=torch.float64)
    return {"sums": sums, "factors": torch.empty(FACTORS * wide)}


def normalize(
    x: torch.Tensor,
    scale: torch.Tensor,
    offset: torch.Tensor,
    epsilon: float,
    activation: str = "",
    added: torch.Tensor | None = None,
    y: torch.Tensor | None = None,
) -> tuple[torch.Tensor, Moments]:
    """The images of the batch, normalised, scaled and offset, with what is added and the activation; in `y`,
    which may be the images or what is added.
    """
    words, y = _words(x, epsilon), torch.empty_like(x) if y is None else y
    moments = Moments(*[torch.empty_like(scale) for _ in range(3)])
    places = {
        "x": x, "scale": scale, "offset": offset, "added": x if added is None else added, "y": y,
        **moments._asdict(), **_scratch(words),
    }  # fmt: skip
    _library().call(_forward(activation, added is not None), words, places)
    return y, moments


def differentiate(
    dy: torch.Tensor,
    x: torch.Tensor,
    scale: torch.Tensor,
    offset: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
    epsilon: float,
    activation: str = "",
    dx: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients by the images, the scale and the offset, from that by what `normalize` gave with this
    activation and nothing added; the first in `dx`, which may be `dy` or `x`.
    """
    words, dx = _words(x, epsilon), torch.empty_like(x) if dx is None else dx
    d_scale, d_offset = torch.empty_like(scale), torch.empty_like(scale)
    places = {
        "dy": dy, "x": x, "scale": scale, "offset": offset, "mean": mean, "variance": variance, "dx": dx,
        "d_scale": d_scale, "d_offset": d_offset, **_scratch(words),
    }  # fmt: skip
    _library().call(_gradient(activation), words, places)
    return dx, d_scale, d_offset
