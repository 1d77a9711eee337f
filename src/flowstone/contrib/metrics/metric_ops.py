"""Metrics of streams: counts, agreement, concatenation; and several metrics together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.layers.metrics.state import gathered, metric_variable, published
from flowstone.layers.weights_broadcast import broadcast_weights

Pair = Any  # a value and the operation that updates it


def aggregate_metrics(*value_update_tuples: Pair) -> tuple[list[Any], list[Any]]:
    """The values and the updates of several metrics, as two lists. ValueError if there is none."""
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples)
    return list(values), list(updates)


def aggregate_metric_map(names_to_tuples: Mapping[str, Pair]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values and the updates of several metrics, as two dicts by their names."""
    values = {name: value for name, (value, _) in names_to_tuples.items()}
    return values, {name: update for name, (_, update) in names_to_tuples.items()}


def count(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The number of elements, or the sum of their weights; a value and its update."""
    with tf.variable_scope(name, "count", (values, weights)):
        total = metric_variable([], tf.float32, name="count")
        if weights is None:
            number = tf.cast(tf.size(values), tf.float32)
        else:
            values = tf.convert_to_tensor(values)
            weights = broadcast_weights(tf.cast(weights, tf.float32), values)
            number = tf.reduce_sum(weights)
        update_op = tf.assign_add(total, number)
        return published(tf.identity(gathered(total)), update_op, metrics_collections, updates_collections)


def cohen_kappa(
    labels: Any, predictions_idx: Any, num_classes: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Pair:  # fmt: skip
    """Cohen's kappa, the agreement of two raters beyond chance; a value and its update.

    Source: Cohen, "A Coefficient of Agreement for Nominal Scales" (1960). `labels` and `predictions_idx` are
    classes [batch] or [batch, 1]. ValueError for less than two classes.
    """
    if num_classes < 2:
        raise ValueError(f"`num_classes` must be >= 2.Found: {num_classes}")
    with tf.variable_scope(name, "cohen_kappa", (labels, predictions_idx, weights)):
        rows, columns = tf.cast(labels, tf.int64), tf.cast(predictions_idx, tf.int64)
        rows, columns = (
            tf.squeeze(each, [-1]) if each.shape.ndims == 2 else each for each in (rows, columns)
        )
        dtype = tf.int64 if weights is None else tf.float32
        agreed = metric_variable([num_classes], dtype, name="po")
        row_sums = metric_variable([num_classes], dtype, name="pe_row")
        column_sums = metric_variable([num_classes], dtype, name="pe_col")
        factor = None if weights is None else tf.reshape(tf.cast(weights, dtype), [-1])
        table = tf.confusion_matrix(rows, columns, num_classes, dtype=dtype, weights=factor)
        updates = [
            tf.assign_add(agreed, tf.diag_part(table)),
            tf.assign_add(row_sums, tf.reduce_sum(table, 1)),
            tf.assign_add(column_sums, tf.reduce_sum(table, 0)),
        ]

        def kappa(po: Any, pe_row: Any, pe_col: Any, label: str) -> Any:
            total = tf.reduce_sum(pe_row)
            chance = tf.div_no_nan(
                tf.cast(tf.reduce_sum(pe_row * pe_col), tf.float64), tf.cast(total, tf.float64)
            )
            beyond = tf.cast(tf.reduce_sum(po), tf.float64) - chance
            possible = tf.cast(total, tf.float64) - chance
            return tf.div_no_nan(beyond, possible, name=label)

        value = kappa(gathered(agreed), gathered(row_sums), gathered(column_sums), "value")
        update_op = kappa(updates[0], updates[1], updates[2], "update_op")
        return published(value, update_op, metrics_collections, updates_collections)


def streaming_concat(
    values: Any, axis: int = 0, max_size: int | None = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Pair:  # fmt: skip
    """All values so far, joined along `axis`; and the update that joins more.

    Args:
        values: a tensor whose sizes but that along `axis` are known.
        max_size: what comes after this many along `axis` is left out.

    Raises:
        ValueError: `axis` is out of range, or another size is not known.
    """
    with tf.variable_scope(name, "streaming_concat", (values,)):
        values = tf.convert_to_tensor(values)
        axis, others = _joined_axis(values.shape, axis)
        rank = values.shape.ndims
        order = [axis, *(i for i in range(rank) if i != axis)]
        back = [order.index(i) for i in range(rank)]
        array = metric_variable([0, *others], values.dtype, validate_shape=False, name="array")
        size = metric_variable([], tf.int32, name="size")
        rows = values if axis == 0 else tf.transpose(values, order)
        known = array.read_value() if hasattr(array, "read_value") else tf.identity(array)
        kept = known[:size]
        kept.set_shape([None, *others])
        value = tf.identity(kept if axis == 0 else tf.transpose(kept, back), name="concat")
        new_rows = rows if max_size is None else rows[: tf.maximum(max_size - size, 0)]
        new_size = size + tf.shape(new_rows)[0]
        whole = tf.concat([kept, new_rows], 0)
        with tf.control_dependencies([whole, new_size]):
            grown = tf.assign(array, whole, validate_shape=False, name="grown")
            with tf.control_dependencies([grown]):
                update_op = tf.assign(size, new_size)
        return published(value, update_op, metrics_collections, updates_collections)


def _joined_axis(shape: Any, axis: int) -> tuple[int, list[int]]:
    """The axis, counted from the front, and the other sizes."""
    rank = shape.ndims
    if rank is None or not -rank <= axis < rank:
        raise ValueError(f"axis = {axis} not in [0, {rank})")
    axis %= rank
    sizes = shape.as_list()
    others = sizes[:axis] + sizes[axis + 1 :]
    if None in others:
        raise ValueError(
            "all dimensions of `values` other than the dimension to concatenate along must have "
            "statically known size"
        )
    return axis, others
