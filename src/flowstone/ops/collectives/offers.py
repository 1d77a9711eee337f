"""`Offer`: what one node brings to a collective operation."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import torch

__all__ = ["BROADCAST", "EXCHANGE", "GATHER", "REDUCE", "SCATTER", "Offer", "gpu_identity"]

REDUCE, GATHER, BROADCAST, SCATTER, EXCHANGE = "reduce", "gather", "broadcast", "scatter", "exchange"


class Offer(NamedTuple):
    """What a node brings: the kind of the operation; the keys and the number of members of its group; the
    member that it is (its device's name, for most kinds); the name of the node; type and shape of its value,
    how values are merged ("sum", "product", "min", "max"), and whether
    the result is divided by the number of members; whether it is the source, of a broadcast;
    whether the value stays with its member, who exchanges it with the others; the value; torch's device that
    it is on; that device's identity among all GPUs, if values are to go from GPU to GPU."""

    kind: str
    group: Hashable
    size: int
    instance: Hashable
    member: str
    node: str
    dtype: str
    dims: tuple[int, ...]
    merge: str = ""
    is_mean: bool = False
    is_source: bool = False
    stays: bool = False
    value: Any = None
    device: Any = None
    gpu: str = ""


def gpu_identity(device: torch.device) -> str:
    """Which GPU of all machines' this is; "" for the host."""
    return str(torch.cuda.get_device_properties(device).uuid) if device.type == "cuda" else ""
