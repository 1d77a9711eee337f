"""`tf.Module`: an object that holds variables and other modules."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flowstone.framework.graph_functions import name_scope
from flowstone.ops.variables.variables import Variable

__all__ = ["Module"]

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Module:
    """Holds variables and modules in its attributes, in lists, tuples and dicts too.

    `name`: an identifier; None takes that of the class in lower case with underscores. ValueError for others.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _snake_case(type(self).__name__)
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers "
                "(e.g. a valid class name)."
            )
        with name_scope(name) as scope:
            self._scope = scope
        self._name = name

    @property
    def name(self) -> str:
        """The name, as given or from the class."""
        return self._name

    @property
    def name_scope(self) -> Any:
        """The scope of the module's name, which it got when it was made, for `with`."""
        return name_scope(self._scope)

    @property
    def variables(self) -> tuple[Any, ...]:
        """All variables of this and of the modules below, in the order of the attributes' names."""
        return tuple(each for each in _held(self) if isinstance(each, Variable))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """Those of `variables` that are trainable."""
        return tuple(each for each in self.variables if each.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """Those of `variables` that are not trainable."""
        return tuple(each for each in self.variables if not each.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """The modules below this one, whatever their depth."""
        return tuple(each for each in _held(self) if isinstance(each, Module))

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator for a method: what it adds to the graph is in the module's name scope."""

        @functools.wraps(method)
        def in_scope(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return in_scope


def _snake_case(name: str) -> str:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name))
    return spaced.lower()


def _held(module: Module) -> Iterator[Any]:
    """Variables and modules below a module: its own first, then those of its modules; each once."""
    seen = {id(module)}
    waiting = [module]
    while waiting:
        found = [each for key in sorted(vars(waiting[0])) for each in _leaves(vars(waiting[0])[key])]
        waiting = waiting[1:]
        for each in found:
            if id(each) not in seen:
                seen.add(id(each))
                yield each
                if isinstance(each, Module):
                    waiting.append(each)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (Variable, Module)):
        yield value
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _leaves(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
