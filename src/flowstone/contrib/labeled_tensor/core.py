"""Tensors whose axes have names: the class, its conversion, and how two of them are aligned.

Operations find the axes of their arguments by name. Two tensors are aligned by the order in which both have
their axes, or by the order that `axis_order_scope` gives; an axis that one of them lacks has size 1 there.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.labeled_tensor.axes import (
    Axes,
    Axis,
)
from flowstone.contrib.labeled_tensor.axes import AxisLike as AxisLike
from flowstone.contrib.labeled_tensor.axes import AxisValue as AxisValue
from flowstone.contrib.labeled_tensor.axes import DimensionLike as DimensionLike
from flowstone.contrib.labeled_tensor.axes import LabelsLike as LabelsLike
from flowstone.contrib.labeled_tensor.axes import as_axis as as_axis
from flowstone.contrib.labeled_tensor.axes import concat_axes as concat_axes
from flowstone.contrib.labeled_tensor.axis_order import (
    AxisOrderError,
    get_axis_order,
    merged_order,
    required_order,
)
from flowstone.contrib.labeled_tensor.axis_order import axis_order_scope as axis_order_scope

Scalar = Number | bool | bytes | str


class LabeledTensor:
    """A tensor with a name for each axis and, where an axis has them, labels for its positions.

    Args:
        tensor: a Tensor.
        axes: an axis for each dimension: an Axis, a pair ``(name, size or labels)``, or the name alone, which
            takes the size from the tensor.

    Raises TypeError for arguments of other types, ValueError if the number of axes is not the tensor's rank,
    if a size is not that of the tensor, or if a name comes twice.
    """

    def __init__(self, tensor: Any, axes: Any) -> None:
        if not isinstance(tensor, tf.Tensor):
            raise TypeError(f"a LabeledTensor is made of a Tensor, not of {tensor!r}")
        if isinstance(axes, str) or not isinstance(axes, (Mapping, Sequence, Iterator)):
            raise TypeError(f"the axes of a LabeledTensor are a list, not {axes!r}")
        listed = list(axes.values()) if isinstance(axes, Axes) else list(axes)
        shape = tensor.get_shape()
        if shape.ndims != len(listed):
            raise ValueError(f"Tensor rank was not equal to the number of axes: {shape!r}, {listed!r}")
        dims = list(shape.dims or [])
        self._axes = Axes([(a, d) if isinstance(a, str) else a for a, d in zip(listed, dims, strict=True)])
        for axis, dim in zip(self._axes.values(), dims, strict=True):
            if not dim.is_compatible_with(axis.dimension):
                raise ValueError(
                    f"Provided axis size {axis.size} does not match tensor dimension size {dim} in {tensor!r}"
                )
        self._tensor = tensor

    @property
    def tensor(self) -> Any:
        """The Tensor."""
        return self._tensor

    @property
    def axes(self) -> Axes:
        """The axes by their names, in order."""
        return self._axes

    @property
    def name(self) -> str:
        """The Tensor's name."""
        name: str = self._tensor.name
        return name

    @property
    def dtype(self) -> Any:
        """The elements' type."""
        return self._tensor.dtype

    @property
    def shape(self) -> Any:
        """The Tensor's static shape."""
        return self._tensor.shape

    def get_shape(self) -> Any:
        """The Tensor's static shape."""
        return self._tensor.get_shape()

    def _as_graph_element(self) -> Any:
        return self._tensor

    def __getitem__(self, key: Any) -> LabeledTensor:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(self.axes):
            raise ValueError(
                f"indexer {keys} must have the same length as the Tensor rank ({len(self.axes)})"
            )
        return slice_function(self, dict(zip(self.axes, keys, strict=True)))

    def __repr__(self) -> str:
        rows = [f"({axis.name!r}, {axis.value!r})" for axis in self.axes.values()]
        listed = (",\n" + " " * 7).join(rows)
        shape = self._tensor.get_shape()
        return f"<LabeledTensor '{self.name}' shape={shape} dtype={self.dtype.name}\n axes=[{listed}]>"

    def __abs__(self) -> LabeledTensor:
        return abs_function(self)

    def __neg__(self) -> LabeledTensor:
        return neg(self)

    def __pos__(self) -> LabeledTensor:
        return self

    def __add__(self, other: Any) -> LabeledTensor:
        return add(self, other)

    def __radd__(self, other: Any) -> LabeledTensor:
        return add(other, self)

    def __sub__(self, other: Any) -> LabeledTensor:
        return sub(self, other)

    def __rsub__(self, other: Any) -> LabeledTensor:
        return sub(other, self)

    def __mul__(self, other: Any) -> LabeledTensor:
        return mul(self, other)

    def __rmul__(self, other: Any) -> LabeledTensor:
        return mul(other, self)

    def __truediv__(self, other: Any) -> LabeledTensor:
        return div(self, other)

    def __rtruediv__(self, other: Any) -> LabeledTensor:
        return div(other, self)

    def __mod__(self, other: Any) -> LabeledTensor:
        return mod(self, other)

    def __rmod__(self, other: Any) -> LabeledTensor:
        return mod(other, self)

    def __pow__(self, other: Any) -> LabeledTensor:
        return pow_function(self, other)

    def __rpow__(self, other: Any) -> LabeledTensor:
        return pow_function(other, self)

    def __and__(self, other: Any) -> LabeledTensor:
        return logical_and(self, other)

    def __or__(self, other: Any) -> LabeledTensor:
        return logical_or(self, other)

    def __xor__(self, other: Any) -> LabeledTensor:
        return logical_xor(self, other)

    def __invert__(self) -> LabeledTensor:
        return logical_not(self)

    def __lt__(self, other: Any) -> LabeledTensor:
        return less(self, other)

    def __le__(self, other: Any) -> LabeledTensor:
        return less_equal(self, other)

    def __gt__(self, other: Any) -> LabeledTensor:
        return greater(self, other)

    def __ge__(self, other: Any) -> LabeledTensor:
        return greater_equal(self, other)


LabeledTensorLike = LabeledTensor | tf.Tensor | np.ndarray | Scalar


def _tensor_of(value: LabeledTensor, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} of a LabeledTensor of {value.dtype.name}"
        )
    return value.tensor


tf.register_tensor_conversion_function(LabeledTensor, _tensor_of)


def convert_to_labeled_tensor(value: Any, dtype: Any = None, name: str | None = None) -> LabeledTensor:
    """`value` as a LabeledTensor; what is not one already must be a scalar.

    Raises TypeError for a value of another kind, ValueError if the value has axes or is a LabeledTensor of
    another type than `dtype`.
    """
    if isinstance(value, LabeledTensor):
        return value if dtype is None else LabeledTensor(tf.convert_to_tensor(value, dtype, name), value.axes)
    if not isinstance(value, (tf.Tensor, np.ndarray, np.generic, Number, bool, bytes, str)):
        raise TypeError(f"a LabeledTensor is made of a LabeledTensor or a scalar, not of {value!r}")
    tensor = tf.convert_to_tensor(value, dtype=dtype, name=name)
    if tensor.get_shape().ndims != 0:
        raise ValueError(f"only scalars have no axes; {value!r} needs names for its axes: use LabeledTensor")
    return LabeledTensor(tensor, [])


def axis_sizes(axes: Sequence[Axis]) -> list[int]:
    """The sizes of axes for a reshape, at most one of them not known (-1); else ValueError."""
    if builtins.sum(axis.size is None for axis in axes) > 1:
        raise ValueError(f"at most one axis may have an unknown size: {list(axes)!r}")
    return [-1 if axis.size is None else axis.size for axis in axes]


def slice_function(
    labeled_tensor: Any, selection: Mapping[str, Any], name: str | None = None
) -> LabeledTensor:
    """The part of a tensor at positions: for axes an int, which drops the axis, or a slice.

    Raises TypeError for indices of another type, ValueError for an index beyond the axis.
    """
    with tf.name_scope(name, "lt_slice", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        for index in selection.values():
            if not isinstance(index, (int, np.integer, slice)):
                raise TypeError(f"a LabeledTensor is indexed by ints and slices, not by {index!r}")
        keys = tuple(selection.get(axis, slice(None)) for axis in labeled_tensor.axes)
        part = tf.identity(labeled_tensor.tensor[keys], name=scope)
    kept: list[Any] = []
    dims = iter(part.get_shape().dims)
    for axis, key in zip(labeled_tensor.axes.values(), keys, strict=True):
        if isinstance(key, slice):
            size = next(dims)
            kept.append((axis.name, size if axis.labels is None else axis.labels[key]))
    return LabeledTensor(part, kept)


def transpose(
    labeled_tensor: Any, axis_order: Sequence[str] | None = None, name: str | None = None
) -> LabeledTensor:
    """The tensor with its axes in the order of these names; by default reversed.

    Raises ValueError if the names are not those of the tensor's axes.
    """
    with tf.name_scope(name, "lt_transpose", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        original = list(labeled_tensor.axes)
        order = list(reversed(original)) if axis_order is None else list(axis_order)
        if sorted(order) != sorted(original):
            raise ValueError(
                "The new axis order must have the same names as the original axes, but the new order is"
                f" {order} while the original order is {original}"
            )
        result = tf.transpose(labeled_tensor.tensor, [original.index(axis) for axis in order], name=scope)
    return LabeledTensor(result, [labeled_tensor.axes[axis] for axis in order])


def expand_dims(labeled_tensor: Any, axes: Sequence[Any], name: str | None = None) -> LabeledTensor:
    """The tensor with axes of size 1 inserted: `axes` names all axes of the result, in order.

    A new axis is a name, or a pair of a name and the label of its only position. Raises AxisOrderError if the
    tensor's own axes are not all among `axes` or come in another order.
    """
    with tf.name_scope(name, "lt_expand_dims", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        names = [axis if isinstance(axis, str) else axis[0] for axis in axes]
        check_axis_order(labeled_tensor, names)
        result: list[Axis] = []
        for axis in axes:
            if isinstance(axis, str):
                result.append(labeled_tensor.axes[axis] if axis in labeled_tensor.axes else Axis(axis, 1))
            else:
                result.append(Axis(axis[0], [axis[1]]))
        reshaped = tf.reshape(labeled_tensor.tensor, axis_sizes(result), name=scope)
    return LabeledTensor(reshaped, result)


def check_axis_order(labeled_tensor: Any, axis_order: Sequence[str] | None = None) -> None:
    """Raises AxisOrderError unless all axes of the tensor are among `axis_order` and come in its order.

    The order is by default that of the `axis_order_scope`, without which AxisOrderError is raised too.
    """
    order = required_order(axis_order)
    labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
    relevant = [axis for axis in order if axis in labeled_tensor.axes]
    if len(relevant) < len(labeled_tensor.axes):
        raise AxisOrderError(
            f"not all axis names appear in the required axis order {order}: {labeled_tensor}"
        )
    if relevant != list(labeled_tensor.axes):
        raise AxisOrderError(
            f"axes on a labeled tensor do not appear in the required axis order {order}: {labeled_tensor}"
        )


def impose_axis_order(
    labeled_tensor: Any, axis_order: Sequence[str] | None = None, name: str | None = None
) -> LabeledTensor:
    """The tensor transposed to the order of `axis_order`, which may name other axes too.

    The order is by default that of the `axis_order_scope`, without which AxisOrderError is raised. Raises
    ValueError if the order lacks an axis of the tensor.
    """
    with tf.name_scope(name, "lt_impose_axis_order", [labeled_tensor]) as scope:
        order = required_order(axis_order)
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        return transpose(labeled_tensor, [axis for axis in order if axis in labeled_tensor.axes], name=scope)


def align(
    labeled_tensor_0: Any, labeled_tensor_1: Any, name: str | None = None
) -> tuple[LabeledTensor, LabeledTensor, Axes]:
    """Both tensors with the same axes, those that one lacks of size 1, and the axes of a broadcast result.

    Raises AxisOrderError if the tensors have shared axes in different orders and no `axis_order_scope` says
    which holds, or if a tensor's axes do not follow that scope; ValueError if a shared axis differs.
    """
    with tf.name_scope(name, "lt_align", [labeled_tensor_0, labeled_tensor_1]) as scope:
        first = convert_to_labeled_tensor(labeled_tensor_0)
        second = convert_to_labeled_tensor(labeled_tensor_1)
        for axis in first.axes:
            if axis in second.axes and first.axes[axis] != second.axes[axis]:
                both = f"{first.axes[axis]!r} and {second.axes[axis]!r}"
                raise ValueError(f"Mismatched {axis!r} axis on input tensors: {both}")
        order = get_axis_order()
        if order is None:
            order = merged_order(list(first.axes), list(second.axes))
            if order is None:
                raise AxisOrderError(
                    "No consistent axis order allows for aligning tensors with axis orders"
                    f" {list(first.axes)} and {list(second.axes)}"
                )
        else:
            check_axis_order(first, order)
            check_axis_order(second, order)
        order = [axis for axis in order if axis in first.axes or axis in second.axes]
        axes = Axes([(first if axis in first.axes else second).axes[axis] for axis in order])
        return expand_dims(first, order, f"{scope}0"), expand_dims(second, order, f"{scope}1"), axes


def define_unary_op(op_name: str, elementwise_function: Callable[..., Any]) -> Callable[..., LabeledTensor]:
    """A function of a LabeledTensor from a function of a Tensor and a name, which keeps the shape.

    The function takes ``(labeled_tensor, name=None)``; its result has the argument's axes, its operation the
    name ``lt_`` and `op_name`.
    """

    def op(labeled_tensor: Any, name: str | None = None) -> LabeledTensor:
        with tf.name_scope(name, f"lt_{op_name}", [labeled_tensor]) as scope:
            labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
            return LabeledTensor(elementwise_function(labeled_tensor.tensor, name=scope), labeled_tensor.axes)

    op.__doc__ = f"`tf.{op_name}` of a LabeledTensor, element by element; the result has its axes."
    op.__name__ = op.__qualname__ = op_name
    return op


def define_binary_op(op_name: str, elementwise_function: Callable[..., Any]) -> Callable[..., LabeledTensor]:
    """A function of two LabeledTensors from a function of two Tensors and a name, which broadcasts.

    The function takes ``(labeled_tensor_0, labeled_tensor_1, name=None)``, aligns its arguments (`align`) and
    raises what `align` raises; its operation has the name ``lt_`` and `op_name`.
    """

    def op(labeled_tensor_0: Any, labeled_tensor_1: Any, name: str | None = None) -> LabeledTensor:
        with tf.name_scope(name, f"lt_{op_name}", [labeled_tensor_0, labeled_tensor_1]) as scope:
            first, second, axes = align(labeled_tensor_0, labeled_tensor_1)
            return LabeledTensor(elementwise_function(first.tensor, second.tensor, name=scope), axes)

    op.__doc__ = f"`tf.{op_name}` of two LabeledTensors, which are aligned by the names of their axes."
    op.__name__ = op.__qualname__ = op_name
    return op


abs_function = define_unary_op("abs", tf.abs)
acos = define_unary_op("acos", tf.acos)
asin = define_unary_op("asin", tf.asin)
atan = define_unary_op("atan", tf.atan)
ceil = define_unary_op("ceil", tf.ceil)
cos = define_unary_op("cos", tf.cos)
digamma = define_unary_op("digamma", tf.digamma)
erf = define_unary_op("erf", tf.erf)
erfc = define_unary_op("erfc", tf.erfc)
exp = define_unary_op("exp", tf.exp)
floor = define_unary_op("floor", tf.floor)
identity = define_unary_op("identity", tf.identity)
lgamma = define_unary_op("lgamma", tf.lgamma)
log = define_unary_op("log", tf.log)
logical_not = define_unary_op("logical_not", tf.logical_not)
neg = define_unary_op("neg", tf.negative)
reciprocal = define_unary_op("reciprocal", tf.reciprocal)
round_function = define_unary_op("round", tf.round)
rsqrt = define_unary_op("rsqrt", tf.rsqrt)
sigmoid = define_unary_op("sigmoid", tf.sigmoid)
sign = define_unary_op("sign", tf.sign)
sin = define_unary_op("sin", tf.sin)
sqrt = define_unary_op("sqrt", tf.sqrt)
square = define_unary_op("square", tf.square)
tan = define_unary_op("tan", tf.tan)
tanh = define_unary_op("tanh", tf.tanh)

add = define_binary_op("add", tf.add)
div = define_binary_op("div", tf.div)
equal = define_binary_op("equal", tf.equal)
greater = define_binary_op("greater", tf.greater)
greater_equal = define_binary_op("greater_equal", tf.greater_equal)
igamma = define_binary_op("igamma", tf.igamma)
igammac = define_binary_op("igammac", tf.igammac)
less = define_binary_op("less", tf.less)
less_equal = define_binary_op("less_equal", tf.less_equal)
logical_and = define_binary_op("logical_and", tf.logical_and)
logical_or = define_binary_op("logical_or", tf.logical_or)
logical_xor = define_binary_op("logical_xor", tf.logical_xor)
maximum = define_binary_op("maximum", tf.maximum)
minimum = define_binary_op("minimum", tf.minimum)
mod = define_binary_op("mod", tf.mod)
mul = define_binary_op("mul", tf.multiply)
not_equal = define_binary_op("not_equal", tf.not_equal)
polygamma = define_binary_op("polygamma", tf.polygamma)
pow_function = define_binary_op("pow", tf.pow)
squared_difference = define_binary_op("squared_difference", tf.squared_difference)
sub = define_binary_op("sub", tf.subtract)
zeta = define_binary_op("zeta", tf.zeta)
