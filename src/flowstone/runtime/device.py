"""Devices of this process: which there are, and whether a node's requested device can be had."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch

from flowstone.framework import errors
from flowstone.framework.device_name import DeviceSpec
from flowstone.framework.kernel import CPU, GPU
from flowstone.framework.subgraph import PlanNode


class Device(NamedTuple):
    """One device: its full name, its type, torch's device, the bytes it may hold (None: nobody counts), and
    its speed beside a usual device of its type."""

    name: str
    device_type: str
    torch: torch.device
    memory_limit: int | None = None
    relative_speed: float = 1.0


def local_devices(device_count: Any = None) -> list[Device]:
    """The devices a session may use; `device_count` maps a type to the number wanted
    (ConfigProto.device_count).
    """
    wanted = dict(device_count or {})
    prefix = "/job:localhost/replica:0/task:0/device:"
    cpus = max(1, wanted.get(CPU, 1))
    devices = [Device(f"{prefix}CPU:{i}", CPU, torch.device("cpu")) for i in range(cpus)]
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for i in range(min(gpus, wanted.get(GPU, gpus))):
        memory = torch.cuda.get_device_properties(i).total_memory
        devices.append(Device(f"{prefix}GPU:{i}", GPU, torch.device("cuda", i), memory))
    return devices


def default_device(devices: list[Device]) -> Device:
    """Where nodes run that ask for nothing: a GPU if there is one."""
    return next((device for device in devices if device.device_type != CPU), devices[0])


def needs_placement(nodes: list[PlanNode], devices: list[Device]) -> bool:
    """Whether there is anything to decide: several devices of one type, or requests among several devices.

    A GPU alone with the host runs everything that asks for nothing; its plans keep on the host what belongs
    there (`memory.py`).
    """
    if len(devices) == 1:
        return False
    types = [device.device_type for device in devices]
    return len(set(types)) < len(types) or any(node._device for node in nodes)


def check_requested(nodes: list[PlanNode], devices: list[Device], soft_placement: bool) -> None:
    """Raises InvalidArgumentError for a node whose requested device does not exist (unless placement is
    soft).
    """
    names = tuple(device.name for device in devices)
    for node in nodes:
        if node._device and not _exists(node._device, names, soft_placement):
            raise errors.InvalidArgumentError(
                lambda node=node: node.origin.node_def,
                node.origin,
                f"Cannot assign a device for operation {node.name}: Operation was explicitly assigned to "
                f"{node._device} but available devices are [ {', '.join(names)} ]. Make sure the device "
                "specification refers to a valid device.",
            )


@lru_cache(maxsize=1024)
def _exists(requested: str, names: tuple[str, ...], soft_placement: bool) -> bool:
    want = DeviceSpec.from_string(requested)
    for name in names:
        have = DeviceSpec.from_string(name)
        fields = ["job", "replica", "task"]
        if not soft_placement:
            fields += ["device_type", "device_index"]
        if all(getattr(want, f) in (None, getattr(have, f)) for f in fields):
            return True
    return False
