"""Calls of the functions of `tf` that make, shape, slice, join and reorder arrays."""

from class_calls import ClassCalls

VALUES = """
a = tf.reshape(tf.range(12), [3, 4])
f = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
x = tf.constant([[1, 2, 3], [4, 5, 6]])
ph = tf.placeholder(tf.float32, [None, 3])
"""
MAKING = {
    "constant": (
        "[tf.constant(7, tf.int64, [2, 2], 'c'), tf.constant([1.5]), tf.constant([1, 2], shape=[4]),"
        " tf.constant('s').dtype, tf.constant([1, 2], None, [2], 'd', True)]"
    ),
    "convert_to_tensor": (
        "[tf.convert_to_tensor([1, 2], tf.int64, 'a'), tf.convert_to_tensor(1.5, None, 'b', tf.float64)]"
    ),
    "convert_to_tensor_or_indexed_slices": (
        "[tf.convert_to_tensor_or_indexed_slices([1], tf.int64, 'a'),"
        " type(tf.convert_to_tensor_or_indexed_slices(tf.IndexedSlices(x, [0, 1])))]"
    ),
    "convert_to_tensor_or_sparse_tensor": (
        "[tf.convert_to_tensor_or_sparse_tensor([1], tf.int64, 'a'),"
        " tf.convert_to_tensor_or_sparse_tensor(tf.SparseTensorValue([[1]], [2.5], [3])).values]"
    ),
    "fill": "[tf.fill([2, 3], 7, 'a'), tf.fill([2], 's')]",
    "lin_space": "tf.lin_space(1.0, 2.0, 5, 'a')",
    "linspace": "tf.linspace(1.0, 2.0, 5, 'a')",
    "make_ndarray": "tf.make_ndarray(tf.make_tensor_proto([[1, 2], [3, 4]], tf.int16))",
    "make_tensor_proto": (
        "[[p.dtype, [d.size for d in p.tensor_shape.dim]] for p in"
        " [tf.make_tensor_proto([1, 2], tf.float64, [2, 1]), tf.make_tensor_proto('text')]]"
    ),
    "meshgrid": "[tf.meshgrid([1, 2], [3, 4, 5]), tf.meshgrid([1, 2], [3, 4, 5], indexing='ij')]",
    "newaxis": "x[:, tf.newaxis]",
    "one_hot": "[tf.one_hot([0, 2, -1], 3, 5.0, 1.0, 0, tf.float32, 'a'), tf.one_hot([1], 2)]",
    "ones": "[tf.ones([2, 2], tf.int32, 'a'), tf.ones([1])]",
    "ones_like": "[tf.ones_like(x, tf.float64, 'a', False), tf.ones_like(x)]",
    "placeholder": "[tf.placeholder(tf.int32, [None, 2], 'p').name, tf.placeholder(tf.string).shape]",
    "placeholder_with_default": (
        "[tf.placeholder_with_default([1.5], [None], 'd'), tf.placeholder_with_default([1.5], [None]).shape]"
    ),
    "range": (
        "[tf.range(2, 9, 3, tf.float32, 'a'), tf.range(4), tf.range(5.0, 1.0, -1.5), tf.range(3, 5).op.name]"
    ),
    "zeros": "[tf.zeros([2, 2], tf.int32, 'a'), tf.zeros([1], tf.string)]",
    "zeros_like": "[tf.zeros_like(x, tf.float64, 'a', False), tf.zeros_like(x)]",
}
SHAPES = {
    "broadcast_dynamic_shape": "tf.broadcast_dynamic_shape([3, 1], [2, 1, 4])",
    "broadcast_static_shape": "tf.broadcast_static_shape(tf.TensorShape([3, 1]), tf.TensorShape([2, 1, 4]))",
    "expand_dims": "[tf.expand_dims(x, 1, 'a'), tf.expand_dims(x, dim=-1)]",
    "rank": "tf.rank(x, 'a')",
    "required_space_to_batch_paddings": (
        "list(tf.required_space_to_batch_paddings([5, 6], [2, 4], [[1, 0], [0, 1]], 'a'))"
    ),
    "reshape": "[tf.reshape(x, [3, -1], 'a'), tf.reshape(x, [-1]).shape]",
    "shape": "[tf.shape(x, 'a', tf.int64), tf.shape(x)]",
    "shape_n": "list(tf.shape_n([x, a], tf.int64, 'a'))",
    "size": "[tf.size(x, 'a', tf.int64), tf.size(x)]",
    "squeeze": "[tf.squeeze(f, [0], 'a').shape, tf.squeeze(f), tf.squeeze(f, squeeze_dims=[3]).shape]",
    "sequence_mask": "[tf.sequence_mask([1, 0, 3], 4, tf.int32, 'a'), tf.sequence_mask([[1], [2]])]",
}
JOINING = {
    "concat": "[tf.concat([x, x + 6], 1, 'a'), tf.concat([x], 0), tf.concat([x, x], -2).op.name]",
    "dynamic_partition": "tf.dynamic_partition(x, [1, 0], 3, 'a')",
    "dynamic_stitch": "tf.dynamic_stitch([[0, 2], 1], [x, [7, 8, 9]], 'a')",
    "parallel_stack": "tf.parallel_stack([x, x + 6], 'a')",
    "split": "[tf.split(a, [1, 3], 1, 2, 'a'), tf.split(a, 3), tf.split(a, [2, -1], axis=1)]",
    "stack": "[tf.stack([x, x + 6], 1, 'a'), tf.stack([1, 2]), tf.stack([x, x]).op.name]",
    "tile": "tf.tile(x, [2, 1], 'a')",
    "unstack": "[tf.unstack(x, 3, 1, 'a'), tf.unstack(x)]",
}
PICKING = {
    "boolean_mask": (
        "[tf.boolean_mask(x, [True, False], 'a'),"
        " tf.boolean_mask(x, [[True, False, True], [False, True, True]])]"
    ),
    "extract_image_patches": (
        "tf.extract_image_patches(f, [1, 2, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1], 'VALID', 'a')"
    ),
    "gather": "[tf.gather(x, [2, 0], True, 'a', 1), tf.gather(x, [[1], [0]]), tf.gather(x, [1], axis=-1)]",
    "gather_nd": "[tf.gather_nd(x, [[1, 2], [0, 0]], 'a'), tf.gather_nd(x, [[1]])]",
    "invert_permutation": "tf.invert_permutation([2, 0, 1], 'a')",
    "pad": (
        "[tf.pad(x, [[1, 0], [0, 2]], 'CONSTANT', 'a', 9), tf.pad(x, [[1, 0], [0, 2]], 'REFLECT'),"
        " tf.pad(x, [[1, 0], [0, 2]], 'symmetric')]"
    ),
    "reverse": "[tf.reverse(x, [1], 'a'), tf.reverse(x, [0, -1])]",
    "reverse_sequence": (
        "[tf.reverse_sequence(a, [2, 1, 4], 1, 0, 'a'), tf.reverse_sequence(a, [2, 1, 4], seq_dim=1,"
        " batch_dim=0)]"
    ),
    "reverse_v2": "tf.reverse_v2(x, [1], 'a')",
    "scatter_nd": (
        "[tf.scatter_nd([[1], [3], [1]], [5, 6, 7], [5], 'a'), tf.scatter_nd([[0]], x[:1], [2, 3])]"
    ),
    "slice": "[tf.slice(a, [1, 0], [2, -1], 'a'), a[1:, ::2]]",
    "strided_slice": (
        "[tf.strided_slice(a, [0, 1], [3, 4], [2, 2], 0, 0, 0, 0, 0, None, 'a'),"
        " tf.strided_slice(a, [1, 1], [2, 2], begin_mask=2, end_mask=2, shrink_axis_mask=1),"
        " tf.strided_slice(a, [0, 0], [2, 0], ellipsis_mask=2, new_axis_mask=1).shape]"
    ),
    "transpose": (
        "[tf.transpose(x, [1, 0], 'a'), tf.transpose(a), tf.transpose(tf.constant([[1j, 2.0]]),"
        " conjugate=True)]"
    ),
    "where": "[tf.where(x > 2, x, -x, 'a'), tf.where(x > 4), tf.where([True, False], x, x + 6)]",
}
BLOCKS = {
    "batch_to_space": "tf.batch_to_space(tf.reshape(f, [4, 2, 2, 1]), [[1, 0], [0, 1]], 2, 'a')",
    "batch_to_space_nd": "tf.batch_to_space_nd(tf.reshape(f, [4, 2, 2]), [2, 2], [[1, 0], [0, 1]], 'a')",
    "depth_to_space": "tf.depth_to_space(tf.reshape(f, [1, 2, 2, 4]), 2, 'a', 'NHWC')",
    "space_to_batch": "tf.space_to_batch(f, [[1, 1], [0, 0]], 2, 'a')",
    "space_to_batch_nd": "tf.space_to_batch_nd(f, [2, 2], [[1, 1], [0, 0]], 'a')",
    "space_to_depth": "tf.space_to_depth(f, 2, 'a', 'NHWC')",
    "edit_distance": (
        "tf.edit_distance(tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [2, 2]),"
        " tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [1, 3, 4], [2, 2]), False, 'a')"
    ),
    "identity": "[tf.identity(x, 'a'), tf.identity(x, 'copy').op.name]",
    "identity_n": "[tf.identity_n([x, a], 'a'), tf.identity_n([x], 'copies')[0].op.name]",
    "stop_gradient": "[tf.stop_gradient(x, 'a'), tf.gradients(tf.stop_gradient(ph) + ph, ph)[0].shape]",
}
TABLES = [ClassCalls("tf", VALUES, {**MAKING, **SHAPES, **JOINING, **PICKING, **BLOCKS})]
