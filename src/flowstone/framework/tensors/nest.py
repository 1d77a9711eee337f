"""Nested structures: lists, tuples, named tuples and dicts (in the order of their sorted keys) with anything
as leaves.

Composite values (`IndexedSlices`, `SparseTensor`, a `TensorArray` with its flow) are leaves too, unless
`expand_composites` asks for their tensors.

>>> flatten({"b": [1, (2, 3)], "a": 0})
[0, 1, 2, 3]
>>> pack_sequence_as({"b": [1, (2, 3)], "a": 0}, [7, 8, 9, 10])
{'b': [8, (9, 10)], 'a': 7}
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor
from flowstone.framework.tensors.dispatch import Ragged

_COMPOSITE = (IndexedSlices, SparseTensor, Ragged)


def is_nested(structure: Any) -> bool:
    """Whether it is a list, tuple or mapping, not a leaf."""
    return isinstance(structure, (list, tuple, Mapping))


def children(structure: Any) -> list[Any]:
    """The items of a structure, one level deep."""
    if isinstance(structure, Mapping):
        return [structure[key] for key in _keys(structure)]
    return list(structure)


def _keys(structure: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def is_composite(value: Any) -> bool:
    """Whether it is a value made of tensors that is no plain structure of them."""
    return isinstance(value, _COMPOSITE) or hasattr(value, "_is_tensor_array")


def components(composite: Any) -> list[Any]:
    """The tensors of a composite value; IndexedSlices without a known shape have two, a TensorArray one."""
    if hasattr(composite, "_is_tensor_array"):
        return [composite.flow]
    if isinstance(composite, Ragged):
        return composite._components()
    if isinstance(composite, SparseTensor):
        return [composite.indices, composite.values, composite.dense_shape]
    parts = [composite.values, composite.indices, composite.dense_shape]
    return parts if parts[2] is not None else parts[:2]


def rebuilt(like: Any, parts: Sequence[Any]) -> Any:
    """A composite value of `parts`, of the kind of `like`."""
    if isinstance(like, Ragged):
        return like._rebuilt(parts)
    return like._with_flow(parts[0]) if hasattr(like, "_is_tensor_array") else type(like)(*parts)


def are_alike(a: Any, b: Any) -> bool:
    """Whether two leaves are the same kind of value: both plain, or composite values of one class whose parts
    are as many and of the same types.
    """
    if not (is_composite(a) or is_composite(b)):
        return True
    if type(a) is not type(b):
        return False
    types = [[part.dtype.base_dtype for part in components(value)] for value in (a, b)]
    return types[0] == types[1]


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves, depth first; with `expand_composites` their tensors in place of composite values."""
    if is_nested(structure):
        return [leaf for child in children(structure) for leaf in flatten(child, expand_composites)]
    return components(structure) if expand_composites and is_composite(structure) else [structure]


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:
    """A structure like `structure` whose leaves are `flat_sequence`. ValueError if the numbers differ."""
    expected = len(flatten(structure, expand_composites))
    if expected != len(flat_sequence):
        raise ValueError(
            f"Could not pack sequence. Structure had {expected} atoms, "
            f"but flat_sequence had {len(flat_sequence)} items."
        )
    return _packed(structure, iter(flat_sequence), expand_composites)


def _packed(structure: Any, leaves: Iterator[Any], expand_composites: bool) -> Any:
    if not is_nested(structure):
        if expand_composites and is_composite(structure):
            return rebuilt(structure, [next(leaves) for _ in components(structure)])
        return next(leaves)
    return with_children(
        structure, [_packed(child, leaves, expand_composites) for child in children(structure)]
    )


def with_children(structure: Any, items: Sequence[Any]) -> Any:
    """A structure of the kind of `structure`, one level deep, whose items are `items`."""
    if isinstance(structure, Mapping):
        packed = dict(zip(_keys(structure), items))
        made_by = (structure.default_factory,) if isinstance(structure, defaultdict) else ()
        return type(structure)(*made_by, ((key, packed[key]) for key in structure))  # type: ignore[call-arg]
    return type(structure)(*items) if hasattr(structure, "_fields") else type(structure)(items)


def map_structure(
    function: Callable[..., Any],
    *structures: Any,
    check_types: bool = True,
    expand_composites: bool = False,
) -> Any:
    """A structure like the first with ``function(*leaves)`` as its leaves; all must have the same
    structure, with `check_types` also sequences of the same types.
    """
    for other in structures[1:]:
        assert_same_structure(structures[0], other, check_types, expand_composites)
    flat = [flatten(structure, expand_composites) for structure in structures]
    return pack_sequence_as(structures[0], [function(*leaves) for leaves in zip(*flat)], expand_composites)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises ValueError if the structures differ, TypeError if only the types of their sequences do.

    With `expand_composites`, composite values must be alike, too: of one class, with parts of the same types.
    """
    try:
        _compare(nest1, nest2, check_types)
        if expand_composites:
            for a, b in zip(flatten(nest1), flatten(nest2)):
                if not are_alike(a, b):
                    raise TypeError(f"{a} and {b} are not alike")
    except (ValueError, TypeError) as error:
        raise type(error)(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: type={type(nest1).__name__} str={nest1}\n\n"
            f"Second structure: type={type(nest2).__name__} str={nest2}\n\nMore specifically: {error}"
        ) from None


def are_of_one_type(a: Any, b: Any) -> bool:
    """Whether two structures are of one class, both mappings, or namedtuples of one name with equal fields:
    a loaded model has made those again."""
    if type(a) is type(b) or (isinstance(a, Mapping) and isinstance(b, Mapping)):
        return True
    fields = getattr(a, "_fields", None)
    is_same = fields is not None and fields == getattr(b, "_fields", None)
    return is_same and type(a).__name__ == type(b).__name__


def _compare(a: Any, b: Any, check_types: bool) -> None:
    if is_nested(a) != is_nested(b):
        sequence, leaf = (a, b) if is_nested(a) else (b, a)
        raise ValueError(
            f'Substructure "type={type(sequence).__name__} str={sequence}" is a sequence, while substructure '
            f'"type={type(leaf).__name__} str={leaf}" is not'
        )
    if not is_nested(a):
        return
    if check_types and not are_of_one_type(a, b):
        raise TypeError(
            f"The two namedtuples or sequences don't have the same sequence type. First structure has type "
            f"{type(a).__name__}, while second structure has type {type(b).__name__}"
        )
    if isinstance(a, Mapping) and isinstance(b, Mapping) and set(a) != set(b):
        raise ValueError(f"The two dictionaries don't have the same set of keys: {_keys(a)} and {_keys(b)}")
    first, second = children(a), children(b)
    if len(first) != len(second):
        raise ValueError(
            f"The two structures don't have the same number of elements. "
            f"First structure: {a}. Second structure: {b}"
        )
    for x, y in zip(first, second):
        _compare(x, y, check_types)
