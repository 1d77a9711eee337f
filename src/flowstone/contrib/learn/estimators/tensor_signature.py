"""Signatures of tensors: their types and shapes, but for the batch, with which later inputs are compared."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import flowstone as tf

__all__ = [
    "TensorSignature",
    "create_example_parser_from_signatures",
    "create_placeholders_from_signatures",
    "create_signatures",
    "tensors_compatible",
]

_Fields = namedtuple("_Fields", ["dtype", "shape", "is_sparse"])


class TensorSignature(_Fields):
    """The type and shape of a tensor, and whether it is sparse.

    `TensorSignature(tensor)` takes them from a tensor or SparseTensor; the first size of a dense one, the
    batch, is left open.
    """

    __slots__ = ()

    def __new__(cls, tensor: Any) -> TensorSignature:
        if isinstance(tensor, tf.SparseTensor):
            return super().__new__(cls, tensor.values.dtype, None, True)
        shape = tensor.shape
        open_batch = shape if shape.ndims in (None, 0) else tf.TensorShape([None]).concatenate(shape[1:])
        return super().__new__(cls, tensor.dtype, open_batch, False)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor of the signature `other` can stand where this one did."""

        def shapes_fit(one: Any, another: Any) -> bool:
            if one is None and another is None:
                return True
            if one is None or another is None:
                return False
            return bool(tf.TensorShape(one).is_compatible_with(another))

        return bool(
            self.dtype.is_compatible_with(other.dtype)
            and shapes_fit(self.shape, other.shape)
            and self.is_sparse == other.is_sparse
        )

    def get_placeholder(self) -> Any:
        """A placeholder of this type and shape."""
        if self.is_sparse:
            return tf.sparse_placeholder(self.dtype)
        return tf.placeholder(self.dtype, self.shape)

    def get_feature_spec(self) -> Any:
        """How a feature of this type and shape is parsed from an Example."""
        dtype = self.dtype
        if dtype not in (tf.float32, tf.int64, tf.string):  # an Example has no other types
            dtype = tf.int64 if dtype.is_integer else tf.float32
        if self.is_sparse:
            return tf.VarLenFeature(dtype)
        return tf.FixedLenFeature(shape=self.shape[1:], dtype=dtype)


def tensors_compatible(tensors: Any, signatures: Any) -> bool:
    """Whether tensors, or a dict of them, fit signatures made of others; surplus tensors do no harm."""
    if tensors is None:
        return signatures is None
    if isinstance(tensors, Mapping):
        if not isinstance(signatures, Mapping):
            return False
        return all(
            name in tensors and TensorSignature(tensors[name]).is_compatible_with(signature)
            for name, signature in signatures.items()
        )
    if signatures is None or isinstance(signatures, Mapping):
        return False
    return TensorSignature(tensors).is_compatible_with(signatures)


def create_signatures(tensors: Any) -> Any:
    """The signature of a tensor, or those of a dict of tensors; None of None."""
    if isinstance(tensors, Mapping):
        return {name: TensorSignature(tensor) for name, tensor in tensors.items()}
    return None if tensors is None else TensorSignature(tensors)


def create_placeholders_from_signatures(signatures: Any) -> Any:
    """Placeholders in the form of `create_signatures`' results."""
    if signatures is None:
        return None
    if isinstance(signatures, Mapping):
        return {name: signature.get_placeholder() for name, signature in signatures.items()}
    return signatures.get_placeholder()


def create_example_parser_from_signatures(
    signatures: Any, examples_batch: Any, single_feature_name: str = "feature"
) -> Any:
    """The tensors of these signatures, parsed from serialised Examples [batch].

    A single signature is that of the feature `single_feature_name`.
    """
    if isinstance(signatures, Mapping):
        spec = {name: signature.get_feature_spec() for name, signature in signatures.items()}
        return tf.parse_example(examples_batch, spec)
    spec = {single_feature_name: signatures.get_feature_spec()}
    return tf.parse_example(examples_batch, spec)[single_feature_name]
