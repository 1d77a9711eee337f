"""Strings split into parts, which make a sparse matrix with a row for each string."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, compress
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import F, OpDeclaration, Shapes, op
from flowstone.framework.machine import string_code
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.ragged.conversions import from_tensor, to_sparse
from flowstone.ops.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from flowstone.ops.ragged.row_layouts import splits_of_ids
from flowstone.ops.strings.elementwise_strings import Strings, as_array
from flowstone.ops.strings.packed import blocks_of, lengths_of

__all__ = ["string_split"]

_FEW = 100
_OUTPUTS = "-> indices: int64, values: string, shape: int64"
_BYTES = np.array([bytes([i]) for i in range(256)], object)
_IS_SPACE = np.isin(np.arange(256), np.frombuffer(b" \t\n\v\f\r", np.uint8))
# The parts of all strings, and how many each string has.
Parts = tuple["list[bytes] | np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]


def _infer(node: Node) -> Shapes:
    for i, rank in ((0, 1), (1, 0)):
        dims = node.dims(i)
        if dims is not None and len(dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")
    return [(None, 2), (None,), (2,)]


def _declare(
    name: str, second: str, attributes: str, split: Callable[[list[bytes], bytes, Any], Parts]
) -> OpDeclaration:
    """`split(strings, separator, attribute)` gives the parts of each string; the op has one attribute."""
    declaration = op(name, f"input: string, {second}: string {_OUTPUTS}", attributes, by_element=True)
    declaration.infer(_infer)
    attribute = attributes.partition(":")[0]

    @declaration.kernel(CPU)  # strings are in host memory
    def _(node: Node, env: Environment) -> Callable[[Strings, Strings], tuple[Any, ...]]:
        setting = node.attributes[attribute]

        def kernel(strings: Strings, separator: Strings) -> tuple[Any, ...]:
            if strings.ndim != 1:
                raise invalid(f"input must be a vector, got shape: {format_dims(strings.shape)}")
            if separator.ndim:
                raise invalid(f"{second} must be a scalar, got shape: {format_dims(separator.shape)}")
            return _as_sparse(len(strings), split(strings.tolist(), separator.item(), setting))

        return kernel

    return declaration


def _as_sparse(rows: int, parts: Parts) -> tuple[torch.Tensor, Strings, torch.Tensor]:
    values, counts = parts
    indices = np.empty((len(values), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(rows), counts)
    indices[:, 1] = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    strings = values if isinstance(values, np.ndarray) else as_array(values, (len(values),))
    return torch.from_numpy(indices), strings, torch.tensor([rows, int(counts.max(initial=0))])


def _each(parts: list[list[bytes]]) -> Parts:
    return list(chain.from_iterable(parts)), np.fromiter(map(len, parts), np.int64, len(parts))


def _split_at_any(strings: list[bytes], delimiters: bytes, skip_empty: bool) -> Parts:
    """At each byte that is one of the delimiters; into bytes if there are none."""
    if not strings:
        return [], np.zeros(0, np.int64)
    if not delimiters:
        return _BYTES[np.frombuffer(b"".join(strings), np.uint8)], lengths_of(strings)
    one = delimiters[:1]
    if len(strings) <= _FEW and len(delimiters) == 1:
        parts = [each.split(one) if each else [] for each in strings]
        return _each([[part for part in row if part] for row in parts] if skip_empty else parts)
    code = string_code.text_pieces()
    found: Parts | None = None if code is None else code.split(strings, delimiters, skip_empty)
    if found is not None:
        return found
    lengths = lengths_of(strings)
    text = one.join(strings)  # all in one, in which rows end where parts end
    if len(delimiters) > 1:
        text = text.translate(bytes.maketrans(delimiters, one * len(delimiters)))
    ends = np.append(np.flatnonzero(np.frombuffer(text, np.uint8) == one[0]), len(text))
    row_ends = np.cumsum(lengths + 1) - 1
    sizes = np.diff(ends, prepend=-1) - 1
    if skip_empty:
        kept = sizes > 0
    else:
        kept = np.ones(len(ends), bool)
        kept[np.searchsorted(ends, row_ends[lengths == 0])] = False  # an empty string has no part
    values = list(compress(text.split(one), kept.tolist()))
    return values, _counts(ends[kept], row_ends)


def _counts(ends: np.ndarray[Any, Any], row_ends: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How many of the places `ends`, which rise, are in each row."""
    counts: np.ndarray[Any, Any] = np.diff(np.searchsorted(ends, row_ends, "right"), prepend=0)
    return counts


def _split_at_whole(strings: list[bytes], separator: bytes, most: int) -> Parts:
    """At each occurrence of the separator, or at runs of white space if it is empty; `most` times at most.

    As in TensorFlow, what follows the `most`th word is a part even if it is empty.
    """
    if most == 0:
        return strings, np.ones(len(strings), np.int64)
    if most < 0 and strings and not separator:
        return _words(strings)
    if most < 0 and len(strings) > _FEW:
        blocks = [_split_together(block, separator) for block in blocks_of(strings)]
        return list(chain.from_iterable([parts for parts, _ in blocks])), np.concatenate(
            [counts for _, counts in blocks]
        )
    parts = [each.split(separator or None, max(most, -1)) for each in strings]
    if not separator and most > 0:
        parts = [[*row, b""] if len(row) == most else row for row in parts]
    return _each(parts)


def _split_together(strings: list[bytes], separator: bytes) -> Parts:
    """All strings as one text, where they and what separates become one byte each."""
    text = b"\0".join(strings)
    if b"\1" in text or b"\0" in separator or text.count(0) >= len(strings):  # the bytes that are needed
        return _each([each.split(separator) for each in strings])
    text = text.replace(separator, b"\1")
    data = np.frombuffer(text, np.uint8)
    ends, row_ends = np.flatnonzero(data == 1), np.append(np.flatnonzero(data == 0), len(text))
    return text.replace(b"\0", b"\1").split(b"\1"), _counts(ends, row_ends) + 1


def _words(strings: list[bytes]) -> Parts:
    text = b" ".join([*strings, b""])
    is_space = _IS_SPACE[np.frombuffer(text, np.uint8)]
    ends = np.flatnonzero(is_space[1:] & ~is_space[:-1])  # the last bytes of words
    return text.split(), _counts(ends, np.cumsum(lengths_of(strings) + 1) - 1)


string_split_op = _declare("StringSplit", "delimiter", "skip_empty: bool = true", _split_at_any)
string_split_op.not_differentiable()
string_split_v2_op = _declare("StringSplitV2", "sep", "maxsplit: int = -1", _split_at_whole)
string_split_v2_op.no_gradient()


# ---- public functions


def _of_type(result_type: Any, strings: Any, parts: Any) -> Any:
    """The parts as a SparseTensor, or as a RaggedTensor. ValueError for another type."""
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")
    indices, values, shape = parts
    shape.set_shape([2])
    if result_type == "SparseTensor":
        return SparseTensor(indices, values, shape)
    splits = splits_of_ids(indices[:, 0], shape[0])
    count = strings.shape.with_rank(1).as_list()[0]
    splits.set_shape([None if count is None else count + 1])
    return RaggedTensor.from_row_splits(values, splits, validate=False)


def string_split(
    source: Any,
    delimiter: Any = " ",
    skip_empty: bool = True,
    sep: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> Any:
    """The parts of the strings of the vector `source`: a SparseTensor with a row for each string, or, as
    `result_type` says, a RaggedTensor.

    `delimiter`, or `sep` (a string scalar): each byte of it separates; '' splits into bytes. Empty parts are
    left out if `skip_empty`. Raises ValueError for a source that is no vector.
    """
    sep = delimiter if sep is None else sep
    with get_default_graph().name_scope(name or "StringSplit"):
        separator = convert_to_tensor(" " if sep is None else sep, "string")
        strings = convert_to_tensor(source, "string")
        return _of_type(
            result_type, strings, string_split_op.several(strings, separator, skip_empty=skip_empty)
        )


def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """The parts of the strings `input` as Python splits them: a SparseTensor with a dimension more, or, as
    `result_type` says, a RaggedTensor (of one string a vector).

    `sep`: what separates as a whole; '' or None: runs of white space, and no part is empty. `maxsplit`: the
    most splits of a string, any number if negative.
    """
    with get_default_graph().name_scope(name or "StringSplit"):
        strings = convert_to_tensor(source if input is None else input, "string", name="input")
        separator = convert_to_tensor("" if sep is None else sep, "string")
        rank = strings.shape.ndims
        if rank not in (None, 1) and result_type in ("RaggedTensor", "SparseTensor"):
            if result_type == "RaggedTensor":
                return split_v2(strings, separator, maxsplit)
            if rank:
                return to_sparse(split_v2(strings, separator, maxsplit))
            strings = F.Reshape(strings, [1])
        return _of_type(
            result_type, strings, string_split_v2_op.several(strings, separator, maxsplit=maxsplit)
        )


def split_v2(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The parts of all strings as Python splits them, a ragged dimension more; of one string, a vector.

    The arguments are those of `split`; ValueError for an unknown rank.
    """
    with get_default_graph().name_scope(name or "StringSplit"):
        strings = as_ragged_or_tensor(input, "string")
        if isinstance(strings, RaggedTensor):
            return strings.with_flat_values(split_v2(strings.flat_values, sep, maxsplit))
        rank = strings.shape.ndims
        if rank is None:
            raise ValueError("input must have a known rank.")
        if rank == 0:
            return split_v2(F.Reshape(strings, [1]), sep, maxsplit).values
        if rank == 1:
            return split(strings, sep, maxsplit, "RaggedTensor")
        rows = from_tensor(strings, ragged_rank=rank - 1)
        return rows.with_flat_values(split_v2(rows.flat_values, sep, maxsplit))
