"""What a value is before there is one: `tf.TensorSpec` and its kin, with types and static shapes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor
from flowstone.framework.tensors.dispatch import Ragged
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape, as_shape

__all__ = [
    "BatchableTypeSpec", "IndexedSlicesSpec", "NoneTensorSpec", "SparseTensorSpec", "TensorSpec", "TypeSpec",
    "type_spec_from_value",
]  # fmt: skip


class TypeSpec(ABC):
    """The type of a value of the graph. Equal specs have the same class and parts."""

    @property
    @abstractmethod
    def value_type(self) -> type:
        """The class of the values."""

    @abstractmethod
    def _serialize(self) -> tuple[Any, ...]:
        """The parts that make it, in the order of the constructor's arguments."""

    def _fits(self, value: Any) -> Any:
        """The spec of a value, or the spec itself."""
        return value if isinstance(value, TypeSpec) else type_spec_from_value(value)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or values of another spec, may be of this one: known sizes and types agree."""
        try:
            other = self._fits(spec_or_value)
        except (TypeError, ValueError):
            return False
        if type(other) is not type(self):
            return False
        return all(_agree(a, b) for a, b in zip(self._serialize(), other._serialize()))

    def most_specific_compatible_type(self, other: TypeSpec) -> TypeSpec:
        """The spec of all values of both; sizes that differ are unknown. ValueError if there is none."""
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return found

    def most_specific_common_supertype(self, others: Any) -> TypeSpec | None:
        """The spec of all values of this and of `others`, or None."""
        parts = self._serialize()
        for other in others:
            if type(other) is not type(self):
                return None
            pairs = list(zip(parts, other._serialize()))
            if not all(a == b or isinstance(a, TensorShape) for a, b in pairs):
                return None
            parts = tuple(_joined(a, b) if isinstance(a, TensorShape) else a for a, b in pairs)
        return type(self)(*parts)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether each value of this spec is one of `other`."""
        return type(other) is type(self) and self.most_specific_common_supertype([other]) == other

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        return _comparable(self) == _comparable(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), _comparable(self)))

    def __repr__(self) -> str:
        parts = ", ".join(map(repr, self._serialize()))
        return f"{type(self).__name__}({parts})"


def _comparable(spec: TypeSpec) -> tuple[Any, ...]:
    return tuple(_bare(part) for part in spec._serialize())


def _bare(part: Any) -> Any:
    if isinstance(part, TensorShape):
        return None if part.ndims is None else tuple(part.as_list())
    if isinstance(part, dict):
        return tuple((key, _bare(part[key])) for key in sorted(part))
    return tuple(map(_bare, part)) if isinstance(part, (list, tuple)) else part


def _agree(a: Any, b: Any) -> bool:
    return a.is_compatible_with(b) if isinstance(a, TensorShape) else bool(a == b)


def _joined(a: TensorShape, b: TensorShape) -> TensorShape:
    """The shape that has the sizes in which both agree."""
    if a.ndims is None or a.ndims != b.ndims:
        return TensorShape(None)
    return TensorShape([m if m == n else None for m, n in zip(a.as_list(), b.as_list())])


class BatchableTypeSpec(TypeSpec):
    """A spec of values that can be batched: `_batch` and `_unbatch` give those of batches and elements."""

    def _batch(self, batch_size: Any) -> TypeSpec:
        """The spec of `batch_size` such values together, of any number for None."""
        raise NotImplementedError(f"{type(self).__name__}._batch")

    def _unbatch(self) -> TypeSpec:
        """The spec of an element of these values."""
        raise NotImplementedError(f"{type(self).__name__}._unbatch")


class _TensorLike(BatchableTypeSpec):
    """Of one type and one static shape."""

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape, self._dtype = as_shape(shape), dtypes.as_dtype(dtype)

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype

    def _batch(self, batch_size: Any) -> TypeSpec:
        return type(self)(as_shape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> TypeSpec:
        if self._shape.ndims == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return type(self)(self._shape[1:], self._dtype)


class TensorSpec(_TensorLike):
    """A tensor of type `dtype` and static shape `shape`; `name` is free."""

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        super().__init__(shape, dtype)
        self._name = name

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """The same shape and type, and the name of `spec` unless another is given."""
        return cls(spec.shape, spec.dtype, name or getattr(spec, "name", None))

    @classmethod
    def from_tensor(cls, tensor: Tensor, name: str | None = None) -> TensorSpec:
        """That of a tensor, with its name (that of its operation) unless another is given."""
        return cls(tensor.shape, tensor.dtype, name or tensor.op.name)

    @property
    def name(self) -> str | None:
        """The name, or None."""
        return self._name

    @property
    def value_type(self) -> type:
        """Tensor."""
        return Tensor

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor or another TensorSpec may be of this type; names do not matter."""
        if not isinstance(spec_or_tensor, (Tensor, TensorSpec)) and not _is_variable(spec_or_tensor):
            return False
        shape, dtype = spec_or_tensor.shape, spec_or_tensor.dtype
        return bool(self._dtype.is_compatible_with(dtype) and self._shape.is_compatible_with(shape))

    def most_specific_common_supertype(self, others: Any) -> TensorSpec | None:
        """The spec of all values of this and of `others`; None without one, and if a name is another."""
        shape = self._shape
        for other in others:
            if not isinstance(other, TensorSpec) or other.dtype != self._dtype:
                return None
            if self._name not in (None, other.name):
                return None
            shape = _joined(shape, other.shape)
        return TensorSpec(shape, self._dtype, self._name)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether each tensor of this spec is one of `other`."""
        if (
            not isinstance(other, TensorSpec)
            or other.dtype != self._dtype
            or other.name not in (None, self._name)
        ):
            return False
        return bool(_bare(_joined(self._shape, other.shape)) == _bare(other.shape))

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._name

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


class SparseTensorSpec(_TensorLike):
    """A SparseTensor of type `dtype` and static shape `shape`."""

    @classmethod
    def from_value(cls, value: SparseTensor) -> SparseTensorSpec:
        """That of a sparse tensor."""
        return cls(value.shape, value.dtype)

    @property
    def value_type(self) -> type:
        """SparseTensor."""
        return SparseTensor


class IndexedSlicesSpec(TypeSpec):
    """IndexedSlices: the whole has `shape` and `dtype`; `dense_shape_dtype` is None without a dense shape."""

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        self._shape, self._values_dtype = as_shape(shape), dtypes.as_dtype(dtype)
        self._indices_dtype = dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape([None]) if indices_shape is None else as_shape(indices_shape)

    @property
    def value_type(self) -> type:
        """IndexedSlices."""
        return IndexedSlices

    def _serialize(self) -> tuple[Any, ...]:
        return (
            self._shape, self._values_dtype, self._indices_dtype, self._dense_shape_dtype,
            self._indices_shape,
        )  # fmt: skip


class NoneTensorSpec(TypeSpec):
    """No value."""

    @property
    def value_type(self) -> type:
        """The class of None."""
        return type(None)

    def _serialize(self) -> tuple[Any, ...]:
        return ()


def _is_variable(value: Any) -> bool:
    return hasattr(value, "_as_graph_element") and hasattr(value, "initializer")


def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a tensor, array, number or text, sparse tensor, or IndexedSlices. TypeError otherwise."""
    if isinstance(value, SparseTensor):
        return SparseTensorSpec.from_value(value)
    if isinstance(value, Ragged):
        return value._type_spec  # type: ignore[no-any-return]
    if isinstance(value, IndexedSlices):
        shape = value.dense_shape
        return IndexedSlicesSpec(
            TensorShape([None]).concatenate(value.values.shape[1:]), value.dtype, value.indices.dtype,
            None if shape is None else shape.dtype, value.indices.shape,
        )  # fmt: skip
    if isinstance(value, Tensor) or _is_variable(value):
        return TensorSpec(value.shape, value.dtype.base_dtype)
    if isinstance(value, np.ndarray):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, (bool, int, float, complex, str, bytes, np.generic, list, tuple)):
        constant = convert_to_tensor(value)
        return TensorSpec(constant.shape, constant.dtype)
    raise TypeError(f"Could not build a TypeSpec for {value!r} of unsupported type {type(value)}.")
