"""Partitioned variables: one large variable as several smaller ones along one dimension, and who decides
how many.

A *partitioner* is a function ``partitioner(shape, dtype)`` that returns the number of parts along each
dimension; at most one may exceed 1. The parts are named ``<name>/part_0`` … and know where they lie in the
whole (`SaveSliceInfo`), so that a checkpoint holds the whole and can be read with another partitioning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor, register_tensor_conversion_function
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.ops.arrays.identities import identity
from flowstone.ops.numbers.operators import install_operators
from flowstone.ops.variables.save_slice_info import SaveSliceInfo

__all__ = [
    "fixed_size_partitioner",
    "min_max_variable_partitioner",
    "variable_axis_size_partitioner",
]

Partitioner = Callable[..., list[int]]


class PartitionInfo:
    """What an initialiser is told of a part: the whole's shape and where the part begins."""

    def __init__(self, full_shape: Sequence[int], var_offset: Sequence[int]) -> None:
        self.full_shape, self.var_offset = list(full_shape), list(var_offset)

    def single_offset(self, shape: Sequence[int]) -> int:
        """The offset along the only dimension that is cut."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The only dimension that is cut; None if the part is the whole. ValueError if there are several."""
        axes = [axis for axis, (part, whole) in enumerate(zip(shape, self.full_shape)) if part != whole]
        if len(axes) > 1:
            raise ValueError(
                f"Cannot use single_slice_dim() with shape {shape} and _full_shape {self.full_shape}"
            )
        return axes[0] if axes else None


class PartitionedVariable:
    """Several variables that stand for one; used in an expression it is their concatenation.

    `name`: of the whole; `shape`, `dtype`: of the whole; `variable_list`: the parts in order; `partitions`:
    the number of parts along each dimension.
    """

    def __init__(
        self, name: str, shape: Any, dtype: Any, variable_list: Sequence[Any], partitions: Sequence[int]
    ) -> None:
        if not isinstance(variable_list, (list, tuple)):
            raise TypeError(f"variable_list is not a list or tuple: {variable_list}")
        if len(variable_list) != math.prod(partitions):
            raise ValueError(f"There are {len(variable_list)} variables but partitions={list(partitions)}")
        self._name, self._shape, self._dtype = name, as_shape(shape), dtypes.as_dtype(dtype)
        self._variable_list, self._partitions = list(variable_list), list(partitions)

    name = property(lambda self: self._name, doc="The name of the whole.")
    dtype = property(lambda self: self._dtype, doc="The element type.")
    shape = property(lambda self: self._shape, doc="The static shape of the whole.")

    @property
    def graph(self) -> Graph:
        """The graph of the parts."""
        return self._variable_list[0].graph  # type: ignore[no-any-return]

    def get_shape(self) -> TensorShape:
        """The static shape of the whole."""
        return self._shape

    def __iter__(self) -> Iterator[Any]:
        return iter(self._variable_list)

    def __len__(self) -> int:
        axes = self._partition_axes()
        if len(axes) > 1:
            raise ValueError(f"Cannot get a length for {len(axes)} > 1 partition axes")
        return len(self._variable_list)

    def _get_variable_list(self) -> list[Any]:
        return self._variable_list

    def _get_partitions(self) -> list[int]:
        return self._partitions

    def _partition_axes(self) -> list[int]:
        return [axis for axis, parts in enumerate(self._partitions) if parts > 1] or [0]

    def as_tensor(self) -> Tensor:
        """The whole as a tensor: the parts concatenated."""
        graph, parts = self.graph, [part.value() for part in self._variable_list]
        whole: Tensor = parts[0]
        if len(parts) > 1:
            with graph.name_scope(f"{self._name}/ConcatPartitions/"):
                whole = F.ConcatV2(parts, self._partition_axes()[0], name="concat")
        with graph.name_scope(None):
            return identity(whole, name=self._name)

    def _pieces(self, value: Any) -> list[Tensor]:
        axis = self._partition_axes()[0]
        sizes = [part.shape.as_list()[axis] for part in self._variable_list] if self._shape.ndims else []
        if len(sizes) < 2:
            return [value]
        pieces: list[Tensor] = F.SplitV.several(value, sizes, axis, num_split=len(sizes), name="split")
        return pieces

    def _updated(self, method: str, value: Any, arguments: tuple[Any, ...]) -> list[Any]:
        return [
            getattr(part, method)(piece, *arguments)
            for part, piece in zip(self._variable_list, self._pieces(value))
        ]

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Gives the parts their pieces of `value`; returns each part's assignment."""
        return self._updated("assign", value, (use_locking, name, read_value))

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Adds their pieces of `value` to the parts."""
        return self._updated("assign_add", value, (use_locking, name, read_value))

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Subtracts their pieces of `value` from the parts."""
        return self._updated("assign_sub", value, (use_locking, name, read_value))


def _whole(value: Any, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable of type "
            f"'{value.dtype.name}'"
        )
    if as_ref:
        raise TypeError(f"PartitionedVariable doesn't support being used as a reference: {value.name}")
    return value.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _whole)
install_operators(PartitionedVariable, PartitionedVariable.as_tensor)

# ---- partitioners


def _checked(shape: Any, axis: int) -> tuple[int, ...]:
    shape = as_shape(shape)
    if not shape.is_fully_defined() or not 0 <= axis < len(shape):
        raise ValueError(f"The shape must be fully defined and have an axis {axis}, but is {shape}")
    return tuple(shape.as_list())


def _along(axis: int, parts: int, rank: int) -> list[int]:
    return [parts if i == axis else 1 for i in range(rank)]


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """A partitioner that makes at most `num_shards` parts along `axis`."""

    def partitioner(shape: Any, **_: Any) -> list[int]:
        sizes = _checked(shape, axis)
        return _along(axis, min(num_shards, sizes[axis]), len(sizes))

    return partitioner


def _element_bytes(dtype: Any, bytes_per_string_element: int) -> int:
    dtype = dtypes.as_dtype(dtype)
    return bytes_per_string_element if dtype.base_dtype == dtypes.string else dtype.size


def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """A partitioner that makes parts along `axis` of at most `max_shard_bytes` bytes, and at most
    `max_shards` of them.

    ValueError for limits that are not positive.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError(
            "Both max_shard_bytes and bytes_per_string_element must be positive. Currently, "
            "max_shard_bytes is "
            f"{max_shard_bytes} and bytes_per_string_element is {bytes_per_string_element}"
        )
    if max_shards and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        sizes = _checked(shape, axis)
        slice_bytes = (
            math.prod(sizes) // max(sizes[axis], 1) * _element_bytes(dtype, bytes_per_string_element)
        )
        slices_each = max(1, max_shard_bytes // max(slice_bytes, 1))
        parts = math.ceil(sizes[axis] / slices_each)
        return _along(axis, min(parts, max_shards) if max_shards else parts, len(sizes))

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """A partitioner that makes a part along `axis` for each begun `min_slice_size` bytes, at most
    `max_partitions`.
    """

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        sizes = _checked(shape, axis)
        size = math.prod(sizes) * _element_bytes(dtype, bytes_per_string_element)
        parts = max(1, min(max_partitions, math.ceil(size / min_slice_size), sizes[axis]))
        return _along(axis, parts, len(sizes))

    return partitioner


# ---- making them


def _partitions_of(partitioner: Any, shape: TensorShape, dtype: DType) -> list[int]:
    if not shape.is_fully_defined():
        raise ValueError(
            f"Shape of a new partitioned variable must be fully defined, but instead was {shape}."
        )
    if (shape.ndims or 0) < 1:
        raise ValueError(f"A partitioned Variable must have rank at least 1, shape: {shape}")
    partitions = partitioner(shape=shape, dtype=dtype)
    if not isinstance(partitions, Sequence):
        raise ValueError(f"Partitioner must return a sequence, but saw: {partitions}")
    if len(partitions) != shape.ndims:
        raise ValueError(
            "Partitioner returned a partition list that does not match the Variable's rank: "
            f"{partitions} vs. {shape}"
        )
    if any(parts < 1 for parts in partitions):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {partitions}")
    if sum(parts > 1 for parts in partitions) > 1:
        raise ValueError(
            f"Can only slice a variable along one dimension: shape: {shape}, partitioning: {list(partitions)}"
        )
    return list(partitions)


def _parts(sizes: list[int], partitions: list[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Offset and shape of each part; the first ones get what does not divide evenly."""
    axis = next((i for i, parts in enumerate(partitions) if parts > 1), 0)
    each, left = divmod(sizes[axis], partitions[axis])
    offset = 0
    for i in range(partitions[axis]):
        size = each + (i < left)
        shape, begin = list(sizes), [0] * len(sizes)
        shape[axis], begin[axis] = size, offset
        yield begin, shape
        offset += size


def get_partitioned_variable(
    store: Any,
    name: str,
    partitioner: Partitioner | None,
    shape: TensorShape | None,
    dtype: DType,
    reuse: Any,
    initializer: Any = None,
    **keywords: Any,
) -> PartitionedVariable:
    """The partitioned variable of this full name in a `VariableStore`: an existing or a new one; see
    `tf.get_variable`.
    """
    name = name.rstrip("/")  # in a scope that names it, the variable itself has no name
    found = store.partitioned(name)
    if found is not None:
        return _existing(found, name, partitioner, shape, dtype, reuse)
    if store.has_single(name):
        raise ValueError(
            f"A partitioner was provided, but an unpartitioned version of the variable was found: {name}. "
            "Perhaps a variable of the same name was already created without partitioning?"
        )
    if reuse is True:
        raise ValueError(
            f"PartitionedVariable {name} does not exist, or was not created with "
            "tf.get_variable(). Did you mean to set "
            "reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
        )
    is_value = initializer is not None and not callable(initializer)
    if is_value:
        if shape is None and not isinstance(initializer, Tensor):
            raise ValueError(
                "Shape of a new partitioned variable must be fully defined, but instead was <unknown>."
            )
        initializer = convert_to_tensor(initializer)
        if shape is not None:
            shape.assert_is_compatible_with(initializer.shape)
        shape, dtype = initializer.shape, initializer.dtype.base_dtype
    shape = TensorShape(None) if shape is None else shape
    partitions = _partitions_of(partitioner, shape, dtype)
    sizes: list[int] = shape.as_list()  # type: ignore[assignment]  # partitions are of a known shape
    variables: list[Any] = []
    for i, (offset, part_shape) in enumerate(_parts(sizes, partitions)):
        part_name = f"{name}/part_{i}"
        given, part_initializer = as_shape(part_shape), initializer
        if is_value:
            part_initializer, given = F.Slice(initializer, offset, part_shape), None  # type: ignore[assignment]
        variable = store.get_single(
            part_name,
            given,
            dtype,
            reuse,
            PartitionInfo(sizes, offset),
            initializer=part_initializer,
            **keywords,
        )
        variable._set_save_slice_info(SaveSliceInfo(name, sizes, offset, part_shape))
        variables.append(variable)
    result = PartitionedVariable(name, shape, dtype, variables, partitions)
    store.add_partitioned(name, result)
    return result


def _existing(
    found: PartitionedVariable,
    name: str,
    partitioner: Any,
    shape: TensorShape | None,
    dtype: DType,
    reuse: Any,
) -> PartitionedVariable:
    if not reuse:
        raise ValueError(
            f"Partitioned variable with name {name} already exists. Did you mean to set reuse=True or "
            "reuse=tf.AUTO_REUSE in VarScope?"
        )
    if shape is not None and not shape.is_compatible_with(found.shape):
        raise ValueError(
            f"Trying to reuse partitioned variable {name}, but specified shape {shape} and found "
            f"shape {found.shape}."
        )
    if not dtype.is_compatible_with(found.dtype):
        raise ValueError(
            f"Trying to reuse partitioned variable {name}, but specified dtype {dtype.name} and found dtype "
            f"{found.dtype.name}."
        )
    if partitioner is not None and shape is not None:
        partitions = _partitions_of(partitioner, shape, dtype)
        if partitions != found._get_partitions():
            raise ValueError(
                f"Trying to reuse partitioned variable {name}, but specified partitions "
                f"{partitions} and found "
                f"partitions {found._get_partitions()}."
            )
    return found
