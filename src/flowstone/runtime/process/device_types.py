"""Device types from outside: what a package implements so that its devices are used by placement and steps.

A package names an object with the attributes of `DeviceType` in the entry point group ``flowstone.devices``:

    [project.entry-points."flowstone.devices"]
    arena = "example_device:ARENA"

The first session of the process loads all of them, with a warning for one that fails; `register_device_type`
registers one explicitly, and raises if it fails. A device is ``/device:NAME:i``, with i from 0 to `count()` -
1. Its values are *buffers*, whatever objects it makes; only the kernels of the type see them. Values reach
and leave the device only through Send and Receive, as host tensors (`torch.Tensor`, on the CPU): `copy_in`
makes a buffer from a tensor, `copy_out` a tensor from a buffer. So:

- feeds and fetches pass through the host; strings, variables and all ops without a kernel here stay on it;
- constants are copied in when a plan is made;
- a buffer's contents never change: a kernel returns new buffers.

A kernel factory is called as for any device, once for each plan, with ``env.memory`` as `open` returned it. A
memory's methods and the kernels raise `flowstone.errors.ResourceExhaustedError` (with None for node and op)
where the limit is exceeded; the step then fails with the node's name.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, KernelFactory, Value
from flowstone.framework.declarations.operation import registry
from flowstone.framework.process.logging import warning
from flowstone.framework.types.values import to_runtime

ENTRY_POINTS = "flowstone.devices"


class MemoryStatistics(NamedTuple):
    """What a device holds: bytes now, the most so far, the limit, the allocations so far; None: unknown."""

    bytes_in_use: int | None = None
    peak_bytes: int | None = None
    limit_bytes: int | None = None
    allocations: int | None = None


class DeviceMemory(Protocol):
    """The memory of one device of a registered type."""

    def copy_in(self, value: torch.Tensor) -> Any:
        """A buffer with the contents of a host tensor. ResourceExhaustedError beyond the limit."""

    def copy_out(self, buffer: Any) -> torch.Tensor:
        """A host tensor, which shares nothing with the buffer."""

    def statistics(self) -> MemoryStatistics:
        """What it holds; `limit_bytes` is also what placement respects."""


class DeviceType(Protocol):
    """A kind of device: the name of its type (upper case, as in ``/device:NAME:0``), its speed relative to a
    CPU of this machine, and its kernels by op."""

    @property
    def name(self) -> str:
        """The type's name."""

    @property
    def relative_speed(self) -> float:
        """How much faster than a CPU device; above 0."""

    @property
    def kernels(self) -> Mapping[str, KernelFactory]:
        """Kernel factories by the op's name on the wire."""

    def count(self) -> int:
        """How many such devices there are."""

    def open(self, index: int) -> DeviceMemory:
        """The memory of device `index`; called once in each process."""


_types: dict[str, DeviceType] = {}
_memories: dict[tuple[str, int], DeviceMemory] = {}
_lock = threading.Lock()
_loaded = False


def register_device_type(device_type: DeviceType) -> None:
    """Makes the type's devices available to sessions that are made from now on.

    ValueError for a name that is taken or not in upper case, or an op that does not exist.
    """
    name = device_type.name
    if name in (CPU, GPU) or not name.isidentifier() or name != name.upper():
        raise ValueError(f"{name!r} cannot be the name of a device type")
    unknown = sorted(kind for kind in device_type.kernels if kind not in registry)
    if unknown:
        raise ValueError(f"device type {name} has kernels for ops that do not exist: {', '.join(unknown)}")
    with _lock:
        if _types.setdefault(name, device_type) is not device_type:
            raise ValueError(f"there is a device type {name} already")
    registry.load_late()  # ops of all files have roles
    plain = {kind: factory for role, factory in _PLAIN.items() for kind in registry.with_role(role)}
    for kind, factory in {**plain, **device_type.kernels}.items():
        registry[kind].kernel(name)(factory)


def unregister_device_type(name: str) -> None:
    """Forgets a type, its kernels and its devices. KeyError if there is none of this name."""
    with _lock:
        del _types[name]
        for key in [key for key in _memories if key[0] == name]:
            del _memories[key]
    for kind in registry:
        registry[kind].kernels.pop(name, None)


def device_types() -> list[DeviceType]:
    """The types that are registered, entry points included."""
    global _loaded
    with _lock:
        must_load, _loaded = not _loaded, True
    if must_load:
        for entry_point in entry_points(group=ENTRY_POINTS):
            try:
                register_device_type(entry_point.load())
            except Exception as error:  # a broken package must not disable other devices
                warning("the device type of entry point %s cannot be used: %r", entry_point.value, error)
    return list(_types.values())


def memory_of(name: str, index: int) -> DeviceMemory:
    """The opened memory of a device, the same for all sessions."""
    with _lock:
        found = _memories.get((name, index))
        if found is None:
            found = _memories[name, index] = _types[name].open(index)
        return found


# ---- kernels of every type: constants, nodes that pass on their input, and nodes that are only waited for


def _constant(node: Any, env: Any) -> Value:
    return Value(env.memory.copy_in(to_runtime(node.attributes["value"], node.attributes["dtype"])))


def _same(x: Any) -> Any:
    return x


def _by_executor(node: Any, env: Any) -> Any:
    raise AssertionError(f"{node.name}: the executor hands these values on")


_PLAIN: dict[str, KernelFactory] = {
    "constant": _constant,
    "identity": lambda node, env: _same,
    "gradient_barrier": lambda node, env: _same,
    "no_op": lambda node, env: Value(None),
    **dict.fromkeys(("switch", "merge", "enter", "exit", "next_iteration"), _by_executor),
}  # by role
