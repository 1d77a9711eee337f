"""`tf.debugging.assert_shapes`: sizes that are the same wherever they have the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.control.conditionals import Assert
from flowstone.ops.control.control_flow import group

__all__ = ["assert_shapes"]

_ANY = (None, ".")
_MANY = (..., "*")


class _Seen:
    """A size with a name: what is known of it, and which tensor told."""

    def __init__(self, size: int | None, tensor: Tensor, place: str) -> None:
        self.size, self.tensor, self.place = size, tensor, place


def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """An operation that fails with InvalidArgumentError unless the tensors have these shapes.

    Args:
        shapes: a dict, or list of pairs, of tensors with their shapes: a tuple, list or text of sizes. An
            int is that size; None and "." any; all others are names of sizes that are equal wherever they
            stand. ``...`` or "*", as the first, is any number of sizes.
        data: what the error shows besides.
        summarize: how many elements of it.
        message: what the error begins with.
        name: of the operation's scope.

    Raises ValueError where the static shapes tell already, or a shape is malformed.
    """
    pairs = list(shapes.items() if isinstance(shapes, Mapping) else shapes)
    with get_default_graph().name_scope(name or "assert_shapes") as scope:
        words = f"{message or ''} " if message else ""
        checks: list[Any] = []
        seen: dict[Any, _Seen] = {}
        for value, wanted in pairs:
            tensor = _as_tensor(value)
            sizes, is_open = _sizes(tensor, wanted)
            _check_rank(tensor, sizes, is_open, checks, (words, data, summarize))
            _check_sizes(tensor, sizes, is_open, seen, checks, (words, data, summarize))
        return group(*checks, name=scope)


def _as_tensor(value: Any) -> Any:
    if isinstance(value, SparseTensor):
        return value
    return value if isinstance(value, Tensor) else convert_to_tensor(value)


def _name(tensor: Any) -> str:
    return tensor.values.name if isinstance(tensor, SparseTensor) else tensor.name


def _sizes(tensor: Any, wanted: Any) -> tuple[list[Any], bool]:
    """The sizes without the opening ellipsis, and whether there is one."""
    sizes = list(wanted) if isinstance(wanted, (tuple, list, str)) else list(np.atleast_1d(wanted))
    if any(size in _MANY for size in sizes[1:]):
        at = next(i for i, size in enumerate(sizes) if i and size in _MANY)
        raise ValueError(
            f"Tensor {_name(tensor)} specified shape index {at}.  Symbol `...` or `*` for a variable number "
            "of unspecified dimensions is only allowed as the first entry"
        )
    is_open = bool(sizes) and sizes[0] in _MANY
    return (sizes[1:] if is_open else sizes), is_open


def _check_rank(
    tensor: Any, sizes: list[Any], is_open: bool, checks: list[Any], how: tuple[Any, ...]
) -> None:
    rank, words = tensor.shape.ndims, how[0]
    least, kind = len(sizes), "at least rank" if is_open else "rank"
    allowed = (0, 1) if sizes == [1] or (len(sizes) == 1 and not is_open) else (least,)
    text = f"Tensor {_name(tensor)} must have {kind} {least}."
    if rank is not None:
        if rank < least if is_open else rank not in allowed:
            shown = (
                f"rank at least {least}"
                if is_open
                else f"rank in {allowed}"
                if len(allowed) > 1
                else f"rank {least}"
            )
            raise ValueError(
                f"{words}Tensor {_name(tensor)} must have {shown}.  "
                f"Received rank {rank}, shape {tensor.shape}"
            )
        return
    found = F.Size(_shape(tensor))
    condition = F.GreaterEqual(found, least) if is_open else F.Equal(found, least)
    if len(allowed) > 1:
        condition = F.LogicalOr(condition, F.Equal(found, 0))
    checks.append(Assert(condition, [words + text, "Received rank:", found, *(how[1] or [])], how[2]))


def _shape(tensor: Any) -> Tensor:
    if isinstance(tensor, SparseTensor):
        return F.Cast(tensor.dense_shape, DstT=dtypes.int32)
    return F.Shape(tensor)


def _check_sizes(
    tensor: Any,
    sizes: list[Any],
    is_open: bool,
    seen: dict[Any, _Seen],
    checks: list[Any],
    how: tuple[Any, ...],
) -> None:
    dims = None if tensor.shape.ndims is None else tensor.shape.as_list()
    if dims == [] and len(sizes) == 1:
        sizes, dims = [], []  # a scalar is one element, too
    for i, wanted in enumerate(sizes):
        if wanted in _ANY:
            continue
        at = i - len(sizes) if is_open else i
        known = None if dims is None else dims[at]
        fixed = _as_size(wanted)
        if fixed is not None:
            _compare(tensor, at, known, fixed, None, "Specified explicitly.", checks, how)
            continue
        other = seen.get(wanted)
        if other is not None:
            told = f"Specified by tensor {_name(other.tensor)} dimension {other.place}."
            _compare(tensor, at, known, other.size, other, told, checks, how)
        if other is None or other.size is None:
            seen[wanted] = _Seen(known, tensor, str(at))


def _as_size(wanted: Any) -> int | None:
    """The size that a number or a text of digits is; None of a name."""
    if isinstance(wanted, Tensor):
        value = static_value(wanted)
        return None if value is None else int(value)
    try:
        return int(wanted)
    except (TypeError, ValueError):
        return None


def _compare(
    tensor: Any, at: int, known: int | None, wanted: int | None, other: _Seen | None, told: str,
    checks: list[Any], how: tuple[Any, ...],
) -> None:  # fmt: skip
    """Compares two sizes now if both are known, else in the step."""
    words, data, summarize = how
    text = f"{words}{told}  Tensor {_name(tensor)} dimension {at} must have size"
    if known is not None and wanted is not None:
        if known != wanted:
            raise ValueError(f"{text} {wanted}.  Received size {known}, shape {tensor.shape}")
        return
    found = F.GatherV2(_shape(tensor), _place(tensor, at), 0)
    right: Any = np.int32(wanted or 0)
    if wanted is None and other is not None:
        right = F.GatherV2(_shape(other.tensor), _place(other.tensor, int(other.place)), 0)
    condition = F.Equal(found, right)
    checks.append(Assert(condition, [text, right, "Received size", found, *(data or [])], summarize))


def _place(tensor: Any, at: int) -> Any:
    return np.int32(at) if at >= 0 else F.Add(F.Size(_shape(tensor)), np.int32(at))
