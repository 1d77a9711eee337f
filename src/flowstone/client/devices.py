"""`list_local_devices`: what programs ask `tensorflow.python.client.device_lib` for."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import GPU
from flowstone.runtime.process.device import Device, local_devices

__all__ = ["DeviceAttributes", "list_local_devices"]


class DeviceAttributes(NamedTuple):
    """A device of this process: its short `name`, `device_type`, `memory_limit` in bytes, `incarnation` (a
    number that differs from process to process), and `physical_device_desc`, which describes a GPU."""

    name: str
    device_type: str
    memory_limit: int
    incarnation: int
    physical_device_desc: str = ""

    def __str__(self) -> str:
        lines = [f'name: "{self.name}"', f'device_type: "{self.device_type}"']
        lines += [f"memory_limit: {self.memory_limit}", f"incarnation: {self.incarnation}"]
        if self.physical_device_desc:
            lines.append(f'physical_device_desc: "{self.physical_device_desc}"')
        return "\n".join([*lines, ""])


def list_local_devices(session_config: Any = None) -> list[DeviceAttributes]:
    """The devices of this process. `session_config`: a ConfigProto, whose `device_count` counts."""
    devices = local_devices(None if session_config is None else session_config.device_count)
    return [
        DeviceAttributes(
            device.name[device.name.index("/device:") :],
            device.device_type,
            device.memory_limit_bytes,
            device.incarnation,
            _description(device),
        )
        for device in devices
    ]


def _description(device: Device) -> str:
    if device.device_type != GPU:
        return ""
    properties = torch.cuda.get_device_properties(device.torch)
    capability = f"{properties.major}.{properties.minor}"
    return f"device: {device.number}, name: {properties.name}, compute capability: {capability}"
