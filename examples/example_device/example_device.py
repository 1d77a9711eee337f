"""A device type for flowstone, as a package outside would write it: the *arena*.

An arena is one block of memory with an allocator of its own (first fit, 64-byte steps) and a limit. Its
values are `Buffer`s, which say where in the block something lies; CPU kernels can do nothing with them. It
has kernels for a dozen operations. A real device would launch its own; the arena borrows ATen's.

    from flowstone.runtime.process.device_types import register_device_type
    register_device_type(Arenas("ARENA", limit_bytes=1 << 20))    # without installing the package
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.runtime.process.device_types import MemoryStatistics

_STEP = 64  # bytes that allocations are rounded up to


class Buffer:
    """A tensor in an arena: `offset` and `size` in bytes, `shape`, torch's `dtype`. Never changes."""

    __slots__ = ("arena", "dtype", "offset", "shape", "size")

    def __init__(self, arena: Arena, offset: int, size: int, shape: torch.Size, dtype: torch.dtype) -> None:
        self.arena, self.offset, self.size, self.shape, self.dtype = arena, offset, size, shape, dtype

    def __del__(self) -> None:
        self.arena.release(self.offset, self.size)

    def __repr__(self) -> str:
        return f"<Buffer {list(self.shape)} at {self.offset}>"


class Arena:
    """The memory of one device: a block of `limit_bytes`, and a list of its free stretches."""

    def __init__(self, name: str, limit_bytes: int) -> None:
        self.name, self.limit = name, limit_bytes
        self._block = torch.zeros(limit_bytes, dtype=torch.uint8)
        self._free = [(0, limit_bytes)]  # (offset, size), by offset, never adjacent
        self._lock = threading.RLock()  # a Buffer may be collected while another is made
        self._used = self._peak = self._allocations = 0

    # ---- what flowstone asks

    def copy_in(self, value: torch.Tensor) -> Buffer:
        """A buffer with the contents of a host tensor. ResourceExhaustedError if it does not fit."""
        size = max(1, math.ceil(value.numel() * value.element_size() / _STEP)) * _STEP
        buffer = Buffer(self, self._allocate(size), size, value.shape, value.dtype)
        self._view(buffer).copy_(value)
        return buffer

    def copy_out(self, buffer: Buffer) -> torch.Tensor:
        """A host tensor with the contents of a buffer."""
        return self._view(buffer).clone()

    def statistics(self) -> MemoryStatistics:
        """What the arena holds."""
        return MemoryStatistics(self._used, self._peak, self.limit, self._allocations)

    # ---- what the kernels ask

    def compute(self, function: Callable[..., torch.Tensor], *inputs: Buffer) -> Buffer:
        """The result of `function`, as a new buffer."""
        return self.copy_in(function(*map(self._view, inputs)))

    def _view(self, buffer: Buffer) -> torch.Tensor:
        count = math.prod(buffer.shape) * buffer.dtype.itemsize
        stretch = self._block[buffer.offset : buffer.offset + count]
        return stretch.view(buffer.dtype).view(buffer.shape)

    # ---- the allocator

    def _allocate(self, size: int) -> int:
        with self._lock:
            for i, (offset, room) in enumerate(self._free):
                if room >= size:
                    self._free[i : i + 1] = [(offset + size, room - size)] if room > size else []
                    self._used += size
                    self._peak = max(self._peak, self._used)
                    self._allocations += 1
                    return offset
        raise errors.ResourceExhaustedError(
            None,
            None,
            f"{self.name} is out of memory: {size} bytes wanted, {self._used} of {self.limit} in use",
        )

    def release(self, offset: int, size: int) -> None:
        """Gives a stretch back, joined with its free neighbours."""
        with self._lock:
            self._used -= size
            joined: list[tuple[int, int]] = []
            for start, room in sorted([*self._free, (offset, size)]):
                if joined and sum(joined[-1]) == start:
                    joined[-1] = (joined[-1][0], joined[-1][1] + room)
                else:
                    joined.append((start, room))
            self._free = joined


def _kernel(function: Callable[..., torch.Tensor]) -> Callable[[Any, Any], Any]:
    """A kernel factory: once a plan, it gives the callable that a step runs."""

    def factory(node: Any, env: Any) -> Callable[..., Buffer]:
        arena: Arena = env.memory
        return lambda *inputs: arena.compute(function, *inputs)

    return factory


def _matmul(node: Any, env: Any) -> Callable[..., Buffer]:
    arena: Arena = env.memory
    flip_a, flip_b = node.attributes["transpose_a"], node.attributes["transpose_b"]

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.mm(a.t() if flip_a else a, b.t() if flip_b else b)

    return lambda a, b: arena.compute(product, a, b)


KERNELS: dict[str, Callable[[Any, Any], Any]] = {
    "MatMul": _matmul,
    "Add": _kernel(torch.add),
    "AddV2": _kernel(torch.add),
    "Sub": _kernel(torch.sub),
    "Mul": _kernel(torch.mul),
    "Maximum": _kernel(torch.maximum),
    "Neg": _kernel(torch.neg),
    "Square": _kernel(torch.square),
    "Tanh": _kernel(torch.tanh),
    "Exp": _kernel(torch.exp),
    "Relu": _kernel(torch.relu),
    "TanhGrad": _kernel(lambda y, dy: dy * (1 - y * y)),
}


class Arenas:
    """The device type: `count` arenas of `limit_bytes` each."""

    def __init__(
        self,
        name: str = "ARENA",
        limit_bytes: int = 64 << 20,
        count: int = 1,
        relative_speed: float = 1.0,
        kernels: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    ) -> None:
        self.name, self.relative_speed = name, relative_speed
        self.kernels = KERNELS if kernels is None else kernels
        self._limit, self._count = limit_bytes, count

    def count(self) -> int:
        """How many arenas there are."""
        return self._count

    def open(self, index: int) -> Arena:
        """A new arena."""
        return Arena(f"{self.name}:{index}", self._limit)


ARENA = Arenas()
