"""Devices of a cluster's tasks, as placement and the messages of servers know them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.runtime.process.device import Device

__all__ = ["ClusterDevice", "attributes_of", "device_of"]


class ClusterDevice(NamedTuple):
    """A device of some task: its full name, type, memory limit in bytes for placement (None: not limited),
    the incarnation, a number that its process chose when it began, and the bytes of memory that it has."""

    name: str
    device_type: str
    memory_limit: int | None
    incarnation: int
    memory_limit_bytes: int = 0
    relative_speed: float = 1.0
    torch: torch.device = torch.device("cpu")
    number: int = 0


def attributes_of(device: Device | ClusterDevice, message: Any) -> None:
    """Fills a DeviceAttributes message."""
    message.name, message.device_type = device.name, device.device_type
    message.memory_limit, message.incarnation = device.memory_limit_bytes, device.incarnation
    if isinstance(device, Device) and device.device_type == GPU:
        message.physical_device_desc = (
            f"device: {device.number}, name: {torch.cuda.get_device_name(device.torch)}"
        )


def device_of(message: Any) -> ClusterDevice:
    """The device that a DeviceAttributes message describes; a CPU's memory does not limit placement."""
    limit = None if message.device_type == CPU else message.memory_limit or None
    return ClusterDevice(message.name, message.device_type, limit, message.incarnation, message.memory_limit)
