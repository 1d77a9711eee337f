"""Selecting, joining, reshaping and filling LabeledTensors; axes are named, never numbered."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.labeled_tensor.axes import Axis, as_axis, concat_axes
from flowstone.contrib.labeled_tensor.axis_order import AxisOrderError
from flowstone.contrib.labeled_tensor.core import (
    LabeledTensor,
    axis_sizes,
    convert_to_labeled_tensor,
    slice_function,
)

__all__ = [
    "boolean_mask",
    "cast",
    "concat",
    "constant",
    "matmul",
    "ones_like",
    "pack",
    "pad",
    "random_crop",
    "rename_axis",
    "reshape",
    "select",
    "squeeze",
    "tile",
    "unpack",
    "verify_tensor_all_finite",
    "where",
    "zeros_like",
]


def _position(labeled_tensor: LabeledTensor, axis_name: str) -> int:
    names = list(labeled_tensor.axes)
    if axis_name not in names:
        raise ValueError(f"{axis_name} not in {names}")
    return names.index(axis_name)


def _require_axes(labeled_tensor: LabeledTensor, names: Sequence[str], what: str) -> None:
    missing = [name for name in names if name not in labeled_tensor.axes]
    if missing:
        raise ValueError(f"{what} {missing} are not among the axes {list(labeled_tensor.axes)} of the tensor")


def _label_slice(axis: Axis, labels: slice) -> slice:
    if labels.step is not None:
        raise NotImplementedError("select takes no slice with a step; use slice, which takes positions")
    start = None if labels.start is None else axis.index(labels.start)
    return slice(start, None if labels.stop is None else axis.index(labels.stop) + 1)


def select(labeled_tensor: Any, selection: Mapping[str, Any], name: str | None = None) -> LabeledTensor:
    """The part of a tensor with labels: for each axis of `selection` a label, a slice of labels or a list.

    A label drops its axis; a slice includes both its ends. Raises TypeError for a selection of another kind,
    ValueError for an axis that the tensor lacks or that has no labels, KeyError for an unknown label,
    NotImplementedError for a slice with a step, or a list beside another list or a label.
    """
    with tf.name_scope(name, "lt_select", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        slices: dict[str, Any] = {}
        lists: dict[str, list[Hashable]] = {}
        for axis_name, value in selection.items():
            if not isinstance(value, (slice, list, Hashable)):
                raise TypeError(f"select takes a label, a slice or a list of labels, not {value!r}")
            if axis_name not in labeled_tensor.axes:
                names = list(labeled_tensor.axes)
                raise ValueError(f"The tensor does not have an axis named {axis_name}. Its axes are: {names}")
            axis = labeled_tensor.axes[axis_name]
            if axis.labels is None:
                raise ValueError(f"The axis named {axis_name} does not have labels. The axis is: {axis!r}")
            if isinstance(value, list):
                lists[axis_name] = value
            elif isinstance(value, slice):
                slices[axis_name] = _label_slice(axis, value)
            else:
                slices[axis_name] = axis.index(value)
        if not lists:
            return slice_function(labeled_tensor, slices, name=scope)
        if len(lists) > 1:
            raise NotImplementedError("select takes one list of labels at a time")
        if any(isinstance(value, int) for value in slices.values()):
            raise NotImplementedError("select takes no label beside a list of labels")
        (axis_name, labels), *_ = lists.items()
        if slices:
            labeled_tensor = slice_function(labeled_tensor, slices)
        return _take(labeled_tensor, axis_name, labels, scope)


def _take(
    labeled_tensor: LabeledTensor, axis_name: str, labels: Sequence[Hashable], scope: str
) -> LabeledTensor:
    axis = labeled_tensor.axes[axis_name]
    positions = tf.constant([axis.index(label) for label in labels], tf.int32)
    tensor = tf.gather(
        labeled_tensor.tensor, positions, axis=_position(labeled_tensor, axis_name), name=scope
    )
    axes = [(axis_name, list(labels)) if each is axis else each for each in labeled_tensor.axes.values()]
    return LabeledTensor(tensor, axes)


def concat(labeled_tensors: Sequence[Any], axis_name: str, name: str | None = None) -> LabeledTensor:
    """The tensors joined along an axis that all have; the other axes are equal.

    Raises ValueError if there is no tensor, if one lacks the axis, if another axis differs, or if a label
    comes twice.
    """
    with tf.name_scope(name, "lt_concat", labeled_tensors) as scope:
        tensors = [convert_to_labeled_tensor(each) for each in labeled_tensors]
        if not tensors:
            raise ValueError(f"concat expects at least 1 tensor, but received {labeled_tensors}")
        position = _position(tensors[0], axis_name)
        others = tensors[0].axes.remove(axis_name)
        for each in tensors[1:]:
            _position(each, axis_name)
            if each.axes.remove(axis_name) != others:
                raise ValueError(
                    f"Mismatched shared axes: the first tensor had axes {others!r} but this tensor has"
                    f" {each.axes.remove(axis_name)!r}"
                )
        axes = list(tensors[0].axes.values())
        axes[position] = concat_axes([each.axes[axis_name] for each in tensors])
        return LabeledTensor(tf.concat([each.tensor for each in tensors], position, name=scope), axes)


def pack(
    labeled_tensors: Sequence[Any], new_axis: Any, axis_position: int = 0, name: str | None = None
) -> LabeledTensor:
    """Tensors with equal axes along a new one, a name or a pair with the labels, at `axis_position`.

    Raises ValueError if the axes differ or have the new one already.
    """
    with tf.name_scope(name, "lt_pack", labeled_tensors) as scope:
        tensors = [convert_to_labeled_tensor(each) for each in labeled_tensors]
        axes: list[Any] = list(tensors[0].axes.values())
        for each in tensors[1:]:
            if each.axes != tensors[0].axes:
                raise ValueError(f"Non-identical axes: {tensors[0].axes!r} and {each.axes!r}")
        axes.insert(axis_position, new_axis)
        packed = tf.stack([each.tensor for each in tensors], axis=axis_position, name=scope)
        return LabeledTensor(packed, axes)


def unpack(labeled_tensor: Any, axis_name: str | None = None, name: str | None = None) -> list[LabeledTensor]:
    """The tensors at each position of an axis, by default the first; ValueError if its size is not known."""
    with tf.name_scope(name, "lt_unpack", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        axis_name = next(iter(labeled_tensor.axes)) if axis_name is None else axis_name
        parts = tf.unstack(labeled_tensor.tensor, axis=_position(labeled_tensor, axis_name), name=scope)
        rest = labeled_tensor.axes.remove(axis_name)
        return [LabeledTensor(part, rest) for part in parts]


def reshape(
    labeled_tensor: Any, existing_axes: Sequence[str], new_axes: Sequence[Any], name: str | None = None
) -> LabeledTensor:
    """The tensor with other axes in the place of some that follow each other.

    A new axis is an Axis, a pair ``(name, size or labels)``, or a name; one of them may have no known size.
    Raises ValueError for axes that the tensor lacks and for more than one unknown size, AxisOrderError if the
    existing axes do not follow each other so.
    """
    with tf.name_scope(name, "lt_reshape", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        _require_axes(labeled_tensor, existing_axes, "existing_axes")
        names = list(labeled_tensor.axes)
        start = names.index(existing_axes[0])
        stop = names.index(existing_axes[-1]) + 1
        if list(existing_axes) != names[start:stop]:
            raise AxisOrderError(
                f"existing_axes {list(existing_axes)} are not a slice of axis names {names} of the tensor;"
                " transpose or impose_axis_order reorders axes"
            )
        new = [Axis(axis, None) if isinstance(axis, str) else as_axis(axis) for axis in new_axes]
        old = list(labeled_tensor.axes.values())
        sizes = axis_sizes(old[:start] + new + old[stop:])
        reshaped = tf.reshape(labeled_tensor.tensor, sizes, name=scope)
        axes: list[Any] = [axis.name if axis.size is None else axis for axis in new]
        return LabeledTensor(reshaped, [*old[:start], *axes, *old[stop:]])


def rename_axis(
    labeled_tensor: Any, existing_name: str, new_name: str, name: str | None = None
) -> LabeledTensor:
    """The tensor with an axis under another name; ValueError if it lacks the axis or has the name already."""
    with tf.name_scope(name, "lt_rename_axis", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        _require_axes(labeled_tensor, [existing_name], "existing_name")
        new_axis = Axis(new_name, labeled_tensor.axes[existing_name].value)
        return reshape(labeled_tensor, [existing_name], [new_axis], name=scope)


def random_crop(
    labeled_tensor: Any, shape_map: Mapping[str, int], seed: int | None = None, name: str | None = None
) -> LabeledTensor:
    """A part of the tensor at a random place: `shape_map` has sizes of axes, which lose their labels.

    Raises ValueError for an axis that the tensor lacks; a step fails with InvalidArgumentError if a size is
    larger than the axis.
    """
    with tf.name_scope(name, "lt_random_crop", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        _require_axes(labeled_tensor, list(shape_map), "Selection axes")
        axes = [
            Axis(axis.name, shape_map[axis.name]) if axis.name in shape_map else axis
            for axis in labeled_tensor.axes.values()
        ]
        crop = tf.random_crop(labeled_tensor.tensor, [len(axis) for axis in axes], seed=seed, name=scope)
        return LabeledTensor(crop, axes)


def squeeze(
    labeled_tensor: Any, axis_names: Sequence[str] | str | None = None, name: str | None = None
) -> LabeledTensor:
    """The tensor without these axes of size 1, by default without all of size 1.

    Raises ValueError for an axis that the tensor lacks, or whose size is larger or not known.
    """
    with tf.name_scope(name, "lt_squeeze", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        if axis_names is None:
            axis_names = [axis.name for axis in labeled_tensor.axes.values() if len(axis) == 1]
        axis_names = [axis_names] if isinstance(axis_names, str) else axis_names
        _require_axes(labeled_tensor, axis_names, "squeezed axes")
        for axis_name in axis_names:
            axis = labeled_tensor.axes[axis_name]
            if axis.size != 1:
                raise ValueError(f"cannot squeeze axis with size greater than 1: ({axis_name}, {axis!r})")
        positions = [_position(labeled_tensor, axis_name) for axis_name in axis_names]
        if not positions:
            return LabeledTensor(tf.identity(labeled_tensor.tensor, name=scope), labeled_tensor.axes)
        axes = [axis for axis in labeled_tensor.axes.values() if axis.name not in axis_names]
        return LabeledTensor(tf.squeeze(labeled_tensor.tensor, positions, name=scope), axes)


def matmul(a: Any, b: Any, name: str | None = None) -> LabeledTensor:
    """The product of vectors and matrices, summed over the one axis that both have.

    The result has the other axis of `a`, then that of `b`, as far as there are. Raises ValueError if no axis
    is shared, NotImplementedError for ranks above 2 and for two shared axes.
    """
    with tf.name_scope(name, "lt_matmul", [a, b]) as scope:
        a, b = convert_to_labeled_tensor(a), convert_to_labeled_tensor(b)
        if len(a.axes) > 2 or len(b.axes) > 2:
            ranks = f"{len(a.axes)} and {len(b.axes)}"
            raise NotImplementedError(f"matmul takes vectors and matrices, not tensors of ranks {ranks}")
        shared = sorted(set(a.axes) & set(b.axes))
        if len(shared) > 1:
            raise NotImplementedError(
                f"matmul sums over one shared axis, not over {shared}: reshape joins axes"
            )
        if not shared:
            raise ValueError(f"the arguments of matmul share no axis: {list(a.axes)} and {list(b.axes)}")
        if a.axes[shared[0]] != b.axes[shared[0]]:
            raise ValueError(f"Mismatched axis: {a.axes[shared[0]]!r} and {b.axes[shared[0]]!r}")
        left = tf.reshape(a.tensor, [1, -1]) if len(a.axes) == 1 else a.tensor
        right = tf.reshape(b.tensor, [-1, 1]) if len(b.axes) == 1 else b.tensor
        turned = list(a.axes)[-1:] != shared, list(b.axes)[:1] != shared
        product = tf.matmul(left, right, transpose_a=turned[0], transpose_b=turned[1])
        single = [axis for axis, each in enumerate((a, b)) if len(each.axes) == 1]
        product = tf.squeeze(product, single) if single else product
        axes = [*a.axes.remove(shared[0]).values(), *b.axes.remove(shared[0]).values()]
        return LabeledTensor(tf.identity(product, name=scope), axes)


def tile(labeled_tensor: Any, multiples: Mapping[str, Any], name: str | None = None) -> LabeledTensor:
    """The tensor repeated along axes without labels; ValueError for others and for axes that it lacks."""
    with tf.name_scope(name, "lt_tile", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        _require_axes(labeled_tensor, list(multiples), "tile axes")
        labelled = [axis for axis in multiples if labeled_tensor.axes[axis].labels is not None]
        if labelled:
            raise ValueError(f"cannot tile axes with tick labels: {labelled}")
        counts = [multiples.get(axis, 1) for axis in labeled_tensor.axes]
        tiled = tf.tile(labeled_tensor.tensor, counts, name=scope)
        return LabeledTensor(
            tiled, [axis.name if axis.labels is None else axis for axis in labeled_tensor.axes.values()]
        )


def pad(
    labeled_tensor: Any,
    paddings: Mapping[str, tuple[Any, Any]],
    mode: str = "CONSTANT",
    name: str | None = None,
) -> LabeledTensor:
    """The tensor with positions added before and after those of axes.

    `paddings` gives for an axis how many, or their labels, before and after; `mode` is that of `tf.pad`. An
    axis keeps its labels if there are labels for all new positions. ValueError for axes that it lacks.
    """
    with tf.name_scope(name, "lt_pad", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        _require_axes(labeled_tensor, list(paddings), "pad axes")
        axes, counts = [], []
        for axis in labeled_tensor.axes.values():
            before, after = (Axis(axis.name, value) for value in paddings.get(axis.name, (0, 0)))
            counts.append([len(before), len(after)])
            axes.append(concat_axes([before, axis, after]) if axis.name in paddings else axis)
        return LabeledTensor(tf.pad(labeled_tensor.tensor, counts, mode, name=scope), axes)


def constant(
    value: Any, dtype: Any = None, axes: Sequence[Any] | None = None, name: str | None = None
) -> Any:
    """A constant with axes, whose sizes a scalar value is repeated to.

    An axis is a name, an Axis or a pair ``(name, size or labels)``. Raises TypeError if the value's shape is
    another.
    """
    with tf.name_scope(name, "lt_constant", []) as scope:
        listed = [] if axes is None else list(axes)
        shape: list[int] | None = None
        if not any(isinstance(axis, str) for axis in listed):
            shape = [len(as_axis(axis)) for axis in listed]
        tensor = tf.constant(value, dtype=dtype, shape=shape, name=scope, verify_shape=not listed)
        return LabeledTensor(tensor, listed)


def zeros_like(labeled_tensor: Any, dtype: Any = None, name: str | None = None) -> LabeledTensor:
    """Zeros with the axes of a tensor, of its type or of `dtype`."""
    with tf.name_scope(name, "lt_zeros_like", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        return LabeledTensor(tf.zeros_like(labeled_tensor.tensor, dtype, name=scope), labeled_tensor.axes)


def ones_like(labeled_tensor: Any, dtype: Any = None, name: str | None = None) -> LabeledTensor:
    """Ones with the axes of a tensor, of its type or of `dtype`."""
    with tf.name_scope(name, "lt_ones_like", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        return LabeledTensor(tf.ones_like(labeled_tensor.tensor, dtype, name=scope), labeled_tensor.axes)


def cast(labeled_tensor: Any, dtype: Any = None, name: str | None = None) -> LabeledTensor:
    """The tensor's values as another type; TypeError without one."""
    with tf.name_scope(name, "lt_cast", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        if dtype is None:
            raise TypeError("cast takes the type of the result")
        return LabeledTensor(tf.cast(labeled_tensor.tensor, dtype, name=scope), labeled_tensor.axes)


def verify_tensor_all_finite(labeled_tensor: Any, message: str, name: str | None = None) -> LabeledTensor:
    """The tensor itself; a step fails with `message` if it has an infinite value or NaN."""
    with tf.name_scope(name, "lt_verify_tensor_all_finite", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        checked = tf.verify_tensor_all_finite(labeled_tensor.tensor, message, name=scope)
        return LabeledTensor(checked, labeled_tensor.axes)


def boolean_mask(labeled_tensor: Any, mask: Any, name: str | None = None) -> LabeledTensor:
    """The positions along the first axis at which a mask is true; the axis loses its labels and size.

    `mask` has one axis, the tensor's first one: ValueError if not, NotImplementedError for several axes.
    """
    with tf.name_scope(name, "lt_boolean_mask", [labeled_tensor, mask]) as scope:
        labeled_tensor, mask = convert_to_labeled_tensor(labeled_tensor), convert_to_labeled_tensor(mask)
        if len(mask.axes) > 1:
            raise NotImplementedError("boolean_mask takes a mask with one axis")
        first = list(labeled_tensor.axes.values())[:1]
        if first != list(mask.axes.values()):
            raise ValueError(
                f"the tensor's first axis is not the mask's: {first} and {list(mask.axes.values())}"
            )
        masked = tf.boolean_mask(labeled_tensor.tensor, mask.tensor, name=scope)
        return LabeledTensor(masked, [first[0].name, *list(labeled_tensor.axes.values())[1:]])


def where(condition: Any, x: Any, y: Any, name: str | None = None) -> LabeledTensor:
    """The elements of `x` where the condition is true, else those of `y`; ValueError if axes differ."""
    with tf.name_scope(name, "lt_where", [condition, x, y]) as scope:
        condition, x, y = (convert_to_labeled_tensor(each) for each in (condition, x, y))
        if not condition.axes == x.axes == y.axes:
            raise ValueError("all inputs to `where` must have equal axes")
        return LabeledTensor(tf.where(condition.tensor, x.tensor, y.tensor, name=scope), x.axes)
