"""Strings sorted into buckets by their hashes, and fingerprints of rows; `fingerprints.py` has the hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.machine import string_code
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims, format_dims
from flowstone.framework.types.values import to_numpy
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.elementwise_strings import Strings, as_list, same_shape
from flowstone.ops.strings.fingerprints import fingerprint64, hash64, sip_hash

__all__ = [
    "fingerprint",
    "string_to_hash_bucket",
    "string_to_hash_bucket_fast",
    "string_to_hash_bucket_strong",
]

Hashes = Callable[[Sequence[bytes]], np.ndarray[Any, Any]]


def _declare(
    name: str, argument: str, attributes: str, code: str, make: Callable[[Node], Hashes]
) -> OpDeclaration:
    """`make(node)` gives the hashes, uint64, of a list of strings; `code`: their name where machine code
    computes them."""
    declaration = op(name, f"{argument}: string -> output: int64", attributes, by_element=True)
    declaration.infer(same_shape)

    @declaration.kernel(CPU)  # strings are in host memory
    def _(node: Node, env: Environment) -> Callable[[Strings], torch.Tensor]:
        hashes, buckets = make(node), node.attributes["num_buckets"]
        key = tuple(node.attributes.get("key", (0, 0)))

        def sort(strings: Strings) -> torch.Tensor:
            native = string_code.string_hashes() if strings.flags.c_contiguous else None
            fast = None if native is None else native(code, strings, buckets, key)
            if fast is not None:
                return torch.from_numpy(fast)
            found = (hashes(as_list(strings)) % np.uint64(buckets)).astype(np.int64)
            return torch.from_numpy(found.reshape(strings.shape))

        return sort

    return declaration.not_differentiable()


def _keyed_hashes(node: Node) -> Hashes:
    key = node.attributes["key"]
    if len(key) != 2:
        raise invalid("Key must have 2 elements")
    return lambda strings: sip_hash(strings, key)


string_to_hash_bucket_op = _declare(
    "StringToHashBucket", "string_tensor", "num_buckets: int >= 1", "murmur_hash", lambda node: hash64
)
string_to_hash_bucket_fast_op = _declare(
    "StringToHashBucketFast", "input", "num_buckets: int >= 1", "fingerprint", lambda node: fingerprint64
)
string_to_hash_bucket_strong_op = _declare(
    "StringToHashBucketStrong", "input", "num_buckets: int >= 1 ; key: list(int)", "sip_hash", _keyed_hashes
)


# ---- fingerprints of rows

fingerprint_op = op("Fingerprint", "data: T, method: string -> fingerprint: uint8", T=None, by_element=True)
fingerprint_op.no_gradient()


@fingerprint_op.infer
def _(node: Node) -> Dims:
    dims, method = node.dims(0), node.constant(1)
    if dims is not None and not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if node.dims(1) not in (None, ()):
        raise ValueError("`method` must be rank 0")
    if method is not None and method.item() != b"farmhash64":
        raise ValueError(f"Unsupported method: {method.item().decode('utf-8', 'replace')}")
    return (None if dims is None else dims[0], None if method is None else 8)


@fingerprint_op.kernel(CPU)  # the hashes are NumPy's
def _(node: Node, env: Environment) -> Callable[[Any, Strings], torch.Tensor]:
    dtype = node.dtype(0)

    def fingerprints(data: Any, method: Strings) -> torch.Tensor:
        array = to_numpy(data, dtype)
        if method.ndim:
            raise invalid(f"`method` should be a scalar string: {format_dims(method.shape)}")
        if method.item() != b"farmhash64":
            raise invalid(f"Unsupported fingerprint method: {method.item().decode('utf-8', 'replace')}")
        if not array.ndim:
            raise invalid("`data` should have at least one dimension: []")
        found = fingerprint64(_rows(array))
        return torch.from_numpy(found.astype("<u8").view(np.uint8).reshape(-1, 8))

    return fingerprints


def _rows(array: np.ndarray[Any, Any]) -> list[bytes]:
    """The bytes of each row; of a row of several strings, those of their fingerprints."""
    if array.dtype == object:
        if array.size == len(array):
            return as_list(array)
        array = fingerprint64(as_list(array)).astype("<u8").reshape(len(array), -1)
    flat = np.ascontiguousarray(array.reshape(len(array), array.size // max(len(array), 1)))
    data, size = flat.tobytes(), flat.shape[1] * flat.itemsize
    return [data[i * size : (i + 1) * size] for i in range(len(array))]


# ---- public functions


@dispatched("unary")
def string_to_hash_bucket(
    string_tensor: Any = None, num_buckets: Any = None, name: str | None = None, input: Any = None
) -> Tensor:
    """The bucket, int64 in [0, `num_buckets`), that each string's hash puts it into.

    The hash is MurmurHash64A, as in the first releases of TensorFlow; `string_to_hash_bucket_fast` is
    preferred.
    """
    strings = input if string_tensor is None else string_tensor
    return string_to_hash_bucket_op(strings, num_buckets=num_buckets, name=name)


@dispatched("unary")
def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """The bucket, int64 in [0, `num_buckets`), of each string's FarmHash fingerprint.

    It stays the same for ever. Who may choose strings may fill one bucket with them; see
    `string_to_hash_bucket_strong`.
    """
    return string_to_hash_bucket_fast_op(input, num_buckets=num_buckets, name=name)


@dispatched("unary")
def string_to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Tensor:
    """The bucket, int64 in [0, `num_buckets`), of each string's SipHash-2-4 under `key`, two integers.

    Who does not know the key cannot choose strings of one bucket. A step raises InvalidArgumentError for a
    key of other length.
    """
    return string_to_hash_bucket_strong_op(input, num_buckets=num_buckets, key=key, name=name)


def fingerprint(data: Any, method: Any = "farmhash64", name: str | None = None) -> Tensor:
    """The FarmHash fingerprint of each row of `data`: uint8, [rows, 8], the least significant byte first.

    `data` has any type and at least one dimension. Raises ValueError for another method.
    """
    return fingerprint_op(data, method, name=name)
