"""Containers: named stores of the state that outlives a step (white paper 4.7).

A `ResourceStore` belongs to a target: the default target "" makes one for each session, so such sessions are
isolated; sessions on a common target share one. Inside, a resource is found by (container, name): a
`Variable` here, queues and tables in later rooms. `reset` drops whole containers.

A `Variable` holds its buffer in the slot `tensor`, which is *unset* while the variable is uninitialised:
generated code reads the slot as it stands, and the AttributeError of an unset one is translated where it is
caught, so the check costs a step nothing.

>>> store = ResourceStore()
>>> box = store.look_up_or_create("", "w", lambda: Variable("w"))
>>> box.is_initialized, store.look_up_or_create("", "w", lambda: Variable("w")) is box
(False, True)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch


class Variable:
    """A variable's buffer. `tensor` is unset until the first assignment; `lock` serialises ``use_locking``
    updates; `order` is the order of its dimensions in memory, slowest first, or None for that of its shape;
    `packed` is what kernels keep that is made of its value (`lowering/packing/packed_weights.py`), which
    every step that changes the variable sets to None afterwards.
    """

    __slots__ = ("lock", "name", "order", "packed", "tensor")

    tensor: Any

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.Lock()
        self.order: tuple[int, ...] | None = None
        self.packed: Any = None

    def lay_out(self, order: tuple[int, ...]) -> None:
        """Keeps the dimensions in this order in memory from now on; shape and values stay."""
        with self.lock:
            self.order = order
            if self.is_initialized and not self.tensor.permute(order).is_contiguous():
                self.tensor = self.copy_of(self.tensor)

    def copy_of(self, value: Any) -> Any:
        """A copy of this tensor, in the variable's order if it has its rank."""
        if self.order is None or value.dim() != len(self.order):
            return value.clone(memory_format=torch.contiguous_format)
        inverse = sorted(range(len(self.order)), key=self.order.__getitem__)
        return value.permute(self.order).clone(memory_format=torch.contiguous_format).permute(inverse)

    @property
    def is_initialized(self) -> bool:
        """Whether a value has been assigned."""
        return hasattr(self, "tensor")

    def __repr__(self) -> str:
        return f"<Variable {self.name}{'' if self.is_initialized else ' (uninitialised)'}>"


class ResourceStore:
    """Resources by container and name; safe for concurrent use."""

    def __init__(self) -> None:
        self._containers: dict[str, dict[Any, Any]] = {}
        self._lock = threading.Lock()

    def look_up_or_create(self, container: str, name: Any, make: Callable[[], Any]) -> Any:
        """The resource of this name in `container` ('' is the default one), made if it is not there."""
        with self._lock:
            resources = self._containers.setdefault(container or "localhost", {})
            if name not in resources:
                resources[name] = make()
            return resources[name]

    def reset(self, containers: Iterable[str] = ()) -> None:
        """Drops these containers, or all if none is named; their variables become uninitialised."""
        with self._lock:
            for name in list(containers) or list(self._containers):
                for resource in self._containers.pop(name, {}).values():
                    release = getattr(resource, "release", None)
                    if release is not None:
                        release()
