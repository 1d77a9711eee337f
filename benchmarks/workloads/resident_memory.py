"""The process's resident memory, in MB of 10^6 bytes. Needs Linux (`/proc`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def resident() -> float:
    """What the process holds now."""
    return _status("VmRSS")


def peak(function: Callable[[], object], calls: int = 5) -> float:
    """The most that the process held during `calls` calls."""
    Path("/proc/self/clear_refs").write_text("5")  # the mark falls to the present
    for _ in range(calls):
        function()
    return _status("VmHWM")


def _status(field: str) -> float:
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith(field)).split()[1]) * 1024 / 1e6
