"""`tensorflow.python.framework.registry`: objects by name."""

from __future__ import annotations

from typing import Any

__all__ = ["Registry"]


class Registry:
    """Objects by name; a name is registered once.

    Args:
        name: what the registry holds, for its messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._registry: dict[str, Any] = {}

    def register(self, candidate: Any, name: str | None = None) -> None:
        """Registers an object under `name`, or else its `__name__`. KeyError if the name is taken."""
        name = name or candidate.__name__
        if name in self._registry:
            raise KeyError(f"Registering two {self._name} with name '{name}'!")
        self._registry[name] = candidate

    def list(self) -> Any:
        """The names."""
        return self._registry.keys()

    def lookup(self, name: str) -> Any:
        """The object of that name. LookupError if there is none."""
        name = name.decode() if isinstance(name, bytes) else name
        if name not in self._registry:
            raise LookupError(f"{self._name} registry has no entry for: {name}")
        return self._registry[name]
