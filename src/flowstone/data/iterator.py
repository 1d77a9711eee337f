"""`Iterator`: hands out the elements of a dataset to the steps of a session."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from flowstone.data.structure import Structure
from flowstone.framework.declarations.operation import F
from flowstone.framework.functions.function import Defun
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes

__all__ = ["ITERATORS", "Iterator"]

ITERATORS = "iterators"
"""The collection of the iterators' resources."""

_MANY_CALLS = 32  # of `get_next`: a program that has so many calls it in a loop


class Iterator:
    """What gives the next element of a dataset each time that the tensors of `get_next` are computed.

    At the end they raise OutOfRangeError.
    """

    def __init__(
        self,
        iterator_resource: Tensor,
        initializer: Operation | None,
        output_types: Any,
        output_shapes: Any,
        output_classes: Any = None,
    ) -> None:
        self._iterator_resource, self._initializer = iterator_resource, initializer
        self._structure = Structure.of(output_types, output_shapes, output_classes)
        self._calls = 0
        self._string_handle: Tensor = F.IteratorToStringHandle(iterator_resource)
        get_default_graph().add_to_collection(ITERATORS, iterator_resource)

    # ---- others than of one dataset

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: str | None = None,
        output_classes: Any = None,
    ) -> Iterator:
        """An iterator for any dataset with such elements, which `make_initializer` gives it.

        `output_types`, `output_shapes` (unknown if None), `output_classes`: nested as the elements.
        """
        structure = Structure.of(output_types, output_shapes, output_classes)
        handle = F.IteratorV2(shared_name=shared_name or "", container="", **structure.attributes)
        return Iterator(handle, None, structure.types, structure.shapes, structure.classes)

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """The iterator of this session whose `string_handle` is fed or computed."""
        structure = Structure.of(output_types, output_shapes, output_classes)
        text = convert_to_tensor(string_handle, dtypes.string)
        handle = F.IteratorFromStringHandleV2(text, **structure.attributes)
        return Iterator(handle, None, structure.types, structure.shapes, structure.classes)

    @property
    def initializer(self) -> Operation:
        """The operation that begins a pass. ValueError if the iterator has none."""
        if self._initializer is None:
            raise ValueError("Iterator does not have an initializer.")
        return self._initializer

    def make_initializer(self, dataset: Any, name: str | None = None) -> Operation:
        """An operation that begins a pass over `dataset`. TypeError or ValueError if its elements do not fit
        the iterator's."""
        mine, others = self._structure, dataset._structure
        if str(mine.types) != str(others.types) or str(mine.classes) != str(others.classes):
            raise TypeError(
                f"Expected output types {mine.types!r} but got dataset with output types {others.types!r}."
            )
        for leaf, other in zip(mine.leaves, others.leaves):
            if not leaf.shape.is_compatible_with(other.shape):
                raise TypeError(
                    f"Expected output shapes compatible with {mine.shapes!r} but got dataset with output "
                    f"shapes {others.shapes!r}."
                )
        graph = get_default_graph()
        with (
            graph.name_scope(name or "make_initializer") as name,
            graph.colocate_with(self._iterator_resource),
        ):
            made: Operation = F.MakeIterator.operation(
                dataset._as_variant_tensor(), self._iterator_resource, name=name
            )
        return made

    # ---- elements

    def get_next(self, name: str | None = None) -> Any:
        """The next element, nested as the dataset's; computed once in a step, however many take it."""
        self._calls += 1
        if self._calls == _MANY_CALLS + 1:
            warnings.warn(
                f"An iterator's get_next() has been called more than {_MANY_CALLS} times: each call adds "
                "operations. Call it once, and run its tensors again and again.",
                stacklevel=2,
            )
        tensors: Any = F.IteratorGetNext(self._iterator_resource, name=name, **self._structure.attributes)
        return self._structure.unpacked(tensors)

    def string_handle(self, name: str | None = None) -> Tensor:
        """The handle, a string scalar, by which `from_string_handle` finds it in the same session."""
        if name is None:
            return self._string_handle
        handle: Tensor = F.IteratorToStringHandle(self._iterator_resource, name=name)
        return handle

    @property
    def element_spec(self) -> Any:
        """The nested specs of an element; see `Dataset.element_spec`."""
        return import_module("flowstone.data.specs").element_spec_of(self)

    @property
    def output_classes(self) -> Any:
        """The class of each component."""
        return self._structure.classes

    @property
    def output_shapes(self) -> Any:
        """The TensorShape of each component."""
        return self._structure.shapes

    @property
    def output_types(self) -> Any:
        """The DType of each component."""
        return self._structure.types


def initializable_iterator(structure: Structure, dataset: Tensor, shared_name: str | None) -> Iterator:
    """See `Dataset.make_initializable_iterator`."""
    handle = F.IteratorV2(shared_name=shared_name or "", container="", **structure.attributes)
    with get_default_graph().colocate_with(handle):
        initializer = F.MakeIterator.operation(dataset, handle)
    return Iterator(handle, initializer, structure.types, structure.shapes, structure.classes)


def one_shot_iterator(structure: Structure, make: Callable[[], Tensor]) -> Iterator:
    """See `Dataset.make_one_shot_iterator`."""

    def _make_dataset() -> Tensor:
        return make()

    factory = Defun(capture_by_value=True)(_make_dataset)
    try:
        factory.add_to_graph(get_default_graph())
    except ValueError as error:
        if "Cannot capture a stateful node" in str(error):
            raise ValueError(
                "Failed to create a one-shot iterator for a dataset. `Dataset.make_one_shot_iterator()` "
                "does not support datasets that capture stateful objects, such as a `Variable` or "
                "`LookupTable`. In these cases, use `Dataset.make_initializable_iterator()`. "
                f"(Original error: {error})"
            ) from None
        raise
    handle = F.OneShotIterator(dataset_factory=factory.name, **structure.attributes)
    return Iterator(handle, None, structure.types, structure.shapes, structure.classes)
