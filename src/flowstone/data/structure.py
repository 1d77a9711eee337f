"""`Structure`: what the elements of a dataset are: nested tuples and dicts of tensors, sparse tensors and
datasets.

Lists are not nested: as a component, a list is converted to a tensor. A sparse tensor travels as a vector of
three variants (its indices, values and shape), a dataset as a variant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flowstone.framework.tensors.composite import SparseTensor, SparseTensorValue
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.sparse.sparse_conversions import (
    deserialize_sparse,
    serialize_many_sparse,
    serialize_sparse,
)


def is_nested(form: Any) -> bool:
    """Whether it is a tuple or dict of other forms."""
    return isinstance(form, (tuple, Mapping)) and not isinstance(form, SparseTensorValue)


def flatten(form: Any) -> list[Any]:
    """The leaves, dicts in the order of their sorted keys."""
    if isinstance(form, Mapping):
        return [leaf for key in sorted(form) for leaf in flatten(form[key])]
    return [leaf for child in form for leaf in flatten(child)] if is_nested(form) else [form]


def packed(form: Any, leaves: Sequence[Any]) -> Any:
    """A form like `form` of these leaves."""
    return _packed(form, iter(leaves))


def _packed(form: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(form, Mapping):
        found = {key: _packed(form[key], leaves) for key in sorted(form)}
        return type(form)((key, found[key]) for key in form)  # type: ignore[call-arg]
    if is_nested(form):
        children = [_packed(child, leaves) for child in form]
        return type(form)(*children) if hasattr(form, "_fields") else tuple(children)
    return next(leaves)


def mapped(function: Callable[[Any], Any], form: Any) -> Any:
    """A form like `form`, with ``function(leaf)`` for each leaf."""
    return packed(form, [function(leaf) for leaf in flatten(form)])


def flatten_like(form: Any, other: Any, what: str) -> list[Any]:
    """What stands in `other` where `form` has leaves. TypeError or ValueError if its form is another."""
    if not is_nested(form):
        return [other]
    if isinstance(form, Mapping):
        if not isinstance(other, Mapping):
            raise TypeError(f"{what} must be a dict like the elements, but is a {type(other).__name__}")
        if sorted(form) != sorted(other):
            raise ValueError(f"{what} must have the keys {sorted(form)}, not {sorted(other)}")
        return [leaf for key in sorted(form) for leaf in flatten_like(form[key], other[key], what)]
    if not isinstance(other, (tuple, list)) or isinstance(other, TensorShape):
        raise TypeError(f"{what} must be a tuple like the elements, but is a {type(other).__name__}")
    if len(other) != len(form):
        raise ValueError(f"{what} must have {len(form)} parts like the elements, but has {len(other)}")
    return [leaf for pair in zip(form, other) for leaf in flatten_like(*pair, what)]


@dataclass(frozen=True, repr=False)
class NestedDataset:
    """The class of components that are datasets: what their `elements` are, and the dataset that a variant
    tensor is, ``of_variant(tensor, elements)``."""

    elements: Structure
    of_variant: Callable[[Tensor, Structure], Any]

    def __repr__(self) -> str:
        return f"NestedDataset({self.elements.shapes}, {self.elements.types}, {self.elements.classes})"

    def leaf(self) -> Leaf:
        """The component."""
        return Leaf(self, dtypes.variant, TensorShape([]))


@dataclass(frozen=True)
class Leaf:
    """A component: `kind`, Tensor, SparseTensor or a NestedDataset, and the type and static shape of its
    values."""

    kind: type | NestedDataset
    dtype: DType
    shape: TensorShape

    @property
    def is_sparse(self) -> bool:
        """Whether it is a sparse tensor."""
        return self.kind is SparseTensor


class Structure:
    """The nested `form` of `Leaf`s."""

    def __init__(self, form: Any) -> None:
        self.form, self.leaves = form, flatten(form)

    @classmethod
    def of(cls, types: Any, shapes: Any = None, classes: Any = None) -> Structure:
        """From the nested types, shapes (unknown if None) and classes (Tensor if None)."""
        types = mapped(dtypes.as_dtype, types)
        flat = flatten(types)
        unknown = [None] * len(flat)
        flat_shapes = unknown if shapes is None else flatten_like(types, shapes, "output_shapes")
        flat_classes = (
            [Tensor] * len(flat) if classes is None else flatten_like(types, classes, "output_classes")
        )
        leaves = [
            Leaf(kind, dtype, as_shape(shape)) for kind, dtype, shape in zip(flat_classes, flat, flat_shapes)
        ]
        return cls(packed(types, leaves))

    @classmethod
    def of_values(cls, values: Any) -> Structure:
        """That of converted values, see `converted`."""
        return cls(mapped(_leaf_of, values))

    # ---- views

    def __str__(self) -> str:
        """As TensorFlow prints it: `shapes: (?, 3), types: tf.float32`."""
        shapes = mapped(lambda leaf: str(leaf.shape), self.form)
        types = mapped(lambda leaf: f"tf.{leaf.dtype.name}", self.form)
        return f"shapes: {shapes}, types: {types}".replace("'", "")

    @property
    def types(self) -> Any:
        """The nested types."""
        return mapped(lambda leaf: leaf.dtype, self.form)

    @property
    def shapes(self) -> Any:
        """The nested shapes, TensorShapes."""
        return mapped(lambda leaf: leaf.shape, self.form)

    @property
    def classes(self) -> Any:
        """The nested classes."""
        return mapped(lambda leaf: leaf.kind, self.form)

    def unbatched(self) -> Structure:
        """That of the elements of batches. ValueError for components that are scalars."""
        if any(leaf.shape.ndims == 0 for leaf in self.leaves):
            raise ValueError("Cannot unbatch an input with scalar components.")
        known = [leaf.shape[0].value for leaf in self.leaves if leaf.shape.ndims and not leaf.is_sparse]
        sizes = {size for size in known if size is not None}
        if len(sizes) > 1:
            raise ValueError("Cannot unbatch an input whose components have different batch sizes.")
        return self.with_shapes(lambda shape: shape if shape.ndims is None else shape[1:])

    def with_shapes(self, change: Callable[[TensorShape], TensorShape]) -> Structure:
        """The same with ``change(shape)`` in place of each shape."""
        return Structure(mapped(lambda leaf: replace(leaf, shape=change(leaf.shape)), self.form))

    def common_with(self, other: Structure) -> Structure:
        """The same with shapes of which those of both are special cases."""
        pairs = zip(self.leaves, other.leaves, strict=True)
        leaves = [replace(a, shape=a.shape.most_specific_compatible_shape(b.shape)) for a, b in pairs]
        return Structure(packed(self.form, leaves))

    # ---- as components of ops

    @property
    def flat_types(self) -> list[DType]:
        """The types of the components, as they travel."""
        return [dtypes.variant if leaf.is_sparse else leaf.dtype for leaf in self.leaves]

    @property
    def flat_shapes(self) -> list[Any]:
        """The static shapes of the components, as they travel."""
        return [TensorShape(None) if leaf.is_sparse else leaf.shape for leaf in self.leaves]

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of dataset ops with these elements."""
        return {"output_types": self.flat_types, "output_shapes": self.flat_shapes}

    def unpacked(self, tensors: Sequence[Tensor]) -> Any:
        """The nested value that travelled as these tensors."""
        values = []
        for leaf, tensor in zip(self.leaves, tensors, strict=True):
            if leaf.is_sparse:
                rank = leaf.shape.ndims
                value: Any = deserialize_sparse(tensor, leaf.dtype, rank)
            elif isinstance(leaf.kind, NestedDataset):
                value = leaf.kind.of_variant(tensor, leaf.kind.elements)
            else:
                value = tensor
                value.set_shape(leaf.shape)
            values.append(value)
        return packed(self.form, values)


def _leaf_of(value: Any) -> Leaf:
    if is_dataset(value):
        return NestedDataset(value._structure, value._of_variant).leaf()
    kind = SparseTensor if isinstance(value, SparseTensor) else Tensor
    return Leaf(kind, value.dtype.base_dtype, value.shape)


def is_dataset(value: Any) -> bool:
    """Whether it is a dataset (`dataset.py`)."""
    return hasattr(value, "_as_variant_tensor")


def converted(values: Any, name: str = "component_%d") -> Any:
    """Nested values with tensors and SparseTensors as leaves."""
    with get_default_graph().name_scope("normalize_element"):
        leaves = [_as_component(leaf, name % i) for i, leaf in enumerate(flatten(values))]
    return packed(values, leaves)


def _as_component(value: Any, name: str | None = None) -> Any:
    if isinstance(value, SparseTensor) or is_dataset(value):
        return value
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    return convert_to_tensor(value, name=name)


def components(values: Any) -> list[Tensor]:
    """The tensors as which nested values travel."""
    return [_travelling(leaf) for leaf in flatten(values)]


def _travelling(leaf: Any) -> Tensor:
    if isinstance(leaf, SparseTensor):
        return serialize_sparse(leaf, out_type=dtypes.variant)
    tensor: Tensor = leaf._as_variant_tensor() if is_dataset(leaf) else leaf
    return tensor


def as_results(values: Any) -> Any:
    """What a function returned, as nested components: a list becomes a tensor."""
    if isinstance(values, Mapping):
        return type(values)((key, as_results(values[key])) for key in values)  # type: ignore[call-arg]
    if is_nested(values):
        children = [as_results(child) for child in values]
        return type(values)(*children) if hasattr(values, "_fields") else tuple(children)
    return _as_component(values)


def sliced(values: Any) -> list[Tensor]:
    """The components of `values`, sparse ones as vectors of their slices."""
    return [
        serialize_many_sparse(leaf, out_type=dtypes.variant) if isinstance(leaf, SparseTensor) else leaf
        for leaf in flatten(values)
    ]
