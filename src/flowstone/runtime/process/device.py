"""Devices of this process: lists them, and checks the devices that nodes request."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import CPU, GPU, Environment
from flowstone.framework.graphs.device_name import DeviceSpec
from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.runtime.process.device_types import MemoryStatistics, device_types, memory_of


class Device(NamedTuple):
    """One device: its full name, its type, torch's device (the host's for a registered type), the bytes that
    it may hold (None: no limit), its speed relative to a usual device of its type, its number in the type."""

    name: str
    device_type: str
    torch: torch.device
    memory_limit: int | None = None
    relative_speed: float = 1.0
    number: int = 0

    @property
    def incarnation(self) -> int:
        """A number, never 0, that differs from process to process."""
        return _incarnation(self.name)

    @property
    def memory_limit_bytes(self) -> int:
        """The bytes it may hold; for a CPU without a limit, the machine's memory."""
        return _machine_memory() if self.memory_limit is None else self.memory_limit

    def statistics(self) -> MemoryStatistics:
        """What it holds, as far as that is counted. A GPU's figures are torch's of this process, a registered
        type's its own. CPU devices share one heap, which is not counted by device: their figures are the
        process's resident memory and its peak, with the number of allocations unknown. These figures cost a
        step nothing.
        """
        if self.device_type == CPU:
            return _process_memory()
        if self.device_type == GPU:
            counts = torch.cuda.memory_stats(self.torch)
            return MemoryStatistics(
                torch.cuda.memory_allocated(self.torch),
                torch.cuda.max_memory_allocated(self.torch),
                self.memory_limit,
                counts.get("allocation.all.allocated", 0),
            )
        return memory_of(self.device_type, self.number).statistics()

    def environment(self, resources: ResourceStore, states: dict[str, Any]) -> Environment:
        """What kernels of one session may know of this device."""
        memory = None if self.device_type in (CPU, GPU) else memory_of(self.device_type, self.number)
        return Environment(self.device_type, self.torch, resources, states, memory, self.name)


LOCALHOST = "/job:localhost/replica:0/task:0"


def local_devices(
    device_count: Any = None, gpu_memory_fraction: float = 0.0, task: str = LOCALHOST
) -> list[Device]:
    """The devices a session may use: CPUs, every GPU torch sees, and those of registered types.

    `device_count` maps a type to the number wanted (ConfigProto.device_count); `gpu_memory_fraction` is the
    share of each GPU's memory that the process may use (0: all); `task` is that of this process in its
    cluster.
    """
    wanted = dict(device_count or {})
    prefix = f"{task}/device:"
    cpus = max(1, wanted.get(CPU, 1))
    devices = [Device(f"{prefix}CPU:{i}", CPU, _HOST, number=i) for i in range(cpus)]
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for i in range(min(gpus, wanted.get(GPU, gpus))):
        memory = torch.cuda.get_device_properties(i).total_memory
        if gpu_memory_fraction:
            torch.cuda.set_per_process_memory_fraction(gpu_memory_fraction, i)
            memory = int(memory * gpu_memory_fraction)
        devices.append(Device(f"{prefix}GPU:{i}", GPU, torch.device("cuda", i), memory, number=i))
    for kind in device_types():
        for i in range(min(kind.count(), wanted.get(kind.name, kind.count()))):
            limit = memory_of(kind.name, i).statistics().limit_bytes
            name = f"{prefix}{kind.name}:{i}"
            devices.append(Device(name, kind.name, _HOST, limit, kind.relative_speed, i))
    return devices


_HOST = torch.device("cpu")


@cache
def _incarnation(name: str) -> int:
    return random.SystemRandom().getrandbits(62) + 1


@cache
def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _process_memory() -> MemoryStatistics:
    """From the kernel's account of this process; unknown where there is no /proc."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return MemoryStatistics(limit_bytes=_machine_memory())
    found = {
        words[0]: int(words[1]) * 1024
        for line in status.splitlines()
        if (words := line.split())[2:] == ["kB"]
    }
    return MemoryStatistics(found.get("VmRSS:"), found.get("VmHWM:"), _machine_memory())


def default_device(devices: Sequence[Device]) -> Device:
    """The device of nodes that request none: a GPU if there is one."""
    return next((device for device in devices if device.device_type == GPU), devices[0])


def needs_placement(nodes: list[PlanNode], devices: Sequence[Device]) -> bool:
    """Whether there is anything to decide: several devices of one type, or requests among several devices.

    With one GPU and the host, the GPU runs every node without a request; its plans keep host values on the
    host (`memory.py`). Devices of registered types, which lack kernels, always take part.
    """
    if len(devices) == 1:
        return False
    types = [device.device_type for device in devices]
    if len(set(types)) < len(types) or not {CPU, GPU}.issuperset(types):
        return True
    return any(node.device for node in nodes)


def is_divided(used: Iterable[Device]) -> bool:
    """Whether a step on these devices is divided into parts: there are several, or one of a registered
    type."""
    types = [device.device_type for device in used]
    return len(types) > 1 or not {CPU, GPU}.issuperset(types)


def check_requested(nodes: list[PlanNode], devices: Sequence[Device], soft_placement: bool) -> None:
    """Raises InvalidArgumentError for a node whose requested device does not exist (unless placement is
    soft).
    """
    names = tuple(device.name for device in devices)
    for node in nodes:
        if node.device and not _exists(node.device, names, soft_placement):
            raise errors.InvalidArgumentError(
                lambda node=node: node.origin.node_def,
                node.origin,
                f"Cannot assign a device for operation {node.name}: Operation was explicitly assigned to "
                f"{node.device} but available devices are [ {', '.join(names)} ]. Make sure the device "
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
