"""Crosses of features: SparseCross, its later forms SparseCrossV2 and SparseCrossHashed, its earlier one.

Each input is a matrix with a row an example, sparse or dense, of strings or int64. An example's crosses are
all combinations of one element from each of its inputs, the last input's varying fastest, joined as text or
hashed to a number. Hashes are folds of the elements' fingerprints:

- SparseCross: from the key over FarmHash of strings, and integers themselves;
- SparseFeatureCross (of `tf.contrib.layers`): the same, folded as Boost's hash_combine does;
- SparseCrossHashed: over FarmHash, or with `strong_hash` SipHash under the salt, of strings, and of the four
  low bytes of integers.

Strings live on the host, and how many crosses there are is only known there: the kernels are for CPUs.

>>> _combinations([np.array([2, 0]), np.array([1, 3])])
(array([0, 0]), [array([0, 1]), array([0, 0])])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.tensors.composite import SparseTensor, SparseTensorValue
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.casts import cast
from flowstone.ops.sparse.index_rows import listed
from flowstone.ops.strings.fingerprints import fingerprint64, fingerprint_cat64, sip_hash

_Array = np.ndarray[Any, Any]
_Column = tuple[
    _Array, _Array, Any
]  # for each example, where its elements begin and their number; all of them

_INPUTS = "indices: N*int64, values: *sparse_types, shapes: N*int64, dense_inputs: *dense_types"
KINDS = "type in [int64, string]"
_LISTS = (
    "N: int >= 0 ; sparse_types: list(type) in [int64, string] >= 0 ; "
    "dense_types: list(type) in [int64, string] >= 0"
)
_DEFAULT_KEY = 0xDECAFCAFFE  # the key where none is given
_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7800)
_LARGEST = np.uint64(2**63 - 1)
_MOST = 2**40  # examples or crosses


# ---- examples and their elements


def _batch_size(shapes: Sequence[torch.Tensor], dense: Sequence[Any]) -> int:
    if shapes:
        return int(shapes[0][0])
    return int(dense[0].shape[0]) if dense else 0


def sparse_column(rows: torch.Tensor, values: Any, batch: int) -> _Column:
    """The column of a sparse matrix of so many examples."""
    examples = rows[:, 0].numpy()
    if len(examples) > 1 and (examples[1:] < examples[:-1]).any():
        order = np.argsort(examples, kind="stable")
        examples, values = examples[order], as_array(values)[order]
    bounds = np.searchsorted(examples, np.arange(batch + 1))
    return bounds[:-1], np.diff(bounds), as_array(values)


def dense_column(values: Any, batch: int) -> _Column:
    """The column of a dense matrix."""
    array, width = as_array(values), values.shape[1]
    return np.arange(batch) * width, np.full(batch, width), array.reshape(-1)


def as_array(values: Any) -> _Array:
    """The elements as NumPy's array, uncopied."""
    found: _Array = values.numpy() if isinstance(values, torch.Tensor) else values
    return found


def _combinations(counts: Sequence[_Array]) -> tuple[_Array, list[_Array]]:
    """The example of each cross, and for each input the position, in the example, of its element."""
    if float(reduce(np.multiply, counts, np.ones(1)).sum()) > _MOST:
        raise MemoryError(
            f"crosses of {len(counts)} inputs with up to {[int(x.max()) for x in counts]} elements"
        )
    totals = reduce(np.multiply, counts)
    examples = np.repeat(np.arange(len(totals)), totals)
    rest = np.arange(len(examples)) - np.repeat(np.cumsum(totals) - totals, totals)
    places = []
    for count in reversed(counts):
        rest, place = np.divmod(rest, count[examples])
        places.append(place)
    return examples, places[::-1]


def crossed(
    columns: Sequence[_Column], batch: int, combine: Callable[[list[_Array], list[Any]], Any]
) -> tuple[torch.Tensor, Any, torch.Tensor]:
    """The sparse tensor of what `combine` makes of the elements' places and the columns' elements."""
    if not columns:
        return torch.zeros((0, 2), dtype=torch.int64), combine([], []), torch.tensor([batch, 0])
    examples, places = _combinations([count for _, count, _ in columns])
    chosen = [column[0][examples] + place for column, place in zip(columns, places)]
    totals = np.bincount(examples, minlength=batch)
    within = np.arange(len(examples)) - np.repeat(np.cumsum(totals) - totals, totals)
    largest = int(totals.max()) if batch else 0
    rows = torch.from_numpy(np.stack((examples, within), 1))
    return rows, combine(chosen, [column[2] for column in columns]), torch.tensor([batch, largest])


# ---- what a cross is


def _texts(values: _Array) -> list[bytes]:
    found: list[bytes] = (values if values.dtype == object else values.astype("S21")).tolist()
    return found


def joined_texts(separator: bytes) -> Callable[[list[_Array], list[Any]], _Array]:
    """What makes crosses as texts, for `crossed`."""

    def join(chosen: list[_Array], columns: list[Any]) -> _Array:
        parts = []
        for places, values in zip(chosen, columns):
            texts = np.empty(len(values), object)
            texts[:] = _texts(values)
            parts.append(texts[places].tolist())
        found = [separator.join(each) for each in zip(*parts)]
        result = np.empty(len(found), object)
        result[:] = found
        return result

    return join


def _bucket(hashes: _Array, buckets: int) -> torch.Tensor:
    limit = np.uint64(buckets) if buckets > 0 else _LARGEST
    return torch.from_numpy((hashes % limit).astype(np.int64))


def keyed(key: int, buckets: int) -> Callable[[list[_Array], list[Any]], torch.Tensor]:
    """What makes crosses as hashes, for `crossed`."""

    def fold(chosen: list[_Array], columns: list[Any]) -> torch.Tensor:
        total: _Array = np.full(len(chosen[0]) if chosen else 0, key % 2**64, np.uint64)
        for places, values in zip(chosen, columns):
            hashes = fingerprint64(values.tolist()) if values.dtype == object else values.view(np.uint64)
            total = fingerprint_cat64(total, hashes[places])
        return _bucket(total, buckets)

    return fold


def _fingerprints(values: _Array, salt: tuple[int, int] | None) -> _Array:
    strings = values.tolist()
    if values.dtype != object:
        four = values.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :4]
        strings = [row.tobytes() for row in four]
    return fingerprint64(strings) if salt is None else sip_hash(strings, salt)


def _hashed(buckets: int, salt: tuple[int, int] | None) -> Callable[[list[_Array], list[Any]], torch.Tensor]:
    def fold(chosen: list[_Array], columns: list[Any]) -> torch.Tensor:
        hashes = [_fingerprints(values, salt)[places] for places, values in zip(chosen, columns)]
        return _bucket(reduce(fingerprint_cat64, hashes) if hashes else np.zeros(0, np.uint64), buckets)

    return fold


def _combined(buckets: int) -> Callable[[list[_Array], list[Any]], torch.Tensor]:
    def fold(chosen: list[_Array], columns: list[Any]) -> torch.Tensor:
        total: _Array = np.full(len(chosen[0]) if chosen else 0, _DEFAULT_KEY, np.uint64)
        for places, values in zip(chosen, columns):
            hashes = fingerprint64(values.tolist()) if values.dtype == object else values.view(np.uint64)
            spread = (total << np.uint64(10)) + (total.view(np.int64) >> 4).view(np.uint64)
            total = total ^ (hashes[places] + _GOLDEN_RATIO + spread)
        return _bucket(total, buckets)

    return fold


# ---- ops


def _columns(node: Node, inputs: Sequence[Any]) -> tuple[list[_Column], int]:
    """The inputs' columns, and the number of examples. InvalidArgumentError where they do not fit."""
    count, dense_count = node.attributes["N"], len(node.attributes["dense_types"])
    value_count = len(node.attributes["sparse_types"])
    if value_count != count:
        raise invalid(f"Expected {count} input values, got {value_count}")
    indices, values, shapes = (inputs[part * count : (part + 1) * count] for part in range(3))
    dense = inputs[3 * count : 3 * count + dense_count]
    check_sparse_features(indices, values, shapes)
    batch = _batch_size(shapes, dense)
    for i, each in enumerate(dense):
        if each.ndim != 2:
            raise invalid(
                f"Dense inputs should be a matrix but received shape {listed(each.shape)} at position {i}"
            )
        if each.shape[0] != batch:
            raise invalid(f"Expected batch size {batch} got {each.shape[0]} at dense tensor {i}")
    if batch < 0:
        raise invalid(f"The batch size {batch} is negative")
    if batch > _MOST:
        raise MemoryError(f"crosses of {batch} examples")
    columns = [sparse_column(rows, each, batch) for rows, each in zip(indices, values)]
    return [*columns, *[dense_column(each, batch) for each in dense]], batch


def check_sparse_features(indices: Sequence[Any], values: Sequence[Any], shapes: Sequence[Any]) -> None:
    """InvalidArgumentError unless the parts of sparse matrices and their examples fit together."""
    for i, (rows, each, shape) in enumerate(zip(indices, values, shapes)):
        if rows.ndim != 2:
            raise invalid(
                f"Input indices should be a matrix but received shape {listed(rows.shape)} at position {i}"
            )
        if rows.shape[1] != 2:
            raise invalid(f"Expected D2 of index to be 2 got {rows.shape[1]} at position {i}")
        if each.ndim != 1 or len(each) != len(rows):
            raise invalid(
                f"Expected size of values to be {len(rows)} got {listed(each.shape)} at position {i}"
            )
        if tuple(shape.shape) != (2,):
            raise invalid(f"Expected a shape of 2 sizes but received {listed(shape.shape)} at position {i}")
        if int(shape[0]) != int(shapes[0][0]):
            raise invalid(f"Expected batch size {int(shapes[0][0])} got {int(shape[0])} at position {i}")


def _declare(name: str, more: str, output: str, attributes: str) -> OpDeclaration:
    declaration = op(
        name,
        f"{_INPUTS}{more} -> output_indices: int64, output_values: {output}, output_shape: int64",
        f"{_LISTS}{attributes}",
        cost=50,
    ).not_differentiable()

    @declaration.infer
    def _(node: Node) -> Shapes:
        return [(None, 2), (None,), (2,)]

    return declaration


sparse_cross_op = _declare(
    "SparseCross",
    "",
    "out_type",
    f" ; hashed_output: bool ; num_buckets: int >= 0 ; hash_key: int ; out_type: {KINDS} ; "
    f"internal_type: {KINDS}",
)


@sparse_cross_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    given = node.attributes
    as_text = given["out_type"] is dtypes.string
    combine: Any = joined_texts(b"_X_") if as_text else keyed(given["hash_key"], given["num_buckets"])

    def cross(*inputs: Any) -> tuple[torch.Tensor, Any, torch.Tensor]:
        if given["internal_type"] is dtypes.string:
            for what, types in (("Input values", "sparse_types"), ("Dense inputs", "dense_types")):
                if any(dtype is not dtypes.string for dtype in given[types]):
                    raise invalid(f"{what} should be of internal type string but received int64")
        columns, batch = _columns(node, inputs)
        return crossed(columns, batch, combine)

    return cross


sparse_feature_cross_op = _declare(
    "SparseFeatureCross",
    "",
    "out_type",
    f" ; hashed_output: bool ; num_buckets: int >= 0 ; out_type: {KINDS} ; internal_type: {KINDS}",
)


@sparse_feature_cross_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    given = node.attributes
    as_text = given["out_type"] is dtypes.string
    combine: Any = joined_texts(b"_X_") if as_text else _combined(given["num_buckets"])

    def cross(*inputs: Any) -> tuple[torch.Tensor, Any, torch.Tensor]:
        columns, batch = _columns(node, inputs)
        return crossed(columns, batch, combine)

    return cross


sparse_cross_v2_op = _declare("SparseCrossV2", ", sep: string", "string", "")


@sparse_cross_v2_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    def cross(*inputs: Any) -> tuple[torch.Tensor, Any, torch.Tensor]:
        columns, batch = _columns(node, inputs)
        return crossed(columns, batch, joined_texts(bytes(np.asarray(inputs[-1], object)[()])))

    return cross


sparse_cross_hashed_op = _declare(
    "SparseCrossHashed", ", num_buckets: int64, strong_hash: bool, salt: int64", "int64", ""
)


@sparse_cross_hashed_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    def cross(*inputs: Any) -> tuple[torch.Tensor, Any, torch.Tensor]:
        *tensors, buckets, strong, salt = inputs
        if salt.ndim != 1 or len(salt) != 2:
            raise invalid(f'Input "salt" must have length 2 but has length {salt.numel()}')
        columns, batch = _columns(node, tensors)
        low, high = salt.tolist()
        return crossed(columns, batch, _hashed(int(buckets), (low, high) if bool(strong) else None))

    return cross


# ---- public functions


def sparse_cross(
    inputs: Sequence[Any], name: str | None = None, separator: str | None = None
) -> SparseTensor:
    """The crosses of each example's features, as text.

    Args:
        inputs: list of Tensors or SparseTensors [examples, any] of strings or integers; those that are sparse
            have indices in row-major order.
        name: the node's name.
        separator: what stands between the parts; default "_X_".

    Returns:
        SparseTensor [examples, most crosses of one] of strings: one element of each input, the sparse inputs
        first, in all combinations.

    Raises:
        TypeError: what is no list, or no tensors.
        InvalidArgumentError: (in the step) unequal numbers of examples, or other shapes.
    """
    sparse, dense = _features(inputs)
    if separator is not None:
        return SparseTensor(*sparse_cross_v2_op.several(*_parts(sparse), dense, separator, name=name))
    types = {each.values.dtype.base_dtype for each in sparse} | {each.dtype.base_dtype for each in dense}
    internal = dtypes.int64 if dtypes.int64 in types else dtypes.string
    options = {"hashed_output": False, "num_buckets": 0, "hash_key": _DEFAULT_KEY, "out_type": dtypes.string}
    found = sparse_cross_op.several(*_parts(sparse), dense, internal_type=internal, **options, name=name)
    return SparseTensor(*found)


def sparse_cross_hashed(
    inputs: Sequence[Any], num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """The crosses of each example's features, as hashes.

    Args:
        inputs: see `sparse_cross`.
        num_buckets: hashes are taken modulo this number, if it is not 0.
        hash_key: the number that the hash starts from; None for TensorFlow's own.
        name: the node's name.

    Returns:
        SparseTensor [examples, most crosses of one] of int64.
    """
    sparse, dense = _features(inputs)
    options = {
        "hashed_output": True,
        "num_buckets": num_buckets,
        "hash_key": _DEFAULT_KEY if hash_key is None else hash_key,
        "out_type": dtypes.int64,
        "internal_type": dtypes.int64,
    }
    return SparseTensor(*sparse_cross_op.several(*_parts(sparse), dense, **options, name=name))


def sparse_feature_cross_hashed(
    inputs: Sequence[Any], num_buckets: int = 0, name: str | None = None
) -> SparseTensor:
    """`sparse_cross_hashed` with the hash of TensorFlow's first years, which has no key."""
    sparse, dense = _features(inputs)
    options = {
        "hashed_output": True,
        "num_buckets": num_buckets,
        "out_type": dtypes.int64,
        "internal_type": dtypes.int64,
    }
    return SparseTensor(*sparse_feature_cross_op.several(*_parts(sparse), dense, **options, name=name))


def _features(inputs: Any) -> tuple[list[SparseTensor], list[Tensor]]:
    """The sparse and the dense inputs, integers as int64."""
    if not isinstance(inputs, (list, tuple)) or isinstance(inputs, SparseTensorValue):
        raise TypeError("Inputs must be a list")
    for each in inputs:
        if not isinstance(each, (Tensor, SparseTensor, SparseTensorValue)):
            raise TypeError(f"All inputs must be Tensor or SparseTensor, not {each!r}.")
    sparse = [each for each in inputs if not isinstance(each, Tensor)]
    whole = [SparseTensor(x.indices, _feature(x.values), x.dense_shape) for x in sparse]
    return whole, [_feature(each) for each in inputs if isinstance(each, Tensor)]


def _feature(values: Any) -> Tensor:
    tensor = convert_to_tensor(values)
    if tensor.dtype.base_dtype in (dtypes.string, dtypes.int64):
        return tensor
    return cast(tensor, dtypes.int64)  # type: ignore[no-any-return]


def _parts(sparse: Sequence[SparseTensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    return (
        [each.indices for each in sparse],
        [each.values for each in sparse],
        [each.dense_shape for each in sparse],
    )
