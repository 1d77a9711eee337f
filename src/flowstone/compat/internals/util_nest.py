"""`tensorflow.python.util.nest`: leaves of nested structures with the paths to them.

A path is the keys, field names and positions that lead to a leaf: ``("b", 1, 0)``, or joined, ``"b/1/0"``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flowstone.framework.tensors import nest, shallow_nest

__all__ = [
    "_is_attrs",
    "_is_mapping",
    "_is_namedtuple",
    "_sequence_like",
    "_sorted",
    "_yield_value",
    "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths",
    "flatten_with_tuple_paths_up_to",
    "map_structure_with_paths",
    "map_structure_with_tuple_paths",
    "map_structure_with_tuple_paths_up_to",
    "yield_flat_paths",
]

Path = tuple[Any, ...]


def _steps(structure: Any) -> list[Any]:
    """The keys of a structure's items, in the order of `nest.children`."""
    if isinstance(structure, Mapping):
        return sorted(structure)
    return list(getattr(structure, "_fields", range(len(structure))))


def yield_flat_paths(nest_: Any, expand_composites: bool = False) -> Iterator[Path]:
    """The paths of all leaves, depth first; a leaf alone has the path ()."""
    if expand_composites and nest.is_composite(nest_):
        yield from ((index,) for index in range(len(nest.components(nest_))))
    elif nest.is_nested(nest_):
        for step, child in zip(_steps(nest_), nest.children(nest_)):
            yield from ((step, *rest) for rest in yield_flat_paths(child, expand_composites))
    else:
        yield ()


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple[Path, Any]]:
    """(path, leaf) of all leaves."""
    paths = yield_flat_paths(structure, expand_composites)
    return list(zip(paths, nest.flatten(structure, expand_composites)))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """(path, leaf) of all leaves, the steps of a path joined by `separator`."""
    pairs = flatten_with_tuple_paths(structure, expand_composites)
    return [(separator.join(map(str, path)), leaf) for path, leaf in pairs]


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False, **_: Any
) -> list[tuple[Path, Any]]:
    """(path, part) of the parts of `input_tree` that stand where `shallow_tree` has its leaves.

    Raises TypeError or ValueError unless `input_tree` has that structure, or goes deeper.
    """
    shallow_nest.assert_shallow_structure(shallow_tree, input_tree, check_types)
    paths = yield_flat_paths(shallow_tree, expand_composites)
    return list(zip(paths, shallow_nest.flatten_up_to(shallow_tree, input_tree)))


def map_structure_with_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """A structure like the first of ``func(path, *leaves)``, the paths joined by ``/``.

    Raises TypeError or ValueError unless all structures are alike, or go deeper than the first.
    """

    def with_joined_path(path: Path, *leaves: Any, **more: Any) -> Any:
        return func("/".join(map(str, path)), *leaves, **more)

    return map_structure_with_tuple_paths_up_to(structure[0], with_joined_path, *structure, **kwargs)


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """As `map_structure_with_paths`, with tuples as paths."""
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, check_types: bool = True, **kwargs: Any
) -> Any:
    """A structure like `shallow_tree` of ``func(path, *parts)``, the parts of `inputs` at its leaves.

    Raises ValueError without inputs, TypeError or ValueError for one of another structure.
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    for each in inputs:
        shallow_nest.assert_shallow_structure(shallow_tree, each, check_types)
    parts = [shallow_nest.flatten_up_to(shallow_tree, each) for each in inputs]
    results = [func(path, *leaves, **kwargs) for path, *leaves in zip(yield_flat_paths(shallow_tree), *parts)]
    return nest.pack_sequence_as(shallow_tree, results)


# ---- questions of a structure


def _is_namedtuple(instance: Any, strict: bool = False) -> bool:
    """Whether it is a named tuple; with `strict`, one of a class that derives from tuple itself."""
    is_tuple = isinstance(instance, tuple) and isinstance(getattr(instance, "_fields", None), tuple)
    return is_tuple and (not strict or type(instance).__base__ is tuple)


def _is_mapping(instance: Any) -> bool:
    """Whether it is a mapping."""
    return isinstance(instance, Mapping)


def _is_attrs(instance: Any) -> bool:
    """Whether its class was made with the package attrs."""
    return hasattr(type(instance), "__attrs_attrs__")


def _sorted(dict_: Any) -> list[Any]:
    """The sorted keys; TypeError for keys that cannot be compared."""
    try:
        return sorted(dict_)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _sequence_like(instance: Any, args: Any) -> Any:
    """A structure of the type of `instance` with these items."""
    if isinstance(instance, Mapping):
        by_key = dict(zip(_sorted(instance), args))
        return type(instance)((key, by_key[key]) for key in instance)  # type: ignore[call-arg]
    return type(instance)(*args) if _is_namedtuple(instance) else type(instance)(args)


def _yield_value(iterable: Any) -> Iterator[Any]:
    """The items, those of a mapping in the order of its keys."""
    yield from nest.children(iterable)
