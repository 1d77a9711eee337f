"""``tensor[...]``: Python's indexing as one StridedSlice, or a boolean mask; and assignment to a part of a
variable.

An index is an int, an integer scalar (NumPy's or a tensor), a slice of these, an ellipsis, None
(`newaxis`), or a tuple of them; a boolean tensor or array alone selects with `boolean_mask`. Anything else
is a TypeError.
"""

from __future__ import annotations

import numbers
import sys
from typing import Any

import numpy as np

from flowstone.framework.declarations.building import place_of
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dimension import Dimension
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.masks import boolean_mask
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.slicing import (
    masks_of,
    resource_strided_slice_assign_op,
    strided_slice,
    strided_slice_assign_op,
)

__all__ = ["newaxis"]

newaxis = None

_ALLOWED = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
    "tf.int32/tf.int64 tensors are valid indices"
)


def _checked(index: Any) -> Any:
    """`index` if it may stand for one place. TypeError otherwise."""
    if isinstance(index, Dimension):
        return int(index)
    if isinstance(index, Tensor):
        if index.dtype.base_dtype in (dtypes.int16, dtypes.int32, dtypes.int64) and index.dims in (None, ()):
            return index
    elif (isinstance(index, numbers.Integral) and not isinstance(index, bool)) or (
        isinstance(index, np.ndarray) and index.ndim == 0 and index.dtype.kind in "iu"
    ):
        return int(index)
    elif hasattr(index, "_as_graph_element") and getattr(index, "dtype", dtypes.string).is_integer:
        return convert_to_tensor(index)
    raise TypeError(f"{_ALLOWED}, got {index!r}")


def _is_mask(index: Any) -> bool:
    if isinstance(index, (bool, np.bool_)):
        return True
    if isinstance(index, np.ndarray):
        return bool(index.dtype == bool)
    return isinstance(index, Tensor) and index.dtype.base_dtype is dtypes.bool


class _Spec:
    """An index under translation: the three vectors and the bits of the masks."""

    def __init__(self) -> None:
        self.begin: list[Any] = []
        self.end: list[Any] = []
        self.strides: list[Any] = []
        self.masks = dict.fromkeys(
            ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
        )

    def mark(self, mask: str) -> None:
        """Sets the bit of the entry that is being added."""
        self.masks[mask] |= 1 << len(self.begin)

    def add(self, begin: Any, end: Any, stride: Any) -> None:
        """Adds an entry."""
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)

    def add_slice(self, item: Any) -> None:
        """Adds the entry of a Python slice."""
        first, last, step = [
            None if part is None or part is sys.maxsize else _checked(part)
            for part in (item.start, item.stop, item.step)
        ]
        if first is None:
            self.mark("begin_mask")
        if last is None:
            self.mark("end_mask")
        defaults = (first, 0), (last, 0), (step, 1)
        self.add(*[value if part is None else part for part, value in defaults])

    def add_place(self, item: Any) -> None:
        """Adds the entry of one place, whose dimension disappears."""
        place = _checked(item)
        self.mark("shrink_axis_mask")
        self.add(place, place + 1, 1)


def _of_one_type(vectors: list[Tensor]) -> list[Tensor]:
    """The vectors as 64-bit integers, if one of them has these."""
    kinds = [vector.dtype.base_dtype for vector in vectors]
    widest = next((kind for kind in kinds if kind is not dtypes.int32), dtypes.int32)
    return [x if kind is widest else F.Cast(x, DstT=widest) for x, kind in zip(vectors, kinds)]


def sliced(tensor: Tensor, index: Any, variable: Any = None) -> Tensor:
    """``tensor[index]``; `variable`: whose value `tensor` is, if the result shall have ``assign``.

    Raises TypeError for a wrong index, ValueError for one that the static shape forbids.
    """
    if _is_mask(index):
        return boolean_mask(tensor, index)
    spec = _Spec()
    for item in index if isinstance(index, (list, tuple)) else (index,):
        if isinstance(item, slice):
            spec.add_slice(item)
        elif item is Ellipsis:
            spec.mark("ellipsis_mask")
            spec.add(0, 0, 1)
        elif item is None:
            spec.mark("new_axis_mask")
            spec.add(0, 0, 1)
        else:
            spec.add_place(item)
    with (graph := place_of(tensor)).as_default(), graph.name_scope("strided_slice") as scope:
        if spec.begin:
            vectors = _of_one_type([stack(entries) for entries in (spec.begin, spec.end, spec.strides)])
        else:
            vectors = [constant([], dtypes.int32)] * 3
        masks: dict[str, Any] = spec.masks
        begin, end, strides = vectors
        return strided_slice(tensor, begin, end, strides, var=variable, name=scope, **masks)


Tensor.overload("__getitem__", sliced)

# ---- assignment to a part of a variable


def _assign(part: Tensor, value: Any, name: str | None = None) -> Any:
    """The operation that gives this part of the variable a value; its result is the whole variable."""
    variable = part._extra
    node: Any = part.op
    graph = part.graph
    name = name or f"{node.name}/_assign"
    masks = masks_of(node)._asdict()
    attributes = {f"{'shrink_axis' if key == 'shrink' else key}_mask": bits for key, bits in masks.items()}
    vectors = node.inputs[1:4]
    with graph.as_default() if get_default_graph() is not graph else graph.name_scope(None):
        reference = _reference(variable)
        if reference is not None:
            return strided_slice_assign_op(reference, *vectors, value, name=name, **attributes)
        tensor = convert_to_tensor(value, part.dtype.base_dtype)
        operation = resource_strided_slice_assign_op(
            variable.handle, *vectors, tensor, name=name, **attributes
        )
        with graph.control_dependencies([operation]):
            return variable.read_value()


def _reference(variable: Any) -> Any:
    """The reference tensor of a reference variable, None for a resource variable."""
    if isinstance(variable, Tensor):
        return variable if variable.dtype.is_ref else None
    if getattr(variable, "handle", None) is not None:
        return None
    return variable._ref()


def _assign_of(part: Tensor) -> Any:
    if "assign" in vars(part):
        return vars(part)["assign"]
    if not hasattr(part, "_extra"):
        raise AttributeError("'Tensor' object has no attribute 'assign'")
    return lambda value, name=None: _assign(part, value, name)


def _set_assign(tensor: Tensor, function: Any) -> None:
    vars(tensor)["assign"] = function  # libraries let a variable's value stand for the variable


Tensor.assign = property(_assign_of, _set_assign)  # type: ignore[attr-defined]
