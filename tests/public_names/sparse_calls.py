"""Calls of the functions of `tf` on sparse tensors."""

from class_calls import ClassCalls

VALUES = """
a = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1.5, -2.0, 3.0], [2, 3])
b = tf.SparseTensor([[0, 1], [1, 1]], [0.5, 4.0], [2, 3])
disordered = tf.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 3])
ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [3, 1, 0], [3, 2])
ids64 = tf.SparseTensor(ids.indices, tf.to_int64(ids.values), ids.dense_shape)
weights = tf.SparseTensor(ids.indices, [0.5, 1.5, 2.5], ids.dense_shape)
d = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
slices = tf.IndexedSlices(tf.constant([[1, 2], [3, 4], [5, 6]]), tf.constant([0, 4, 7]))
def parts(value):
    return [value.indices, value.values, value.dense_shape]
"""
CALLS = {
    "deserialize_many_sparse": (
        "parts(tf.deserialize_many_sparse(tf.stack([tf.serialize_sparse(a), tf.serialize_sparse(b)]),"
        " tf.float32, 2, 'a'))"
    ),
    "serialize_many_sparse": "tf.serialize_many_sparse(a, 'a').shape.as_list()",
    "serialize_sparse": "tf.serialize_sparse(a, 'a').shape.as_list()",
    "sparse_add": "[parts(tf.sparse_add(a, b, 2.5)), tf.sparse_add(a, tf.ones([2, 3]))]",
    "sparse_concat": (
        "[parts(tf.sparse_concat(1, [a, b], 'a')), parts(tf.sparse_concat(None, [a, b], concat_dim=0)),"
        " parts(tf.sparse_concat(0, [a, ids_as_wide()], expand_nonconcat_dim=True))]"
    ),
    "sparse_fill_empty_rows": (
        "[[parts(s), empty] for s, empty in [tf.sparse_fill_empty_rows(ids, 9, 'a')]]"
    ),
    "sparse_mask": "[[m.values, m.indices] for m in [tf.sparse_mask(slices, [4, 0], 'a')]]",
    "sparse_maximum": "parts(tf.sparse_maximum(a, b, 'a'))",
    "sparse_merge": (
        "[parts(tf.sparse_merge(ids64, weights, 5, 'a', False)), parts(tf.sparse_merge([ids64],"
        " weights, [4]))]"
    ),
    "sparse_minimum": "parts(tf.sparse_minimum(a, b, 'a'))",
    "sparse_placeholder": (
        "[[p.indices.shape, p.values.dtype, p.values.name] for p in [tf.sparse_placeholder(tf.int32,"
        " [2, 3], 'p')]]"
    ),
    "sparse_reduce_max": "[tf.sparse_reduce_max(a, 1, True), tf.sparse_reduce_max(a, reduction_axes=0)]",
    "sparse_reduce_max_sparse": "parts(tf.sparse_reduce_max_sparse(a, 1, True))",
    "sparse_reduce_sum": "[tf.sparse_reduce_sum(a, 1, True), tf.sparse_reduce_sum(a, reduction_axes=0)]",
    "sparse_reduce_sum_sparse": "parts(tf.sparse_reduce_sum_sparse(a, 1, True))",
    "sparse_reorder": "parts(tf.sparse_reorder(disordered, 'a'))",
    "sparse_reset_shape": "[parts(tf.sparse_reset_shape(a, [4, 5])), parts(tf.sparse_reset_shape(b))]",
    "sparse_reshape": "parts(tf.sparse_reshape(a, [3, -1], 'a'))",
    "sparse_retain": "parts(tf.sparse_retain(a, [True, False, True]))",
    "sparse_slice": "parts(tf.sparse_slice(a, [1, 0], [1, 2], 'a'))",
    "sparse_softmax": "parts(tf.sparse_softmax(a, 'a'))",
    "sparse_split": ("[[parts(s) for s in tf.sparse_split(sp_input=a, num_split=2, axis=1, name='a')]]"),
    "sparse_tensor_dense_matmul": (
        "[tf.sparse_tensor_dense_matmul(a, d, name='a'), tf.sparse_tensor_dense_matmul(a, d[:2], True),"
        " tf.sparse_tensor_dense_matmul(a, tf.transpose(d), False, True)]"
    ),
    "sparse_tensor_to_dense": (
        "[tf.sparse_tensor_to_dense(a, -1.0, True, 'a'), tf.sparse_tensor_to_dense(disordered, 7, False),"
        " tf.sparse_tensor_to_dense(disordered)]"
    ),
    "sparse_to_dense": (
        "[tf.sparse_to_dense([[1], [0]], [3], [5, 6], 9, False, 'a'), tf.sparse_to_dense(2, [4], 7)]"
    ),
    "sparse_to_indicator": "tf.sparse_to_indicator(ids64, 5, 'a')",
    "sparse_transpose": "[parts(tf.sparse_transpose(a, [1, 0], 'a')), parts(tf.sparse_transpose(b))]",
}
VALUES += """
def ids_as_wide():
    return tf.SparseTensor(ids.indices, tf.to_float(ids.values), [3, 2])
"""
TABLES = [ClassCalls("tf", VALUES, CALLS)]
