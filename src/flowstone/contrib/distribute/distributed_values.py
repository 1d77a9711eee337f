"""Values of several replicas held together: `PerReplica` of any values, `Mirrored` of equal ones.

A structure that each replica returns becomes one structure, whose leaves are `PerReplica` where the
replicas' values differ. Variables of all replicas (`mirrored_variables`) are distributed values, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.framework.tensors.tensor import register_tensor_conversion_function
from flowstone.ops.variables.replicas import container_of, current_context

__all__ = ["Mirrored", "PerReplica", "is_distributed", "local_values", "merged", "number_here", "selected"]


class PerReplica:
    """A value of each replica: `values`, in the replicas' order."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = tuple(values)

    @property
    def values(self) -> tuple[Any, ...]:
        """The replicas' values."""
        return self._values

    @property
    def primary(self) -> Any:
        """The first replica's value."""
        return self._values[0]

    def get(self) -> Any:
        """The value of the replica, or of the device of an update, whose code this is; else the first."""
        number = number_here()
        return self._values[number if number is not None and number < len(self._values) else 0]

    def __repr__(self) -> str:
        lines = (f"\n  {i}: {value!r}" for i, value in enumerate(self._values))
        return f"{type(self).__name__}:{{{','.join(lines)}\n}}"


class Mirrored(PerReplica):
    """A value with an equal copy for each replica. It stands for its copy where a tensor is wanted."""

    def _as_graph_element(self) -> Any:
        value = self.get()
        as_element = getattr(value, "_as_graph_element", None)
        return value if as_element is None else as_element()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.get(), name)


def _mirrored_to_tensor(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
    return tf.convert_to_tensor(value.get(), dtype=dtype, name=name)


register_tensor_conversion_function(Mirrored, _mirrored_to_tensor)


def number_here() -> int | None:
    """The number of the replica whose code this is, or of the device on which it updates; else None."""
    found: int | None = getattr(current_context(), "number", None)
    return found


def is_distributed(value: Any) -> bool:
    """Whether it has a part for each replica."""
    if isinstance(value, PerReplica):
        return True
    whole = getattr(value, "_container", None)
    return whole is not None and whole is value and len(whole.values) > 1


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, (list, tuple, dict)) or _is_slices(value)


def _is_slices(value: Any) -> bool:
    return isinstance(value, (tf.IndexedSlices, tf.SparseTensor))


def _map(function: Any, *structures: Any) -> Any:
    """What `function` gives for the leaves of equal structures of lists, tuples and dicts, in their place."""
    first = structures[0]
    if _is_leaf(first):
        return function(*structures)
    if isinstance(first, dict):
        if any(not isinstance(each, dict) or each.keys() != first.keys() for each in structures):
            raise ValueError(f"replicas' dicts have different keys: {structures}")
        pairs = {key: _map(function, *(each[key] for each in structures)) for key in first}
        return type(first)(pairs)
    if any(not isinstance(each, type(first)) or len(each) != len(first) for each in structures):
        raise ValueError(f"replicas' values have different structures: {structures}")
    items = [_map(function, *parts) for parts in zip(*structures)]
    return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)


def selected(number: int, structure: Any) -> Any:
    """The structure as replica `number` sees it: its own values in place of all replicas'."""
    return _map(lambda leaf: _values(leaf)[number] if is_distributed(leaf) else leaf, structure)


def _values(leaf: Any) -> tuple[Any, ...]:
    return leaf.values  # type: ignore[no-any-return]


def merged(structures: Sequence[Any], kind: type[PerReplica] = PerReplica) -> Any:
    """One structure of the replicas' structures; what is the same in all stays as it is."""
    return _map(lambda *leaves: _merged(leaves, kind), *structures)


def _merged(leaves: tuple[Any, ...], kind: type[PerReplica]) -> Any:
    first = leaves[0]
    if all(leaf is first for leaf in leaves):
        return first
    whole = container_of(first)
    if whole is not first and all(leaf is part for leaf, part in zip(leaves, whole.values)):
        return whole
    plain = (bool, int, float, str, bytes)
    if isinstance(first, plain) and all(type(leaf) is type(first) and leaf == first for leaf in leaves):
        return first
    return kind(leaves)


def local_values(value: Any) -> tuple[Any, ...]:
    """The replicas' values of a distributed one; another value alone."""
    return _values(value) if is_distributed(value) else (value,)
