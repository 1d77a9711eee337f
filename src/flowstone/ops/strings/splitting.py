"""Strings split into parts, which make a sparse matrix with a row for each string."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import torch

from flowstone.framework.composite import SparseTensor
from flowstone.framework.kernel import CPU, Environment
from flowstone.framework.node import Node
from flowstone.framework.operation import OpDeclaration, Shapes, op
from flowstone.framework.scope import get_default_graph
from flowstone.framework.shape import format_dims
from flowstone.framework.tensor import convert_to_tensor
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import Strings, as_array

__all__ = ["string_split"]

_OUTPUTS = "-> indices: int64, values: string, shape: int64"
_BYTES = np.array([bytes([i]) for i in range(256)], object)
Parts = list[list[bytes]]


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
            return _as_sparse(split(strings.tolist(), separator.item(), setting))

        return kernel

    return declaration


def _as_sparse(parts: Parts) -> tuple[torch.Tensor, Strings, torch.Tensor]:
    counts = np.fromiter(map(len, parts), np.int64, len(parts))
    values = list(chain.from_iterable(parts))
    indices = np.empty((len(values), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(parts)), counts)
    indices[:, 1] = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    sizes = [len(parts), int(counts.max(initial=0))]
    return torch.from_numpy(indices), as_array(values, (len(values),)), torch.tensor(sizes)


def _split_at_any(strings: list[bytes], delimiters: bytes, skip_empty: bool) -> Parts:
    """At each byte that is one of the delimiters; into bytes if there are none."""
    if not delimiters:
        return [_BYTES[np.frombuffer(each, np.uint8)].tolist() for each in strings]
    one = delimiters[:1]
    if len(delimiters) > 1:
        table = bytes.maketrans(delimiters, one * len(delimiters))
        strings = [each.translate(table) for each in strings]
    if skip_empty:
        return [[part for part in each.split(one) if part] for each in strings]
    return [each.split(one) if each else [] for each in strings]


def _split_at_whole(strings: list[bytes], separator: bytes, most: int) -> Parts:
    """At each occurrence of the separator, or at runs of white space if it is empty; `most` times at most.

    As in TensorFlow, what follows the `most`th word is a part even if it is empty.
    """
    if most == 0:
        return [[each] for each in strings]
    parts = [each.split(separator or None, max(most, -1)) for each in strings]
    if not separator and most > 0:
        parts = [[*row, b""] if len(row) == most else row for row in parts]
    return parts


string_split_op = _declare("StringSplit", "delimiter", "skip_empty: bool = true", _split_at_any)
string_split_op.not_differentiable()
string_split_v2_op = _declare("StringSplitV2", "sep", "maxsplit: int = -1", _split_at_whole)
string_split_v2_op.no_gradient()


# ---- public functions


def _refuse_ragged(result_type: Any) -> None:
    if result_type == "RaggedTensor":
        raise ValueError("flowstone has no ragged tensors: ask for result_type='SparseTensor'")
    if result_type != "SparseTensor":
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")


def string_split(
    source: Any = None,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> SparseTensor:
    """The parts of the strings of the vector `source`: a SparseTensor with a row for each string.

    `sep` or `delimiter` (a string scalar, ' ' if neither is given): each byte of it separates; '' splits into
    bytes. Empty parts are left out if `skip_empty`. Raises ValueError for a source that is no vector.
    """
    _refuse_ragged(result_type)
    if delimiter is not None:
        sep = delimiter
    with get_default_graph().name_scope(name or "StringSplit"):
        separator = convert_to_tensor(" " if sep is None else sep, "string")
        strings = convert_to_tensor(source, "string")
        indices, values, shape = string_split_op.several(strings, separator, skip_empty=skip_empty)
    return SparseTensor(indices, values, _with_vector(shape))


def _with_vector(shape: Any) -> Any:
    shape.set_shape([2])
    return shape


def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> SparseTensor:
    """The parts of the strings of the vector `input` as Python splits them: a SparseTensor, a row a string.

    `sep`: what separates as a whole; '' or None: runs of white space, and no part is empty. `maxsplit`: the
    most splits of a string, any number if negative. Raises ValueError for an input that is no vector.
    """
    _refuse_ragged(result_type)
    with get_default_graph().name_scope(name or "StringSplit"):
        strings = convert_to_tensor(source if input is None else input, "string", name="input")
        separator = convert_to_tensor("" if sep is None else sep, "string")
        indices, values, shape = string_split_v2_op.several(strings, separator, maxsplit=maxsplit)
    return SparseTensor(indices, values, _with_vector(shape))
