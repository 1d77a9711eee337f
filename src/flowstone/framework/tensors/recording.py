"""`Recording`: what a gradient tape sees of the graphs while it is open.

It keeps the operations that its thread adds (`scope.recordings`), and when which tensors were watched. Of
the operations those count that depend on a tensor that was watched before them, through others that count:
`dependents`. A trainable variable that is read is watched from then on.

State: `operations`, in order; `_watched[tensor]`, how many operations there were when it was watched;
`_variables[handle]`, the variables among them; `_outside[tensor]`, what a function's capture stands for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flowstone.framework.tensors import scope

if TYPE_CHECKING:
    from flowstone.framework.graphs.graph_operation import Operation
    from flowstone.framework.tensors.tensor import Tensor

__all__ = ["Recording", "note_read", "stop_recording"]


class Recording:
    """See the module. `watches_variables`: whether reading a trainable variable watches it."""

    def __init__(self, watches_variables: bool = True) -> None:
        self.watches_variables = watches_variables
        self.operations: list[Operation] = []
        self._watched: dict[Tensor, int] = {}
        self._variables: dict[Tensor, Any] = {}
        self._outside: dict[Tensor, Tensor] = {}
        self._dependents: set[Operation] = set()
        self._known = (0, 0)  # how many operations and watched tensors `_dependents` is of

    @property
    def variables(self) -> tuple[Any, ...]:
        """The watched variables, in order."""
        return tuple(self._variables.values())

    def watch(self, tensor: Tensor) -> None:
        """Makes operations that are added from now on depend on it."""
        self._watched.setdefault(tensor, len(self.operations))

    def watch_variable(self, variable: Any) -> None:
        """Watches a variable: its handle or buffer, and a read that all its uses share."""
        handle = variable._handle
        if handle in self._variables:
            return
        self._variables[handle] = variable
        self.watch(handle)
        shared: list[Operation] = []
        read = variable._shared_read
        while read is not None and read is not handle:
            shared.insert(0, read.op)
            read = read.op.inputs[0]
        self.operations += shared

    def dependents(self) -> set[Operation]:
        """The operations that depend on what is watched."""
        known = len(self.operations), len(self._watched)
        if self._known != known:
            self._known = known
            self._outside = self._captured()
            self._dependents = self._found_dependents()
        return self._dependents

    def watches(self, tensor: Tensor) -> bool:
        """Whether it is watched, or depends on what is."""
        return self._counts(tensor, len(self.operations), self.dependents())

    def _found_dependents(self) -> set[Operation]:
        found: set[Operation] = set()
        has_loops = any(op.declaration.role == "next_iteration" for op in self.operations)
        size = -1
        while len(found) > size:
            size = len(found)
            for position, op in enumerate(self.operations):
                if op not in found and any([self._counts(x, position, found) for x in op.inputs]):
                    found.add(op)
            if not has_loops:
                break
        return found

    def _counts(self, x: Tensor, position: int, found: set[Operation]) -> bool:
        """Whether it was watched before this operation, or is of the operations `found`."""
        if x.op in found or self._watched.get(x, position + 1) <= position:
            return True
        outside = self._outside.get(x)
        return outside is not None and self._counts(outside, position, found)

    def _captured(self) -> dict[Tensor, Tensor]:
        """For tensors of functions' bodies, what they stand for outside."""
        captures = [getattr(graph, "captures", {}) for graph in {op.graph for op in self.operations}]
        return {inner: outer for each in captures for outer, inner in each.items()}


def note_read(variable: Any) -> None:
    """Says to open recordings that a variable is read."""
    for recording in scope.recordings.items:
        if recording.watches_variables and variable.trainable:
            recording.watch_variable(variable)


@contextlib.contextmanager
def stop_recording() -> Iterator[None]:
    """Within the context no tape of this thread records."""
    items, scope.recordings.items = scope.recordings.items, []
    try:
        yield
    finally:
        scope.recordings.items = items
