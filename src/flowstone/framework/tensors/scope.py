"""Ambient state of graph building: the default graph, the default session, and the scopes of a graph.

This is the one place for it. The stacks of default graphs and sessions belong to a thread, and so does
the graph below the stack: a thread that enters none builds in a graph of its own. A graph's scopes
(name, device, colocation, control dependencies, attributes, gradient overrides, container, control-flow
context) are one immutable-by-convention `Scopes` record per graph and thread; entering a scope replaces
fields and leaving restores them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowstone.framework.graphs.graph import Graph


class Scopes(threading.local):
    """The scopes of one graph as the current thread sees them."""

    def __init__(self) -> None:
        self.name: str = ""  # of the current name scope, without the final slash
        self.devices: tuple[Any, ...] = ()  # device names, functions or None, outermost first
        self.colocation: tuple[Any, ...] = ()  # operations to colocate new ones with
        self.control_dependencies: tuple[Any, ...] = ()  # controllers, one an enclosing scope
        self.attributes: dict[str, Any] = {}
        self.gradient_overrides: dict[str, str] = {}
        self.container: str = ""
        self.control_flow_context: Any = None

    def having(self, **fields: Any) -> contextlib.AbstractContextManager[None]:
        """Within the context these fields have these values."""
        return _Having(self, fields)


class _Having:
    """Fields of scopes with other values; a class, since thousands of operations are built inside of some."""

    __slots__ = ("_before", "_fields", "_scopes")

    def __init__(self, scopes: Scopes, fields: dict[str, Any]) -> None:
        self._scopes, self._fields = scopes, fields

    def __enter__(self) -> None:
        values = self._scopes.__dict__
        self._before = {field: values[field] for field in self._fields}
        values.update(self._fields)

    def __exit__(self, *_: object) -> None:
        self._scopes.__dict__.update(self._before)


class DefaultStack(threading.local):
    """A stack of defaults (graphs, sessions) of the current thread."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def get(self) -> Any:
        """The innermost item, or None."""
        return self.items[-1] if self.items else None

    @contextlib.contextmanager
    def entered(self, item: Any) -> Iterator[Any]:
        """Within the context `item` is the default."""
        self.items.append(item)
        try:
            yield item
        finally:
            if self.items[-1] is not item:
                raise AssertionError(f"Nesting violated for default stack of {type(item)} objects")
            self.items.pop()


functions_in_construction = 0


@contextlib.contextmanager
def capturing() -> Iterator[None]:
    """Within the context a function's body is built, and tensors from outside must be captured."""
    global functions_in_construction
    with _global_lock:
        functions_in_construction += 1
    try:
        yield
    finally:
        with _global_lock:
            functions_in_construction -= 1


graphs = DefaultStack()
sessions = DefaultStack()
recordings = DefaultStack()  # of the thread's open gradient tapes; see `recording.py`
_lowest = DefaultStack()  # of each thread the graph where it builds outside of `with graph.as_default()`
graph_class: list[Callable[[], Graph]] = []  # added by `graph.py`, which is above this file
_global_lock = threading.Lock()


def get_default_graph() -> Graph:
    """The graph that new operations of this thread go to."""
    items = graphs.items
    if items:
        return items[-1]  # type: ignore[no-any-return]
    if not _lowest.items:
        _lowest.items.append(graph_class[0]())
    return _lowest.items[0]  # type: ignore[no-any-return]


def reset_default_graph() -> None:
    """Replaces the default graph of this thread by a new one. Raises AssertionError inside ``with
    graph.as_default()``.
    """
    if graphs.items:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, "
            "exit the nesting and create a new graph."
        )
    _lowest.items.clear()


def get_default_session() -> Any:
    """The innermost default session of this thread, or None."""
    return sessions.get()
