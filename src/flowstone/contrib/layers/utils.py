"""What layers share: outputs collected under names, sizes of dimensions, conditions, arguments in many forms.

A tensor that a layer adds to a collection keeps the layer's scope as its alias, so that
`convert_collection_to_dict` gives the collection's tensors by those names.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib.framework.smart_cond import smart_constant_value

__all__ = [
    "append_tensor_alias",
    "channel_dimension",
    "collect_named_outputs",
    "constant_value",
    "convert_collection_to_dict",
    "gather_tensors_aliases",
    "get_tensor_aliases",
    "get_variable_collections",
    "last_dimension",
    "n_positive_integers",
    "smart_cond",
    "static_cond",
    "two_element_tuple",
]


class NamedOutputs(NamedTuple):
    """An alias and the tensors of that name."""

    name: str
    outputs: Any


# ---- collections of outputs


def collect_named_outputs(collections: Any, alias: str, outputs: Any) -> Any:
    """Adds a tensor to collections under an alias, and returns it."""
    if collections:
        append_tensor_alias(outputs, alias)
        tf.add_to_collections(collections, outputs)
    return outputs


def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """Gives a tensor one more alias, less the slash at its end, and returns it."""
    alias = alias.removesuffix("/")
    if hasattr(tensor, "aliases"):
        tensor.aliases.append(alias)
    else:
        tensor.aliases = [alias]
    return tensor


def get_tensor_aliases(tensor: Any) -> list[str]:
    """A tensor's aliases; without any its name, less ``:0``."""
    if hasattr(tensor, "aliases"):
        return list(tensor.aliases)
    return [tensor.name.removesuffix(":0")]


def gather_tensors_aliases(tensors: Iterable[Any]) -> list[str]:
    """The aliases of several tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def convert_collection_to_dict(collection: str, clear_collection: bool = False) -> OrderedDict[str, Any]:
    """The tensors of a collection by their aliases, in its order; it may be emptied."""
    items = tf.get_collection(collection)
    outputs = OrderedDict((alias, tensor) for tensor in items for alias in get_tensor_aliases(tensor))
    if clear_collection:
        tf.get_default_graph().clear_collection(collection)
    return outputs


def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections for variables called `name`: those of a dict under that key, or the same for all."""
    if isinstance(variables_collections, dict):
        return variables_collections.get(name)
    return variables_collections


# ---- sizes


def _get_dimension(shape: Any, dim: int, min_rank: int = 1) -> int:
    if shape.ndims is None:
        raise ValueError("dims of shape must be known but is None")
    if shape.ndims < min_rank:
        raise ValueError(f"rank of shape must be at least {min_rank} not: {shape.ndims}")
    size: int | None = shape.as_list()[dim]
    if size is None:
        raise ValueError(f"dimension {dim} of shape must be known but is None: {shape}")
    return size


def last_dimension(shape: Any, min_rank: int = 1) -> int:
    """The last size of a static shape. ValueError if it is not known, or the rank is below `min_rank`."""
    return _get_dimension(shape, -1, min_rank)


def channel_dimension(shape: Any, data_format: str, min_rank: int = 1) -> int:
    """The number of channels of a static shape: the last size, or the second where `data_format` is NC…."""
    return _get_dimension(shape, 1 if data_format.startswith("NC") else -1, min_rank)


def two_element_tuple(int_or_tuple: Any) -> tuple[Any, Any]:
    """Two integers, from one of them, a list or tuple of two, or a TensorShape. ValueError for others."""
    if isinstance(int_or_tuple, (list, tuple)):
        if len(int_or_tuple) != 2:
            raise ValueError(f"Must be a list with 2 elements: {int_or_tuple}")
        return int_or_tuple[0], int_or_tuple[1]
    if isinstance(int_or_tuple, int):
        return int_or_tuple, int_or_tuple
    if isinstance(int_or_tuple, tf.TensorShape) and int_or_tuple.ndims == 2:
        return int_or_tuple[0], int_or_tuple[1]
    raise ValueError("Must be an int, a list with 2 elements or a TensorShape of length 2")


def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """`n` positive integers, from one of them or a sequence. ValueError for others."""
    single = not isinstance(value, Iterable)
    found = tuple(int(each) for each in ([value] * n if single else value))
    if len(found) != n:
        raise ValueError(f"Expected sequence of {n} positive integers, but received {value!r}")
    if any(each < 1 for each in found):
        expected = "positive integer" if single else f"sequence of {n} positive integers"
        raise ValueError(f"expected {expected}, but received {value!r}")
    return found


# ---- conditions


def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """The value of a number or tensor as far as it is known without a step, else None.

    ValueError for None.
    """
    value = value_or_tensor_or_var
    if value is None:
        raise ValueError("value_or_tensor_or_var cannot be None")
    if isinstance(value, tf.Tensor):
        value = tf.get_static_value(value)
    elif isinstance(value, tf.Variable):
        value = None
    if dtype is not None and isinstance(value, dtype):
        raise ValueError(f"It has the wrong type {dtype}")
    return value


def smart_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any], name: str | None = None) -> Any:
    """What `fn1` or `fn2` gives: as `tf.cond`, without a condition where `pred` is known."""
    known = constant_value(pred)
    if known is None:
        return tf.cond(pred, fn1, fn2, name=name)
    return fn1() if known else fn2()


def static_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any]) -> Any:
    """What `fn1` or `fn2` gives, for a Python value. TypeError if a function cannot be called."""
    if not callable(fn1) or not callable(fn2):
        raise TypeError("fn1 and fn2 must be callable.")
    return fn1() if smart_constant_value(pred) else fn2()
