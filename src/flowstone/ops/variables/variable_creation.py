"""Which kind of variable ``Variable(…)`` makes: the default, the scope's choice, and creators in scope.

The kinds, reference and resource variables, are above `variables.py`; each registers itself here (`kinds`).
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from flowstone.framework.tensors import scope

__all__ = ["VariableAggregation", "VariableSynchronization", "variable_creator_scope"]


class VariableSynchronization(enum.Enum):
    """When a strategy brings the replicas' copies of a variable together."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How a strategy makes one of the replicas' updates of a variable."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


_Mode = TypeVar("_Mode", bound=enum.Enum)


def synchronization_of(given: Any, name: str | None) -> VariableSynchronization:
    """The mode of a variable's argument: a member, its number, or None. ValueError for others."""
    return _mode(VariableSynchronization, "synchronization", given, name)


def aggregation_of(given: Any, name: str | None) -> VariableAggregation:
    """The mode of a variable's argument: a member, its number, or None. ValueError for others."""
    return _mode(VariableAggregation, "aggregation", given, name)


def _mode(kind: type[_Mode], of: str, given: Any, name: str | None) -> _Mode:
    try:
        return kind(0 if given is None else given)
    except ValueError:
        raise ValueError(f"Invalid variable {of} mode: {given} for variable: {name}") from None


_default_use_resource = [False]


class _Creators(threading.local):
    """The creators in scope of this thread, by the `id` of the graph."""

    def __init__(self) -> None:
        self.by_graph: dict[int, tuple[Callable[..., Any], ...]] = {}


creators = _Creators()
kinds: dict[bool, Callable[..., Any]] = {}  # by whether a variable is a resource


def set_default_use_resource(value: bool) -> None:
    """Makes resource variables (True) or reference variables the default of `Variable` and `get_variable`."""
    _default_use_resource[0] = bool(value)


def default_use_resource() -> bool:
    """Whether `Variable` and `get_variable` make resource variables by default."""
    return _default_use_resource[0]


@contextlib.contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """Within the context `variable_creator(next_creator, **arguments)` makes the default
    graph's variables.
    """
    graph = scope.get_default_graph()
    before = creators.by_graph
    creators.by_graph = {**before, id(graph): (*before.get(id(graph), ()), variable_creator)}
    try:
        yield
    finally:
        creators.by_graph = before


class KindOfVariable(type):
    """Has ``Variable(…)`` make one of the two kinds, through the creators in scope."""

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        if "_stands_for_all_kinds" not in cls.__dict__:
            return super().__call__(*arguments, **keywords)
        if len(arguments) > len(_PARAMETERS):
            raise TypeError(
                f"Variable takes at most {len(_PARAMETERS)} arguments but {len(arguments)} were given"
            )
        given = dict(zip(_PARAMETERS, arguments))
        given.update(keywords)
        create: Callable[..., Any] = _create_default
        for creator in creators.by_graph.get(id(scope.get_default_graph()), ()):
            create = _wrapped(creator, create)
        return create(**given)


def _wrapped(creator: Callable[..., Any], following: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **keywords: creator(following, **keywords)


def _create_default(use_resource: bool | None = None, **keywords: Any) -> Any:
    if use_resource is None:
        use_resource = scope_default_use_resource()
    return kinds[use_resource](**keywords)


def scope_default_use_resource() -> bool:
    """What the variable scope in force says of `use_resource`, else the default."""
    store = scope.get_default_graph().variable_store
    wanted = None if store is None else store.current_scope().use_resource
    return default_use_resource() if wanted is None else bool(wanted)


_PARAMETERS = (
    "initial_value", "trainable", "collections", "validate_shape", "caching_device", "name", "variable_def",
    "dtype", "expected_shape", "import_scope", "constraint", "use_resource", "synchronization", "aggregation",
    "shape",
)  # fmt: skip
