"""Calls of the functions of `tf` that reduce, scan, count, search and segment."""

from class_calls import ClassCalls

VALUES = """
r = tf.constant([[[-2.5, -0.5, 0.0], [0.5, 1.5, 7.25]]])
i = tf.constant([[3, 0, -2], [7, 7, 0]])
b = tf.constant([[True, False], [True, True]])
d = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, -6.0], [0.5, 0.25]])
ids = tf.constant([0, 0, 2, 3])
mixed = tf.constant([2, 0, 2, 1])
e = tf.constant([5, 1, 5, 5, 2, 1])
"""
CALLS = {
    "arg_max": "tf.arg_max(i, 1, tf.int32, 'a')",
    "arg_min": "tf.arg_min(i, 1, tf.int32, 'a')",
    "argmax": "[tf.argmax(i, 1, 'a', output_type=tf.int32), tf.argmax(i), tf.argmax(i, dimension=1)]",
    "argmin": "[tf.argmin(i, 1, 'a', output_type=tf.int32), tf.argmin(i), tf.argmin(i, dimension=1)]",
    "bincount": (
        "[tf.bincount(e, e * 2, 3, 8), tf.bincount(e, None, 3, 4), tf.bincount(e, None, 8, None,"
        " tf.float32), tf.bincount([1])]"
    ),
    "confusion_matrix": (
        "[tf.confusion_matrix([0, 1, 2], [0, 2, 2], 4, tf.float32, 'a', [1, 2, 3]),"
        " tf.confusion_matrix([0, 1], [1, 1])]"
    ),
    "count_nonzero": (
        "[tf.count_nonzero(i, 1, True, tf.int32, 'a'), tf.count_nonzero(i),"
        " tf.count_nonzero(i, reduction_indices=0)]"
    ),
    "cumprod": "[tf.cumprod(i, 1, True, True, 'a'), tf.cumprod(i)]",
    "cumsum": "[tf.cumsum(i, 1, True, True, 'a'), tf.cumsum(i)]",
    "histogram_fixed_width": (
        "[tf.histogram_fixed_width(r, [-1.0, 2.0], 4, tf.int64, 'a'),"
        " tf.reduce_sum(tf.histogram_fixed_width(r, [-1.0, 2.0]))]"
    ),
    "reduce_all": "[tf.reduce_all(b, 1, True, 'a'), tf.reduce_all(b), tf.reduce_all(b, reduction_indices=0)]",
    "reduce_any": "[tf.reduce_any(b, 1, True, 'a'), tf.reduce_any(b), tf.reduce_any(b, reduction_indices=0)]",
    "reduce_join": (
        "[tf.reduce_join([['a', 'b'], ['c', 'd']], 0, True, '-', 'a'),"
        " tf.reduce_join([['a', 'b'], ['c', 'd']]),"
        " tf.reduce_join([['a', 'b'], ['c', 'd']], reduction_indices=[0, 1])]"
    ),
    "reduce_logsumexp": "[tf.reduce_logsumexp(r, 2, True, 'a'), tf.reduce_logsumexp(r)]",
    "reduce_max": (
        "[tf.reduce_max(r, [1, 2], True, 'a'), tf.reduce_max(i), tf.reduce_max(i, reduction_indices=0)]"
    ),
    "reduce_mean": (
        "[tf.reduce_mean(r, [1, 2], True, 'a'), tf.reduce_mean(i), tf.reduce_mean(i, reduction_indices=0)]"
    ),
    "reduce_min": (
        "[tf.reduce_min(r, [1, 2], True, 'a'), tf.reduce_min(i), tf.reduce_min(i, reduction_indices=0)]"
    ),
    "reduce_prod": (
        "[tf.reduce_prod(r, [1, 2], True, 'a'), tf.reduce_prod(i), tf.reduce_prod(i, reduction_indices=0)]"
    ),
    "reduce_sum": (
        "[tf.reduce_sum(r, [1, 2], True, 'a'), tf.reduce_sum(i), tf.reduce_sum(i, reduction_indices=0),"
        " tf.reduce_sum(i, []), tf.reduce_sum(i, 1, keep_dims=True)]"
    ),
    "segment_max": "tf.segment_max(d, ids, 'a')",
    "segment_mean": "tf.segment_mean(d, ids, 'a')",
    "segment_min": "tf.segment_min(d, ids, 'a')",
    "segment_prod": "tf.segment_prod(d, ids, 'a')",
    "segment_sum": "tf.segment_sum(d, ids, 'a')",
    "setdiff1d": "[list(tf.setdiff1d(e, [1, 2], tf.int64, 'a')), list(tf.setdiff1d(['b', 'a'], ['a']))]",
    "sparse_segment_mean": "tf.sparse_segment_mean(d, [3, 1, 2], [0, 0, 2], 'a')",
    "sparse_segment_sqrt_n": "tf.sparse_segment_sqrt_n(d, [3, 1, 2], [0, 0, 2], 'a')",
    "sparse_segment_sum": "tf.sparse_segment_sum(d, [3, 1, 2], [0, 0, 2], 'a')",
    "unique": "[tf.unique(e, tf.int64, 'a'), tf.unique(['b', 'a', 'b'])]",
    "unique_with_counts": "[tf.unique_with_counts(e, tf.int64, 'a'), tf.unique_with_counts(['b', 'a', 'b'])]",
    "unsorted_segment_max": "tf.unsorted_segment_max(tf.cast(d, tf.int32), mixed, 4, 'a')",
    "unsorted_segment_sum": "tf.unsorted_segment_sum(d, mixed, 4, 'a')",
}
TABLES = [ClassCalls("tf", VALUES, CALLS)]
