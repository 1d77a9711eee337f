"""`tf.switch_case`: one of several functions, by a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.control.conditionals import cond

__all__ = ["switch_case"]


def switch_case(branch_index: Tensor, branch_fns: Any, default: Any = None, name: str = "switch_case") -> Any:
    """The results of the function with this index.

    Args:
        branch_index: a scalar tensor, int32.
        branch_fns: functions without arguments whose results are alike: a list of them, or a dict or list of
            pairs with their indices, 0 to n - 1.
        default: for an index that no function has; None takes the last one.

    Raises:
        TypeError: the index is no integer tensor, or something is no function.
        ValueError: there are no functions, or the indices are not 0 to n - 1.
    """
    if not isinstance(branch_index, Tensor):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"'branch_index' must be an integer Tensor, got {branch_index.dtype}")
    functions = _in_order(branch_fns)
    if default is not None:
        if not callable(default):
            raise TypeError(f"{type(default).__name__!r} object is not callable")
        functions.append(default)
    kind = branch_index.dtype.as_numpy_dtype
    with get_default_graph().name_scope(name or "switch_case"):
        return _chosen(branch_index, functions, 0, kind)


def _chosen(index: Tensor, functions: list[Callable[[], Any]], number: int, kind: Any) -> Any:
    """Nested conditionals; the last function is for whatever is left."""
    if number == len(functions) - 1:
        return functions[number]()
    rest = number + 1
    is_this = F.Equal(index, kind(number))
    return cond(is_this, functions[number], lambda: _chosen(index, functions, rest, kind))


def _in_order(branch_fns: Any) -> list[Callable[[], Any]]:
    if not isinstance(branch_fns, (list, tuple, dict)):
        raise TypeError("'branch_fns' must be a list, tuple, or dict")
    pairs = list(branch_fns.items() if isinstance(branch_fns, dict) else branch_fns)
    if not pairs:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    if not isinstance(branch_fns, dict) and all(callable(each) for each in pairs):
        return pairs
    for pair in pairs:
        _check_pair(pair)
    pairs.sort(key=lambda pair: int(pair[0]))
    keys = [int(key) for key, _ in pairs]
    if keys != list(range(len(keys))):
        found = ",".join(map(str, keys))
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(keys)}) but found {{{found}}}"
        )
    return [function for _, function in pairs]


def _check_pair(pair: Any) -> None:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"Each entry in 'branch_fns' must be a 2-tuple. Received {pair}.")
    key, function = pair
    if not isinstance(key, (int, np.integer)):
        raise TypeError(f"key must be a Python `int`, got {type(key)}")
    if not callable(function):
        raise TypeError(f"fn for key {key} must be callable.")
