"""`tensorflow.python.util.object_identity`: dicts and sets of objects, whatever these are equal to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, MutableSet
from typing import Any
from weakref import ref

__all__ = [
    "ObjectIdentityDictionary",
    "ObjectIdentitySet",
    "ObjectIdentityWeakKeyDictionary",
    "ObjectIdentityWeakSet",
]


class ObjectIdentityDictionary(MutableMapping[Any, Any]):
    """A dict whose keys are objects themselves."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._items: dict[int, tuple[Any, Any]] = {}
        self.update(dict(*args, **kwargs))

    def _held(self, key: Any) -> Any:
        """What is kept of a key, and gives it back when called."""
        return lambda: key

    def __getitem__(self, key: Any) -> Any:
        if id(key) not in self._items or self._items[id(key)][0]() is not key:
            raise KeyError(key)
        return self._items[id(key)][1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[id(key)] = (self._held(key), value)

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        del self._items[id(key)]

    def __contains__(self, key: object) -> bool:
        return id(key) in self._items and self._items[id(key)][0]() is key

    def __iter__(self) -> Iterator[Any]:
        keys = [held() for held, _ in list(self._items.values())]
        return iter([key for key in keys if key is not None])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ObjectIdentityWeakKeyDictionary(ObjectIdentityDictionary):
    """A dict that does not keep its keys alive."""

    def _held(self, key: Any) -> Any:
        number = id(key)
        return ref(key, lambda _: self._items.pop(number, None))


class ObjectIdentitySet(MutableSet[Any]):
    """A set of objects themselves."""

    _kind: type[ObjectIdentityDictionary] = ObjectIdentityDictionary

    def __init__(self, *args: Iterable[Any]) -> None:
        self._dict = self._kind()
        for items in args:
            for item in items:
                self.add(item)

    def __contains__(self, item: object) -> bool:
        return item in self._dict

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def add(self, value: Any) -> None:
        """Adds an object."""
        self._dict[value] = None

    def discard(self, value: Any) -> None:
        """Takes an object out, if it is in."""
        self._dict.pop(value, None)

    def update(self, items: Iterable[Any]) -> None:
        """Adds objects."""
        for item in items:
            self.add(item)

    def clear(self) -> None:
        """Takes all out."""
        self._dict = self._kind()

    def intersection(self, items: Iterable[Any]) -> ObjectIdentitySet:
        """Those that are among `items` as well."""
        return type(self)([item for item in items if item in self])

    def difference(self, items: Iterable[Any]) -> ObjectIdentitySet:
        """Those that are not among `items`."""
        others = type(self)(items)
        return type(self)([item for item in self if item not in others])


class ObjectIdentityWeakSet(ObjectIdentitySet):
    """A set that does not keep its objects alive."""

    _kind = ObjectIdentityWeakKeyDictionary
