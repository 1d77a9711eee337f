"""Reductions over axes by their names, and functions applied along the first axis."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.labeled_tensor.axes import Axis
from flowstone.contrib.labeled_tensor.core import LabeledTensor, convert_to_labeled_tensor
from flowstone.contrib.labeled_tensor.ops import unpack

__all__ = [
    "ReduceAxes",
    "ReduceAxis",
    "define_reduce_op",
    "foldl",
    "map_fn",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
]

ReduceAxis = str | tuple[str, Hashable]
ReduceAxes = ReduceAxis | Sequence[ReduceAxis] | None


def _reduced_axes(labeled_tensor: LabeledTensor, axes: Any) -> dict[str, Axis | None]:
    """For each axis to reduce what stays of it: an axis with one label, or nothing."""
    if axes is None:
        axes = list(labeled_tensor.axes)
    if isinstance(axes, (str, tuple)):
        axes = [axes]
    reduced: dict[str, Axis | None] = {}
    for axis in axes:
        name, kept = (axis, None) if isinstance(axis, str) else (axis[0], Axis(axis[0], [axis[1]]))
        if name not in labeled_tensor.axes:
            raise ValueError(f"Axis {name} not in axes {list(labeled_tensor.axes)}")
        reduced[name] = kept
    return reduced


def define_reduce_op(op_name: str, reduce_fn: Callable[..., Any]) -> Callable[..., LabeledTensor]:
    """A reduction of LabeledTensors from one of Tensors, which takes `axis` and `keepdims`.

    The function takes ``(labeled_tensor, axes=None, name=None)``. `axes` is a name, a pair of a name and a
    label, or a list of these, by default all axes; an axis with a label stays, with size 1 and that label.
    It raises ValueError for an axis that the tensor lacks. Its operation has the name ``lt_`` and `op_name`.
    """

    def op(labeled_tensor: Any, axes: Any = None, name: str | None = None) -> LabeledTensor:
        with tf.name_scope(name, f"lt_{op_name}", [labeled_tensor]) as scope:
            labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
            reduced = _reduced_axes(labeled_tensor, axes)
            names = list(labeled_tensor.axes)
            positions = [names.index(axis) for axis in reduced]
            tensor = reduce_fn(labeled_tensor.tensor, positions, keepdims=True)
            kept = [reduced.get(axis.name, axis) for axis in labeled_tensor.axes.values()]
            dropped = [position for position, axis in enumerate(kept) if axis is None]
            if dropped:
                tensor = tf.squeeze(tensor, dropped, name=scope)
            else:
                tensor = tf.identity(tensor, name=scope)
            return LabeledTensor(tensor, [axis for axis in kept if axis is not None])

    op.__doc__ = (
        f"`tf.{op_name}` over axes by their names; an axis given with a label stays, with that label."
    )
    op.__name__ = op.__qualname__ = op_name
    return op


reduce_all = define_reduce_op("reduce_all", tf.reduce_all)
reduce_any = define_reduce_op("reduce_any", tf.reduce_any)
reduce_logsumexp = define_reduce_op("reduce_logsumexp", tf.reduce_logsumexp)
reduce_max = define_reduce_op("reduce_max", tf.reduce_max)
reduce_mean = define_reduce_op("reduce_mean", tf.reduce_mean)
reduce_min = define_reduce_op("reduce_min", tf.reduce_min)
reduce_prod = define_reduce_op("reduce_prod", tf.reduce_prod)
reduce_sum = define_reduce_op("reduce_sum", tf.reduce_sum)


def map_fn(fn: Callable[[LabeledTensor], LabeledTensor], labeled_tensor: Any, name: str | None = None) -> Any:
    """The results of `fn` for each position of the first axis, along that axis.

    `fn` takes and gives LabeledTensors. Raises ValueError if the size of the first axis is not known,
    IndexError for a scalar.
    """
    with tf.name_scope(name, "lt_map_fn", [labeled_tensor]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        if not labeled_tensor.axes:
            raise IndexError("map_fn takes a tensor with at least one axis")
        first = unpack(labeled_tensor)[0]
        example = fn(first)

        def of_tensor(tensor: Any) -> Any:
            return fn(LabeledTensor(tensor, first.axes)).tensor

        mapped = tf.map_fn(of_tensor, labeled_tensor.tensor, dtype=example.dtype)
        axes = [next(iter(labeled_tensor.axes.values())), *example.axes.values()]
        return LabeledTensor(tf.identity(mapped, name=scope), axes)


def foldl(
    fn: Callable[[LabeledTensor, LabeledTensor], LabeledTensor],
    labeled_tensor: Any,
    initial_value: Any,
    name: str | None = None,
) -> LabeledTensor:
    """What `fn` makes of an accumulator and each position of the first axis in turn.

    The accumulator begins as `initial_value` and keeps its axes.
    """
    with tf.name_scope(name, "lt_foldl", [labeled_tensor, initial_value]) as scope:
        labeled_tensor = convert_to_labeled_tensor(labeled_tensor)
        initial = convert_to_labeled_tensor(initial_value)
        rest = list(labeled_tensor.axes.values())[1:]

        def of_tensors(accumulated: Any, tensor: Any) -> Any:
            return fn(LabeledTensor(accumulated, initial.axes), LabeledTensor(tensor, rest)).tensor

        folded = tf.foldl(of_tensors, labeled_tensor.tensor, initializer=initial.tensor)
        return LabeledTensor(tf.identity(folded, name=scope), initial.axes)
