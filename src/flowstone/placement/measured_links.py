"""How fast the links between devices are, as measured in earlier steps.

A link is a line: a latency, and a time for each byte. `record` adds a transfer; `link` fits the line by least
squares, once there are any. Devices of different tasks share the link of their tasks, in each direction, so
that what was measured of one tensor holds for others. Where all transfers had one size, or larger ones came
no later than small ones, the line cannot be told: half of a small transfer's time is then latency, as of a
network, and all of the rest is for the bytes.

>>> links = MeasuredLinks()
>>> source, target = "/job:ps/replica:0/task:0/device:CPU:0", "/job:w/replica:0/task:0/device:CPU:0"
>>> for size, time_us in ((0, 50.0), (1000, 60.0), (2000, 70.0)):
...     links.record(source, target, size, time_us)
>>> links.link(source, target).time_us(4000)
90.0
>>> links.link(target, source) is None
True
"""

from __future__ import annotations

from flowstone.framework.graphs.device_name import DeviceSpec
from flowstone.placement.devices import Link

_SMALL = 4096  # bytes, whose transfer is mostly latency
_FORGETS = 0.98  # what older transfers count for with each new one: links change


class _Line:
    """The sums of a least-squares fit, older transfers counting less."""

    def __init__(self) -> None:
        self.count = self.x = self.y = self.xx = self.xy = 0.0

    def add(self, x: float, y: float) -> None:
        self.count = self.count * _FORGETS + 1
        self.x = self.x * _FORGETS + x
        self.y = self.y * _FORGETS + y
        self.xx = self.xx * _FORGETS + x * x
        self.xy = self.xy * _FORGETS + x * y

    def link(self) -> Link:
        mean_x, mean_y = self.x / self.count, self.y / self.count
        spread = self.xx / self.count - mean_x * mean_x
        slope = (self.xy / self.count - mean_x * mean_y) / spread if spread > 1e-6 * (mean_x**2 or 1) else 0.0
        latency = mean_y - slope * mean_x
        if slope > 0 and latency >= 0:
            return Link(latency, slope)
        latency = mean_y if mean_x <= 0 else mean_y / 2 if mean_x < _SMALL else 0.0
        return Link(latency, (mean_y - latency) / mean_x if mean_x > 0 else 0.0)


class MeasuredLinks:
    """The links that were measured, by the devices' full names."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], _Line] = {}

    def record(self, source: str, target: str, size: int, time_us: float) -> None:
        """Adds a transfer of `size` bytes. ValueError for a negative size or time."""
        if size < 0 or time_us < 0:
            raise ValueError(f"a transfer from {source} to {target} is negative: {size} bytes, {time_us} us")
        self._lines.setdefault(_ends(source, target), _Line()).add(float(size), time_us)

    def link(self, source: str, target: str) -> Link | None:
        """The link from one device to another, None if nothing was measured of it."""
        line = self._lines.get(_ends(source, target)) if self._lines else None
        return None if line is None else line.link()


def _ends(source: str, target: str) -> tuple[str, str]:
    """The tasks of devices of different tasks, else the devices."""
    at, to = _task(source), _task(target)
    return (at, to) if at != to else (source, target)


def _task(device: str) -> str:
    spec = DeviceSpec.from_string(device)
    return f"/job:{spec.job}/replica:{spec.replica}/task:{spec.task}"
