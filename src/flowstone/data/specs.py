"""`tf.data.DatasetSpec` and `tf.OptionalSpec`: what elements a dataset or an optional value has."""

from __future__ import annotations

from typing import Any

from flowstone.data.dataset import Dataset
from flowstone.data.iterator import Iterator
from flowstone.data.structure import NestedDataset, mapped
from flowstone.framework.tensors import type_specs
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.tensors.type_specs import SparseTensorSpec, TensorSpec, TypeSpec
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.lists.tensor_array import TensorArray
from flowstone.ops.lists.tensor_array_spec import TensorArraySpec

__all__ = [
    "DatasetSpec", "DatasetStructure", "OptionalSpec", "OptionalStructure", "SparseTensorStructure",
    "Structure", "TensorArrayStructure", "TensorStructure", "element_spec_of", "get_structure",
    "type_spec_from_value",
]  # fmt: skip


class DatasetSpec(TypeSpec):
    """A dataset whose elements are as `element_spec`, nested specs, says."""

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec, self._dataset_shape = element_spec, as_shape(dataset_shape)

    @classmethod
    def from_value(cls, value: Dataset) -> DatasetSpec:
        """That of a dataset."""
        return cls(element_spec_of(value))

    @property
    def element_spec(self) -> Any:
        """The nested specs of an element."""
        return self._element_spec

    @property
    def value_type(self) -> type:
        """Dataset."""
        return Dataset

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_spec, self._dataset_shape


class OptionalSpec(TypeSpec):
    """A value as `element_spec`, nested specs, says, or none: a variant tensor."""

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    @property
    def value_type(self) -> type:
        """Tensor."""
        return Tensor

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec,)


def element_spec_of(dataset: Any) -> Any:
    """The nested specs of an element of a dataset or iterator."""

    def spec(leaf: Any) -> TypeSpec:
        if isinstance(leaf.kind, NestedDataset):
            return DatasetSpec(mapped(spec, leaf.kind.elements.form))
        kind = SparseTensorSpec if leaf.kind is SparseTensor else TensorSpec
        return kind(TensorShape(leaf.shape), leaf.dtype)

    return mapped(spec, dataset._structure.form)


def type_spec_from_value(value: Any) -> TypeSpec:
    """The spec of a tensor, variable, array, number or text, sparse tensor, IndexedSlices, TensorArray or
    dataset.

    TypeError for anything else.
    """
    if isinstance(value, Dataset):
        return DatasetSpec.from_value(value)
    if isinstance(value, TensorArray):
        return TensorArraySpec.from_value(value)
    return type_specs.type_spec_from_value(value)


def get_structure(dataset_or_iterator: Any) -> Any:
    """The nested specs of an element of a dataset or iterator; TypeError for anything else."""
    if not isinstance(dataset_or_iterator, (Dataset, Iterator)):
        raise TypeError(
            "`dataset_or_iterator` must be a Dataset or Iterator object, but got "
            f"{type(dataset_or_iterator)}."
        )
    return element_spec_of(dataset_or_iterator)


# ---- the names that TensorFlow 1.13 to 1.15 had for specs

Structure, DatasetStructure, OptionalStructure = TypeSpec, DatasetSpec, OptionalSpec


def TensorStructure(dtype: Any, shape: Any) -> TensorSpec:
    """The spec of a tensor."""
    return TensorSpec(shape, dtype)


def SparseTensorStructure(dtype: Any, shape: Any) -> SparseTensorSpec:
    """The spec of a sparse tensor."""
    return SparseTensorSpec(shape, dtype)


def TensorArrayStructure(
    dtype: Any, element_shape: Any, dynamic_size: bool = False, infer_shape: bool = True
) -> TensorArraySpec:
    """The spec of a TensorArray."""
    return TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)
