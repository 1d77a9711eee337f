"""Lists, dicts and sets of names that hold what a checkpoint saves: `List`, `Mapping`, `UniqueNameTracker`.

Each is part of a checkpoint, as an attribute or within another one, and knows the layers within it and the
variables of these and beside them.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Iterable, Iterator
from typing import Any

from flowstone.ops.variables.variables import Variable
from flowstone.training.checkpoints.object_graph import is_trackable

__all__ = ["List", "Mapping", "UniqueNameTracker"]


def _checked(value: Any, holder: str) -> Any:
    if not is_trackable(value):
        raise ValueError(
            f"Only trackable objects (such as Layers or Optimizers) may be stored in a {holder} object. "
            f"Got {value}, which does not inherit from Trackable."
        )
    return value


class _Structure:
    """What the containers share: the layers and variables of what `_held` gives."""

    trainable = True

    def _held(self) -> Iterable[Any]:
        raise NotImplementedError

    @property
    def layers(self) -> list[Any]:
        """The layers within, those of lists and dicts within among them."""
        return [each for each in _leaves(self._held()) if not isinstance(each, Variable)]

    @property
    def weights(self) -> list[Any]:
        """All weights: the trainable ones, then the others."""
        return [*self._of_kind(True), *self._of_kind(False)]

    def _of_kind(self, is_trainable: bool) -> list[Any]:
        """The weights of layers, then the variables that are held themselves."""
        name = "trainable_weights" if is_trainable else "non_trainable_weights"
        found = [weight for layer in self.layers for weight in getattr(layer, name)]
        variables = [each for each in _leaves(self._held()) if isinstance(each, Variable)]
        return found + [each for each in variables if bool(each.trainable) is is_trainable]

    @property
    def trainable_weights(self) -> list[Any]:
        """Those that training changes; none if `trainable` is False."""
        return self._of_kind(True) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The others."""
        return self.weights[len(self.trainable_weights) :]

    variables = property(lambda self: self.weights, doc="As `weights`.")
    trainable_variables = property(lambda self: self.trainable_weights, doc="As `trainable_weights`.")
    non_trainable_variables = property(
        lambda self: self.non_trainable_weights, doc="As `non_trainable_weights`."
    )

    @property
    def losses(self) -> list[Any]:
        """What the layers add to the loss."""
        return [loss for layer in self.layers for loss in getattr(layer, "losses", ())]

    @property
    def updates(self) -> list[Any]:
        """What the layers want run beside a training step."""
        return [update for layer in self.layers for update in getattr(layer, "updates", ())]


def _leaves(values: Iterable[Any]) -> Iterator[Any]:
    """The layers and variables among values and in containers among them, each once."""
    seen: set[int] = set()
    waiting = list(values)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _Structure):
            waiting += list(value._held())[::-1]
        elif isinstance(value, (list, tuple)):
            waiting += value[::-1]
        elif isinstance(value, collections.abc.Mapping):
            waiting += [value[key] for key in reversed(value)]
        elif (isinstance(value, Variable) or hasattr(value, "trainable_weights")) and id(value) not in seen:
            seen.add(id(value))
            yield value


class List(_Structure, collections.abc.Sequence[Any]):
    """A list, made as Python's, that only grows: ``List([layer, variable])``.

    ValueError for what a checkpoint cannot have. A part of it and a sum with a list are Lists.
    """

    def __init__(self, *args: Any) -> None:
        self._storage: list[Any] = []
        self.extend(list(*args))

    def _held(self) -> Iterable[Any]:
        return self._storage

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        return [(str(i), each) for i, each in enumerate(self._storage)]

    def append(self, value: Any) -> None:
        """Adds an object."""
        self._storage.append(_checked(value, "List"))

    def extend(self, values: Iterable[Any]) -> None:
        """Adds objects."""
        for value in values:
            self.append(value)

    def copy(self) -> List:
        """A list of the same objects."""
        return type(self)(self._storage)

    def __getitem__(self, key: Any) -> Any:
        found = self._storage[key]
        return type(self)(found) if isinstance(key, slice) else found

    def __len__(self) -> int:
        return len(self._storage)

    def __iadd__(self, values: Iterable[Any]) -> List:
        self.extend(values)
        return self

    def __add__(self, other: Iterable[Any]) -> List:
        return type(self)([*self._storage, *other])

    def __radd__(self, other: Iterable[Any]) -> List:
        return type(self)([*other, *self._storage])

    def __repr__(self) -> str:
        return f"List({self._storage!r})"


class Mapping(_Structure, collections.abc.Mapping[str, Any]):
    """A dict, made as Python's, that only grows: keys are texts, and each is given once.

    TypeError for another key, ValueError for one that is there and for what a checkpoint cannot have.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._storage: dict[str, Any] = {}
        self.update(*args, **kwargs)

    def _held(self) -> Iterable[Any]:
        return self._storage.values()

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        return list(self._storage.items())

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Adds objects by their keys."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"Mapping accepts only string keys, but got a key {key!r}.")
        if self._storage.setdefault(key, _checked(value, "Mapping")) is not value:
            raise ValueError(
                f"Mappings are an append-only data structure. Tried to overwrite the key '{key}' with value "
                f"{value}, but it already contains {self._storage[key]}"
            )

    def __getitem__(self, key: str) -> Any:
        return self._storage[key]

    def __len__(self) -> int:
        return len(self._storage)

    def __iter__(self) -> Iterator[str]:
        return iter(self._storage)

    def __repr__(self) -> str:
        return f"Mapping({self._storage!r})"


class UniqueNameTracker(_Structure):
    """Objects under names of their own: of the same base name, ``x``, ``x_1`` and so on."""

    def __init__(self) -> None:
        self._storage: dict[str, Any] = {}

    def _held(self) -> Iterable[Any]:
        return self._storage.values()

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        return list(self._storage.items())

    def track(self, trackable: Any, base_name: str) -> Any:
        """Adds the object, and returns it; ValueError for what a checkpoint cannot have."""
        if not is_trackable(trackable):
            raise ValueError(
                f"Expected a trackable value, got {trackable} which does not inherit from tf.track.Trackable."
            )
        name, count = base_name, 0
        while name in self._storage:
            count += 1
            name = f"{base_name}_{count}"
        self._storage[name] = trackable
        return trackable
