"""The methods of `Dataset` that cut elements into windows, which are datasets, and batches into elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from flowstone.data.arguments import as_bool, as_int64
from flowstone.data.functions import ElementFunction, with_function
from flowstone.data.structure import NestedDataset, Structure, mapped, sliced
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor

__all__ = ["Windowed"]


class Windowed:
    """What `Dataset` has of them."""

    @property
    @abstractmethod
    def _structure(self) -> Structure:
        """What the elements are."""

    @abstractmethod
    def _as_variant_tensor(self) -> Tensor:
        """The dataset as a tensor of the default graph."""

    @staticmethod
    @abstractmethod
    def _of_op(kind: str, structure: Structure, make: Callable[[], Tensor]) -> Any:
        """A dataset of the class `kind`, with this structure, that ``make()`` adds to the default graph."""

    @classmethod
    def _of_variant(cls, tensor: Tensor, elements: Structure) -> Any:
        """The dataset that a variant tensor is."""
        return cls._of_op("_VariantDataset", elements, lambda: tensor)

    def window(self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False) -> Any:
        """Windows of `size` elements, each component of which is a Dataset of that component's values.

        A window takes every `stride`-th element and begins `shift` elements (`size` if None) after the one
        before. Windows that the end cuts off are shorter, or dropped with `drop_remainder`.
        """
        shift = size if shift is None else shift
        numbers = [as_int64(size, "size"), as_int64(shift, "shift"), as_int64(stride, "stride")]
        drops = as_bool(drop_remainder)
        form = mapped(
            lambda leaf: NestedDataset(Structure(leaf), self._of_variant).leaf(), self._structure.form
        )
        structure = Structure(form)
        return self._of_op("WindowDataset", structure, lambda: F.WindowDataset(
            self._as_variant_tensor(), *numbers, drops, **structure.attributes))  # fmt: skip

    def unbatch(self) -> Any:
        """The elements of batches. ValueError for components that are scalars."""
        structure = self._structure.unbatched()
        given = ElementFunction(lambda batch: batch, (self._structure,), sliced, "normalize", whole=True)
        batches = self._of_op("MapDataset", self._structure, lambda: with_function(
            F.MapDataset, self, given, self._structure, []))  # fmt: skip
        return self._of_op("UnbatchDataset", structure, lambda: F.UnbatchDataset(
            batches._as_variant_tensor(), **structure.attributes))  # fmt: skip
