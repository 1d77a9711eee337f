"""Datasets that are made of tensors and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.datasets.iteration import Columns, Dataset, Element, Iteration, dataset_op, shape_of
from flowstone.ops.datasets.rows import Rows, slice_of

__all__: list[str] = []


class Counted(Iteration):
    """A pass whose state is how far it has come, `place` of `end`."""

    def __init__(self, end: int) -> None:
        self.place, self.end = 0, end

    def save(self) -> Any:
        """The place."""
        return self.place

    def restore(self, step: Any, state: Any) -> None:
        """Goes to the place."""
        self.place = state


# ---- one element


class TensorDataset(Dataset):
    """One element: `components`."""

    def __init__(self, components: Element) -> None:
        self.components = components

    def iterate(self) -> Iteration:
        """A pass of one element."""
        return _OneElement(self.components)


class _OneElement(Counted):
    def __init__(self, components: Element) -> None:
        super().__init__(1)
        self.components = components

    def next(self, step: Any) -> Element | None:
        if self.place:
            return None
        self.place = 1
        return self.components


def _make_tensors(node: Node, env: Environment) -> Callable[..., Dataset]:
    return lambda *components: TensorDataset(components)


tensor_dataset_op = dataset_op(
    "TensorDataset", "components: *Toutput_types", _make_tensors,
    "Toutput_types: list(type) >= 1", "output_shapes: list(shape) >= 1", stateful=True, keeps=[0],
)  # fmt: skip


# ---- slices


class SliceDataset(Dataset):
    """The slices of `components` along their first dimension, which all have."""

    def __init__(self, components: Element) -> None:
        self.components = components
        self.length = len(components[0])

    def iterate(self) -> Iteration:
        """A pass over the slices."""
        return _Slices(self.components, self.length)

    def rows(self) -> Rows | None:
        """The slices, to be had by number."""
        return Rows(self.components, self.length, self.length) if self.length else None


class _Slices(Counted):
    def __init__(self, components: Element, length: int) -> None:
        super().__init__(length)
        self.components = components

    def next(self, step: Any) -> Element | None:
        place = self.place
        if place >= self.end:
            return None
        self.place = place + 1
        return tuple([slice_of(x, place) for x in self.components])

    def several(self, step: Any, count: int) -> Columns | None:
        place = self.place
        if place >= self.end:
            return None
        self.place = until = min(place + count, self.end)
        return until - place, [x[place:until] for x in self.components]


def _make_slices(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(*components: Any) -> Dataset:
        sizes = {shape_of(x)[:1] for x in components}
        if () in sizes:
            raise invalid("Unable to split a scalar into slices: each component needs a dimension")
        if len(sizes) > 1:
            raise invalid(
                "All components must have the same size in the 0th dimension, but they have "
                f"{[list(shape_of(x)) for x in components]}"
            )
        return SliceDataset(components)

    return make


tensor_slice_dataset_op = dataset_op(
    "TensorSliceDataset", "components: *Toutput_types", _make_slices,
    "Toutput_types: list(type) >= 1 ; is_files: bool = false ; replicate_on_split: bool = false",
    "output_shapes: list(shape) >= 1", stateful=True, keeps=[0],
)  # fmt: skip


# ---- slices of a sparse tensor


class SparseSliceDataset(Dataset):
    """The slices of a sparse tensor along its first dimension: (indices, values, dense_shape) of each."""

    def __init__(self, indices: torch.Tensor, values: Any, dense_shape: torch.Tensor) -> None:
        self.indices, self.values, self.shape = indices, values, dense_shape[1:]
        self.length = int(dense_shape[0])
        self.starts = torch.searchsorted(indices[:, 0].contiguous(), torch.arange(self.length + 1)).tolist()

    def iterate(self) -> Iteration:
        """A pass over the slices."""
        return _SparseSlices(self)


class _SparseSlices(Counted):
    def __init__(self, dataset: SparseSliceDataset) -> None:
        super().__init__(dataset.length)
        self.dataset = dataset

    def next(self, step: Any) -> Element | None:
        if self.place >= self.end:
            return None
        dataset = self.dataset
        part = slice(dataset.starts[self.place], dataset.starts[self.place + 1])
        self.place += 1
        return dataset.indices[part, 1:], dataset.values[part], dataset.shape


def _make_sparse_slices(node: Node, env: Environment) -> Callable[..., Dataset]:
    def make(indices: torch.Tensor, values: Any, dense_shape: torch.Tensor) -> Dataset:
        if indices.dim() != 2:
            raise invalid(f"Input indices must be a matrix. Got: {list(indices.shape)}")
        if len(shape_of(values)) != 1:
            raise invalid(f"Input values must be a vector. Got: {list(shape_of(values))}")
        if dense_shape.dim() != 1:
            raise invalid(f"Input shape must be a vector. Got: {list(dense_shape.shape)}")
        if len(values) != len(indices):
            raise invalid(f"Expected {len(indices)} values, one an index, but got {len(values)}")
        if indices.shape[1] != len(dense_shape) or not len(dense_shape):
            raise invalid(
                f"Index rank {indices.shape[1]} and shape rank {len(dense_shape)} must be equal and positive"
            )
        rows = indices[:, 0]
        if bool((rows[1:] < rows[:-1]).any()):
            raise invalid("The SparseTensor must be ordered in the batch dimension; handling arbitrarily "
                          "ordered input is not currently supported.")  # fmt: skip
        if len(rows) and (int(rows[0]) < 0 or int(rows[-1]) >= int(dense_shape[0])):
            raise invalid(f"indices are out of bounds: rows must be in [0, {int(dense_shape[0])})")
        return SparseSliceDataset(indices, values, dense_shape)

    return make


sparse_tensor_slice_dataset_op = dataset_op(
    "SparseTensorSliceDataset", "indices: int64, values: Tvalues, dense_shape: int64", _make_sparse_slices,
    "", "", Tvalues=None, stateful=True, keeps=[0, 1, 2],
)  # fmt: skip


# ---- numbers


class RangeDataset(Dataset):
    """The numbers of a range, as scalars of `dtype`."""

    def __init__(self, numbers: range, dtype: torch.dtype = torch.int64) -> None:
        self.numbers, self.dtype = numbers, dtype

    def iterate(self) -> Iteration:
        """A pass over the numbers."""
        return _Numbers(self.numbers, self.dtype)


class _Numbers(Counted):
    def __init__(self, numbers: range, dtype: torch.dtype) -> None:
        super().__init__(len(numbers))
        self.numbers, self.dtype = numbers, dtype

    def next(self, step: Any) -> Element | None:
        if self.place >= self.end:
            return None
        number = self.numbers[self.place]
        self.place += 1
        return (torch.scalar_tensor(number, dtype=self.dtype),)

    def several(self, step: Any, count: int) -> Columns | None:
        part = self.numbers[self.place : self.place + count]
        if not part:
            return None
        self.place += len(part)
        return len(part), [torch.arange(part.start, part.stop, part.step, dtype=self.dtype)]


def _make_range(node: Node, env: Environment) -> Callable[..., Dataset]:
    dtype = node.attributes["output_types"][0].torch

    def make(start: torch.Tensor, stop: torch.Tensor, step: torch.Tensor) -> Dataset:
        if not int(step):
            raise invalid("step must be a non-zero integer.")
        return RangeDataset(range(int(start), int(stop), int(step)), dtype)

    return make


range_dataset_op = dataset_op(
    "RangeDataset", "start: int64[], stop: int64[], step: int64[]", _make_range, stateful=True
)
