"""`StubOutForTesting`: replaces attributes for a test and restores them."""

from __future__ import annotations

import inspect
from typing import Any

__all__ = ["StubOutForTesting"]


class StubOutForTesting:
    """Replaces attributes; `CleanUp`, the end of a ``with`` or garbage collection restores them."""

    def __init__(self) -> None:
        self.cache: list[tuple[Any, str, Any]] = []
        self.stubs: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> StubOutForTesting:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.CleanUp()

    def __del__(self) -> None:
        self.CleanUp()

    def CleanUp(self) -> None:
        """Undoes all replacements."""
        self.SmartUnsetAll()
        self.UnsetAll()

    def SmartSet(self, obj: Any, attr_name: str, new_attr: Any) -> None:
        """Replaces an attribute of a module, class or object: in the object's class if only that defines it.

        AttributeError if there is no such attribute.
        """
        owner = obj
        if not inspect.ismodule(obj) and attr_name not in vars(obj):
            places = inspect.getmro(obj) if inspect.isclass(obj) else (obj, *inspect.getmro(type(obj)))
            owners = [place for place in places if attr_name in vars(place)]
            if not owners:
                raise AttributeError("Attribute not found.")
            owner = obj if inspect.isclass(obj) else owners[0]
        old = _stored(owner, attr_name)
        self.stubs.append((owner, attr_name, old))
        setattr(owner, attr_name, new_attr)

    def SmartUnsetAll(self) -> None:
        """Undoes the replacements of `SmartSet`, last first."""
        while self.stubs:
            setattr(*self.stubs.pop())

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:
        """Replaces an attribute. AttributeError if there is no such attribute."""
        self.cache.append((parent, child_name, _stored(parent, child_name)))
        setattr(parent, child_name, new_child)

    def UnsetAll(self) -> None:
        """Undoes the replacements of `Set`, last first."""
        while self.cache:
            setattr(*self.cache.pop())


def _stored(owner: Any, name: str) -> Any:
    """The attribute as it is stored: a static or class method itself, not the function that access
    returns."""
    stored = vars(owner).get(name) if hasattr(owner, "__dict__") else None
    return stored if isinstance(stored, (staticmethod, classmethod)) else getattr(owner, name)
