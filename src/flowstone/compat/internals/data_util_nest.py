"""`tensorflow.python.data.util.nest`: structures of a dataset's elements, in which lists are leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.data.structure import flatten, flatten_like, is_nested, packed

__all__ = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_up_to",
    "is_sequence",
    "map_structure",
    "map_structure_up_to",
    "pack_sequence_as",
]

is_sequence = is_nested


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """Raises TypeError or ValueError unless `input_tree` has `shallow_tree`'s structure, or goes deeper."""
    flatten_like(shallow_tree, input_tree, "The structure")


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raises TypeError or ValueError unless both structures are the same."""
    for shallow, deep in ((nest1, nest2), (nest2, nest1)):
        assert_shallow_structure(shallow, deep)


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> list[Any]:
    """The parts of `input_tree` that stand where `shallow_tree` has its leaves."""
    return flatten_like(shallow_tree, input_tree, "The structure")


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """A structure like `structure` of these leaves. ValueError if their number differs."""
    if len(flatten(structure)) != len(flat_sequence):
        raise ValueError(
            f"Could not pack sequence. Structure had {len(flatten(structure))} elements, but flat_sequence "
            f"had {len(flat_sequence)} elements."
        )
    return packed(structure, list(flat_sequence))


def map_structure(func: Callable[..., Any], *structure: Any, **check_types_dict: bool) -> Any:
    """A structure like the first of `func` of the leaves of all, which must have the same structure."""
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    return packed(structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure))])


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any) -> Any:
    """A structure as `shallow_tree` of `func` of the parts of `inputs` that stand at its leaves."""
    if not inputs:
        raise ValueError("Argument `inputs` is empty. Cannot map over no sequences.")
    flat = [flatten_up_to(shallow_tree, each) for each in inputs]
    return packed(shallow_tree, [func(*parts) for parts in zip(*flat)])
