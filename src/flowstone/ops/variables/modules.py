"""`tf.Module`: an object that holds variables and other modules."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flowstone.framework.graphs.graph_functions import name_scope
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.variables.variables import Variable

__all__ = ["Module"]

_MISSING = object()
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Module:
    """Holds variables and modules in its attributes, in lists, tuples and dicts too.

    `name`: an identifier; None takes that of the class in lower case with underscores. ValueError for others.
    """

    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset()
    """The attributes that `_flatten` leaves out; subclasses add theirs."""

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

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            object.__setattr__(self, name, value)
        except AttributeError:  # a property without a setter, which may be given what it has
            if not _is_same(getattr(self, name, _MISSING), value):
                raise

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
        return tuple(self._flatten(predicate=_is_variable))

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
        return tuple(self._flatten(predicate=_is_module))

    def _no_dependency(self, value: Any) -> Any:
        """The value itself, which an attribute that is no part of checkpoints is given."""
        return value

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """The object itself: what attributes hold is part of checkpoints without this."""
        return trackable

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable[[Any], bool] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None,
        with_path: bool = False,
    ) -> Iterator[Any]:
        """The values in the attributes, each once: those of this module, then those of the modules below.

        Args:
            recursive: whether those of modules below come.
            predicate: which values; by default all.
            attribute_traversal_key: the key of an attribute's name, by which attributes are sorted.
            with_path: whether pairs come, of the attributes and keys that lead to a value, and the value.
        """
        seen = {id(self)}
        waiting: list[tuple[tuple[Any, ...], Any]] = [((), self)]
        while waiting:
            (path, module), waiting = waiting[0], waiting[1:]
            ignored: frozenset[str] = getattr(module, "_TF_MODULE_IGNORED_PROPERTIES", frozenset())
            for key in sorted(vars(module), key=attribute_traversal_key):
                if key in ignored:
                    continue
                for way, each in _leaves(vars(module)[key], (*path, key)):
                    if not isinstance(each, _PLAIN) and id(each) in seen:
                        continue
                    seen.add(id(each))
                    if predicate is None or predicate(each):
                        yield (way, each) if with_path else each
                    if recursive and isinstance(each, Module):
                        waiting.append((way, each))

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator for a method: what it adds to the graph is in the module's name scope."""

        @functools.wraps(method)
        def in_scope(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return in_scope


def _is_same(held: Any, value: Any) -> bool:
    """Whether both are one object; shapes, which tensors make anew, where they have the same sizes."""
    if isinstance(held, TensorShape) and isinstance(value, TensorShape):
        return held.dims_tuple == value.dims_tuple
    return held is value


def _snake_case(name: str) -> str:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name))
    return spaced.lower()


_PLAIN = (str, int, float, bytes, bool, type(None))  # the same object in many places


def _is_variable(value: Any) -> bool:
    return isinstance(value, Variable)


def _is_module(value: Any) -> bool:
    return isinstance(value, Module)


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """What lists, tuples and dicts hold, with the keys that lead there."""
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], (*path, key))
    elif isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", range(len(value)))
        for name, item in zip(names, value):
            yield from _leaves(item, (*path, name))
    else:
        yield path, value
