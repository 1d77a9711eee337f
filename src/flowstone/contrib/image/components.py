"""Connected components of images, and greedy matchings of rows and columns by their distances."""

from __future__ import annotations

from typing import Any, NamedTuple

import flowstone as tf

__all__ = ["BipartiteMatch", "bipartite_match", "connected_components"]


def _neighbours(labels: Any, values: Any, none: Any) -> Any:
    """For each pixel the least label of itself and its four neighbours of the same value; axes 1 and 2."""
    least = labels
    for axis in (1, 2):
        size = tf.shape(labels)[axis]
        for step in (1, -1):
            position = tf.range(size)
            inside = tf.logical_and(position + step >= 0, position + step < size)
            shape = [1, -1, 1] if axis == 1 else [1, 1, -1]
            index = tf.clip_by_value(position + step, 0, size - 1)
            same = tf.equal(tf.gather(values, index, axis=axis), values)
            same = tf.logical_and(same, tf.reshape(inside, shape))
            least = tf.minimum(least, tf.where(same, tf.gather(labels, index, axis=axis), none))
    return least


def _component_labels(values: Any) -> Any:
    """For each pixel of [n, height, width] the flat position of its component's first pixel.

    Each round takes the least label around each pixel, hands it to the component's representative, and
    follows labels to their own labels, so that paths halve (Shiloach and Vishkin, 1982).
    """
    shape = tf.shape(values)
    count = tf.reduce_prod(shape)
    none = tf.fill(shape, count)

    def round_of(labels: Any, _: Any) -> tuple[Any, Any]:
        least = _neighbours(labels, values, none)
        flat = tf.reshape(labels, [-1])
        joined = tf.minimum(flat, tf.unsorted_segment_min(tf.reshape(least, [-1]), flat, count))
        followed = tf.gather(joined, tf.gather(joined, flat))
        result = tf.reshape(followed, shape)
        return result, tf.reduce_any(tf.not_equal(result, labels))

    start = tf.reshape(tf.range(count), shape), tf.constant(True)
    labels, _ = tf.while_loop(lambda _, changed: changed, round_of, start, back_prop=False)
    return labels


def connected_components(images: Any) -> Any:
    """Numbers of the connected components of images: neighbouring pixels, but for corners, of the same value.

    Args:
        images: a tensor of shape [height, width] or [n, height, width], of any type. Pixels that are 0,
            False or the empty string are background.

    Returns an int32 tensor of the same shape: 0 for the background, and 1, 2, … for components in the order
    of their first pixels, through all images. Raises TypeError for images of another rank.
    """
    with tf.name_scope("connected_components"):
        images = tf.convert_to_tensor(images, name="images")
        rank = images.get_shape().ndims
        if rank not in (2, 3):
            raise TypeError(
                f"images should have rank 2 (HW) or 3 (NHW). Static shape is {images.get_shape()}"
            )
        batch = images[tf.newaxis] if rank == 2 else images
        present = tf.reshape(tf.not_equal(batch, tf.zeros_like(batch)), [-1])
        flat = tf.reshape(_component_labels(batch), [-1])
        first = tf.logical_and(present, tf.equal(flat, tf.range(tf.size(flat))))
        numbers = tf.cumsum(tf.cast(first, tf.int32))
        found = tf.where(present, tf.gather(numbers, flat), tf.zeros_like(flat))
        return tf.reshape(found, tf.shape(images))


class BipartiteMatch(NamedTuple):
    """For each row the column that it has, for each column its row; -1 where there is none."""

    row_to_col_match_indices: Any
    col_to_row_match_indices: Any


def bipartite_match(
    distance_mat: Any, num_valid_rows: Any, top_k: int = -1, name: str = "bipartite_match"
) -> BipartiteMatch:
    """Rows matched with columns one by one, the nearest pair that is left first.

    Args:
        distance_mat: float32 tensor of shape [rows, columns].
        num_valid_rows: a float scalar or a vector with one element: only so many of the first rows are
            matched; all if it is negative.
        top_k: how many pairs are made at most; as many as possible if it is negative.
        name: of the operation.

    Returns a named tuple of the int32 tensors `row_to_col_match_indices` and `col_to_row_match_indices`.
    Raises ValueError for distances that are no matrix.
    """
    with tf.name_scope(name):
        distances = tf.convert_to_tensor(distance_mat, tf.float32, name="distance_mat")
        distances.get_shape().assert_has_rank(2)
        rows, columns = tf.unstack(tf.shape(distances))
        valid = tf.cast(tf.reshape(tf.convert_to_tensor(num_valid_rows, tf.float32), []), tf.int32)
        valid = tf.where(valid < 0, rows, tf.minimum(valid, rows))
        pairs = tf.minimum(valid, columns)
        pairs = pairs if top_k < 0 else tf.minimum(pairs, top_k)

        def match(done: Any, row_to_col: Any, col_to_row: Any) -> tuple[Any, Any, Any]:
            free = tf.logical_and(row_to_col < 0, tf.range(rows) < valid)
            open_pairs = tf.logical_and(free[:, tf.newaxis], (col_to_row < 0)[tf.newaxis])
            left = tf.where(open_pairs, distances, tf.fill([rows, columns], float("inf")))
            nearest = tf.argmin(tf.reshape(left, [-1]), output_type=tf.int32)
            row, column = nearest // columns, nearest % columns
            row_to_col = tf.where(tf.equal(tf.range(rows), row), tf.fill([rows], column), row_to_col)
            col_to_row = tf.where(tf.equal(tf.range(columns), column), tf.fill([columns], row), col_to_row)
            return done + 1, row_to_col, col_to_row

        start = tf.constant(0), tf.fill([rows], -1), tf.fill([columns], -1)
        shapes = [tf.TensorShape([]), *(tf.TensorShape([size]) for size in distances.get_shape().as_list())]
        _, row_to_col, col_to_row = tf.while_loop(
            lambda done, *_: done < pairs, match, start, shape_invariants=shapes, back_prop=False
        )
        return BipartiteMatch(row_to_col, col_to_row)
