"""What placement needs to know of a device, and of the link between two.

A device is anything with the four attributes of `PlacementDevice`. Among devices that suit a node equally,
GPUs come first and CPUs last; devices of one type keep their order. A `Link` says how long a tensor takes
from one device to another. `default_link` guesses it from the devices' names: CPU devices of one process
share memory, so only the hand-over to another thread takes time; other devices copy over a bus; different
tasks are connected by a network.

>>> cpu = SimulatedDevice("/job:w/replica:0/task:0/device:CPU:0", "CPU")
>>> gpu = SimulatedDevice("/job:w/replica:0/task:0/device:GPU:0", "GPU", memory_limit=2**34)
>>> by_priority([cpu, gpu])
[1, 0]
>>> default_link(cpu, gpu).time_us(12_000_000)
1010.0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from flowstone.framework.declarations.kernel import CPU, GPU
from flowstone.framework.graphs.device_name import DeviceSpec


class PlacementDevice(Protocol):
    """A device as placement sees it.

    `name` is its full name; `device_type` that of its kernels; `memory_limit` the bytes it may hold, None for
    no limit; `relative_speed` how much faster it is than a usual device of its type (1.0).
    """

    @property
    def name(self) -> str:
        """The full name, such as ``/job:localhost/replica:0/task:0/device:CPU:0``."""

    @property
    def device_type(self) -> str:
        """The type whose kernels it runs."""

    @property
    def memory_limit(self) -> int | None:
        """The bytes that it may hold, or None."""

    @property
    def relative_speed(self) -> float:
        """Its speed relative to a usual device of its type."""


class SimulatedDevice(NamedTuple):
    """A device that exists only in a simulation; see `PlacementDevice` for the fields."""

    name: str
    device_type: str = CPU
    memory_limit: int | None = None
    relative_speed: float = 1.0


class Link(NamedTuple):
    """The connection of two devices: its `latency_us`, and the `us_per_byte` that a tensor occupies it."""

    latency_us: float
    us_per_byte: float

    def time_us(self, size: int) -> float:
        """Microseconds from when `size` bytes begin to be sent until the receiver has all of them."""
        return self.latency_us + size * self.us_per_byte


Links = Callable[[PlacementDevice, PlacementDevice], Link]

_SHARED_MEMORY = Link(10.0, 0.0)  # a hop to another thread
_BUS = Link(10.0, 1.0 / 12_000)
_NETWORK = Link(100.0, 1.0 / 1_000)


def default_link(source: PlacementDevice, target: PlacementDevice) -> Link:
    """The link between two devices, guessed from their names."""
    at, to = DeviceSpec.from_string(source.name), DeviceSpec.from_string(target.name)
    if (at.job, at.replica, at.task) != (to.job, to.replica, to.task):
        return _NETWORK
    return _SHARED_MEMORY if source.device_type == target.device_type == CPU else _BUS


def by_priority(devices: Sequence[PlacementDevice]) -> list[int]:
    """The devices' indices, preferred ones first."""
    rank = {GPU: 0, CPU: 2}
    return sorted(range(len(devices)), key=lambda i: rank.get(devices[i].device_type, 1))
