"""`tf.data.experimental.Optional`: an element, or that there is none, as an iterator's end says."""

from __future__ import annotations

from typing import Any

from flowstone.data import specs
from flowstone.data.iterator import Iterator
from flowstone.data.structure import Structure, components, converted
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.tensor import Tensor

__all__ = ["Optional", "get_next_as_optional"]


class Optional:
    """An element of some structure, or none.

    `from_value` and `none_from_structure` make one, `get_next_as_optional` takes one from an iterator.
    """

    def __init__(self, variant: Tensor, structure: Structure) -> None:
        self._variant, self._structure = variant, structure

    @staticmethod
    def from_value(value: Any) -> Optional:
        """The optional of a tensor, or of nested ones."""
        values = converted(value)
        return Optional(F.OptionalFromValue(components(values)), Structure.of_values(values))

    @staticmethod
    def none_from_structure(value_structure: Any) -> Optional:
        """The optional without a value, of elements as nested specs say; see `get_structure`."""
        return Optional(F.OptionalNone(), _structure_of(value_structure))

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether it has a value: a bool scalar."""
        found: Tensor = F.OptionalHasValue(self._variant, name=name)
        return found

    def get_value(self, name: str | None = None) -> Any:
        """The value, nested as the elements. Its step fails with InvalidArgumentError if there is none."""
        tensors: Any = F.OptionalGetValue(self._variant, name=name, **self._structure.attributes)
        return self._structure.unpacked(tensors)

    @property
    def value_structure(self) -> Any:
        """The nested specs of the value."""
        return specs.element_spec_of(self)


def _structure_of(spec: Any) -> Structure:
    types = nest.map_structure(lambda each: each.dtype, spec)
    shapes = nest.map_structure(lambda each: each.shape, spec)
    classes = nest.map_structure(lambda each: each.value_type, spec)
    return Structure.of(types, shapes, classes)


def get_next_as_optional(iterator: Iterator) -> Optional:
    """The next element of the iterator, or the optional without a value at the end."""
    structure = iterator._structure
    variant = F.IteratorGetNextAsOptional(iterator._iterator_resource, **structure.attributes)
    return Optional(variant, structure)
