"""Nested structures of which one, the shallow one, says how deep to go into the others.

>>> flatten_up_to([0, 0], [(1, 2), 3])
[(1, 2), 3]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flowstone.framework.tensors import nest

__all__ = [
    "assert_shallow_structure",
    "flatten_dict_items",
    "flatten_up_to",
    "get_traverse_shallow_structure",
    "is_sequence",
    "map_structure_up_to",
    "yield_flattened_up_to",
]


def is_sequence(seq: Any) -> bool:
    """Whether `seq` is a structure: a sequence that is no string, a dict, a named tuple."""
    return nest.is_nested(seq)


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dict whose keys and values are the leaves of the nested keys and values of `dictionary`.

    Raises TypeError for what is no dict, ValueError where a key and its value have different structures or
    two keys have a leaf in common.
    """
    if not isinstance(dictionary, Mapping):
        raise TypeError("input must be a dictionary")
    flat: dict[Any, Any] = {}
    for key, value in dictionary.items():
        pairs = [(key, value)]
        if is_sequence(key):
            keys, values = nest.flatten(key), nest.flatten(value)
            if len(keys) != len(values):
                raise ValueError(
                    f"Could not flatten dictionary. Key had {len(keys)} elements, but value had "
                    f"{len(values)} elements. Key: {keys}, value: {values}."
                )
            pairs = list(zip(keys, values))
        for leaf, item in pairs:
            if leaf in flat:
                raise ValueError(f"Could not flatten dictionary: key {leaf} is not unique.")
            flat[leaf] = item
    return flat


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """Raises TypeError or ValueError unless `input_tree` has the structure of `shallow_tree`, or goes deeper.

    Args:
        shallow_tree: the structure whose leaves may stand for whole structures of the other.
        input_tree: the structure that is asked about.
        check_types: whether the types of sequences must agree (a list is no tuple).
    """
    if not is_sequence(shallow_tree):
        return
    if not is_sequence(input_tree):
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input has type: "
            f"{type(input_tree)}."
        )
    if check_types and not nest.are_of_one_type(shallow_tree, input_tree):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(input_tree)}, while shallow structure has type {type(shallow_tree)}."
        )
    if len(input_tree) != len(shallow_tree):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(input_tree)}, while shallow structure has length {len(shallow_tree)}."
        )
    mappings = isinstance(shallow_tree, Mapping) and isinstance(input_tree, Mapping)
    if mappings and set(input_tree) != set(shallow_tree):
        raise ValueError(
            "The two structures don't have the same keys. Input structure has keys "
            f"{list(input_tree)}, while shallow structure has keys {list(shallow_tree)}."
        )
    for shallow, deep in zip(nest.children(shallow_tree), nest.children(input_tree)):
        assert_shallow_structure(shallow, deep, check_types)


def yield_flattened_up_to(shallow_tree: Any, input_tree: Any) -> Iterator[Any]:
    """The parts of `input_tree` that stand where `shallow_tree` has its leaves."""
    if not is_sequence(shallow_tree):
        yield input_tree
        return
    for shallow, deep in zip(nest.children(shallow_tree), nest.children(input_tree)):
        yield from yield_flattened_up_to(shallow, deep)


def flatten_up_to(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> list[Any]:
    """The parts of `input_tree` that stand where `shallow_tree` has its leaves, as a list.

    >>> flatten_up_to([0, 0], [(1, 2), 3])
    [(1, 2), 3]
    """
    assert_shallow_structure(shallow_tree, input_tree, check_types)
    return list(yield_flattened_up_to(shallow_tree, input_tree))


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """A structure as `shallow_tree` of `func` of the parts of `inputs` that stand at its leaves.

    Raises ValueError without inputs, and what `assert_shallow_structure` raises.
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    check_types = options.get("check_types", True)
    flat = [flatten_up_to(shallow_tree, each, check_types) for each in inputs]
    return nest.pack_sequence_as(shallow_tree, [func(*parts) for parts in zip(*flat)])


def get_traverse_shallow_structure(traverse_fn: Callable[[Any], Any], structure: Any) -> Any:
    """A structure of booleans: True in place of each part that `traverse_fn` says to go into.

    Args:
        traverse_fn: from a part to a boolean, or to a structure of booleans for its items.
        structure: the structure.

    Raises TypeError for what `traverse_fn` returns otherwise, or for a True in place of a leaf.
    """
    wanted = traverse_fn(structure)
    if not is_sequence(structure):
        if not isinstance(wanted, bool):
            raise TypeError(f"traverse_fn returned structure: {wanted} for non-structure: {structure}")
        return wanted
    if isinstance(wanted, bool):
        if not wanted:
            return False
        parts: Sequence[Any] = [
            get_traverse_shallow_structure(traverse_fn, item) for item in nest.children(structure)
        ]
        return nest.with_children(structure, parts)
    assert_shallow_structure(wanted, structure)
    parts = []
    for go_on, item in zip(nest.children(wanted), nest.children(structure)):
        if not isinstance(go_on, bool):
            raise TypeError("traverse_fn didn't return a depth=1 structure of bools.")
        parts.append(get_traverse_shallow_structure(traverse_fn, item) if go_on else False)
    return nest.with_children(structure, parts)
