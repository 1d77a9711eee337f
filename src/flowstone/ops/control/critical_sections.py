"""`CriticalSection`: pieces of graph no two of which run at the same time, in the same or different steps.

`execute` builds a piece by calling a function. In a step, first the piece's inputs from outside are computed.
Then the section's mutex is acquired (`mutexes.py`), the piece runs, and the mutex is released. Only then are
the results available.

>>> from flowstone.framework.graphs.graph import Graph
>>> from flowstone.ops.arrays.constants import constant
>>> with Graph().as_default():
...     print(CriticalSection(name="one_at_a_time").execute(lambda: constant(1.0) + 2.0).name)
critical_section_execute/Identity_1:0
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors import nest, scope
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.identities import identity
from flowstone.ops.control.control_flow import group, tuple_

__all__ = ["CriticalSection"]

_SECTIONS, _EXECUTIONS = "critical_sections", "critical_section_executions"
_building = threading.local()  # the sections whose functions are being called


class _Execution(NamedTuple):
    """One piece: the operation that acquires the mutex, its section's handle, the resources that it uses."""

    op: Operation
    handle: Tensor
    resources: list[Tensor]
    exclusive_resource_access: bool


class CriticalSection:
    """A section; only one of its pieces runs at a time.

    `shared_name`: sessions on one target share sections of a name (default: the scope's and `name`).
    Raises ValueError if a definition is given as well.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def is not None and (name is not None or shared_name is not None):
            raise ValueError(
                f"Arguments critical_section_def={critical_section_def} and shared_name={shared_name} are "
                "mutually exclusive. Please only specify one of them."
            )
        if critical_section_def is not None:
            raise ValueError("Argument `critical_section_def` is not supported.")
        graph = scope.get_default_graph()
        with graph.name_scope(name or "CriticalSection") as full_name, graph.control_dependencies(None):
            self._handle = F.MutexV2(
                shared_name=full_name if shared_name is None else shared_name, name=full_name
            )
        self._signature = (
            graph.get_name_scope(),
            self._handle.op.attributes["shared_name"],
            self._handle.op.attributes["container"],
        )
        graph.add_to_collection(_SECTIONS, self)

    @property
    def name(self) -> str:
        """The name of its mutex's operation."""
        return self._handle.op.name

    def execute(
        self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None
    ) -> Any:
        """What `fn()` returns (tensors, operations, nested), once it has run with the section locked.

        `exclusive_resource_access`: no other section may take the resources that `fn` takes. Raises
        ValueError if one does, if `fn` executes this section itself, and for None among the results.
        """
        running = _building.__dict__.setdefault("sections", [])
        if any(self._handle is section._handle for section in running):
            raise ValueError(
                "Attempting to lock a CriticalSection "
                f"(signature={(*self._signature[:2], self._signature[2] or None)}) in which we are already "
                "running. This is illegal and may cause deadlocks."
            )
        inner = scope.get_default_graph()
        graph = inner if inner.building_function else self._handle.graph
        with graph.name_scope(name or "critical_section_execute"):
            lock = F.MutexLock(self._handle)
            before = len(graph.get_operations())
            running.append(self)
            try:
                with graph.control_dependencies([lock]):
                    results = fn()
            finally:
                running.pop()
            created = graph.get_operations()[before:]
            self._wait_for_inputs(lock.op, created)
            self._record(lock.op, created, exclusive_resource_access)
            flat = [_converted(result) for result in nest.flatten(results)]
            ready = [_after(result) for result in flat]
            # a variable becomes its value inside the section, so that it is not read again outside
            flat = [x if isinstance(x, (Tensor, Operation)) else y for x, y in zip(flat, ready)]
            with graph.control_dependencies(ready):
                with nullcontext() if inner.building_function else graph.colocate_with(self._handle.op):
                    consumed = F.ConsumeMutexLock(lock)
                gated = tuple_(flat) if flat else []
            with graph.control_dependencies([consumed]):
                released = [_after(result) for result in gated]
        return nest.pack_sequence_as(results, released)

    def _wait_for_inputs(self, lock: Operation, created: list[Operation]) -> None:
        """Makes the mutex wait until all inputs of the piece from outside are computed."""
        inside = {*created, lock, self._handle.op}
        sources = [
            source
            for operation in created
            for source in (*[tensor.op for tensor in operation.inputs], *operation.control_inputs)
            if source not in inside
        ]
        context = lock._control_flow_context
        outside = {s: None for s in sources if s._control_flow_context is context}
        if outside:
            lock._add_control_input(group(*outside))

    def _record(self, lock: Operation, created: list[Operation], exclusive: bool) -> None:
        """Notes the resources that the piece uses; ValueError if a section needs one of them exclusively."""
        graph = self._handle.graph
        taken = dict.fromkeys(
            tensor
            for operation in created
            for tensor in operation.inputs
            if tensor.dtype is dtypes.resource and tensor is not self._handle
        )
        for other in graph.get_collection(_EXECUTIONS):
            if other.handle is self._handle or not (exclusive or other.exclusive_resource_access):
                continue
            both = [tensor for tensor in taken if tensor in other.resources]
            if both:
                raise ValueError(
                    f"This execution would access resources: {both}. Either this lock "
                    f"(CriticalSection: {self._handle}) or lock '{other}' (CriticalSection: {other.handle}) "
                    "requested exclusive resource access of this resource. Did you mean to call execute "
                    "with keyword argument exclusive_resource_access=False?"
                )
        graph.add_to_collection(_EXECUTIONS, _Execution(lock, self._handle, list(taken), exclusive))


def _converted(result: Any) -> Any:
    if isinstance(result, Operation) or hasattr(result, "_as_graph_element"):
        return result
    return convert_to_tensor(result)


def _after(result: Any) -> Any:
    """The same result, available after the current control dependencies."""
    return group(result) if isinstance(result, Operation) else identity(result)
