"""How the items of collections become messages and come back: registered by a collection's name.

A MetaGraphDef holds collections. Items of a registered collection are held as messages of `proto_type`; other
items are held as what they are: texts, numbers, or the names of tensors and operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["ProtoFunctions", "proto_functions_of", "register_proto_function"]


class ProtoFunctions(NamedTuple):
    """``to_proto(item, export_scope)`` gives a message, or None for an item outside the scope;
    ``from_proto(message, import_scope)`` gives the item."""

    proto_type: Any
    to_proto: Callable[..., Any] | None
    from_proto: Callable[..., Any] | None


_registered: dict[str, ProtoFunctions] = {}
_late: dict[str, Callable[[], ProtoFunctions]] = {}


def register_proto_function(
    collection_name: str,
    proto_type: Any = None,
    to_proto: Callable[..., Any] | None = None,
    from_proto: Callable[..., Any] | None = None,
) -> None:
    """Registers how the items of a collection become messages and come back. TypeError for functions that
    are no functions."""
    for function in (to_proto, from_proto):
        if function is not None and not callable(function):
            raise TypeError("to_proto and from_proto must be callable.")
    _registered[collection_name] = ProtoFunctions(proto_type, to_proto, from_proto)


def register_late(collection_name: str, make: Callable[[], ProtoFunctions]) -> None:
    """As `register_proto_function`, of functions that are made when they are first needed, so that no message
    type is imported before."""
    _late[collection_name] = make


def proto_functions_of(collection_name: str) -> ProtoFunctions | None:
    """What is registered for a collection, or None."""
    found = _registered.get(collection_name)
    if found is None and collection_name in _late:
        found = _registered[collection_name] = _late[collection_name]()
    return found
