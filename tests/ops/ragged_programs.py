# ruff: noqa: E501
"""Programs of ragged tensors, for TensorFlow 1.15 and for flowstone: name -> function of the module `tf`."""


def _words(tf):
    return tf.ragged.constant([["a", "bc"], [], ["def"]])


def _numbers(tf, dtype=None):
    return tf.ragged.constant([[3, 1, 4], [], [5, 9], [2], []], dtype=dtype)


def _deep(tf):
    return tf.ragged.constant([[[1, 2], [3]], [], [[4, 5, 6], [], [7]]])


def _boxes(tf):
    return tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)


_GRID = [[[0, 1], [2, 3], [4, 5]], [[6, 7], [4, 5], [4, 5]]]

PROGRAMS = {
    "constants": lambda tf: [
        _words(tf), _numbers(tf), _deep(tf), _boxes(tf), tf.ragged.constant([[], []]),
        tf.ragged.constant([[[]], []]), tf.ragged.constant([[1.5], [2]], dtype=tf.float64),
        tf.ragged.constant([[[1, 2]], []], inner_shape=(2,)), tf.ragged.constant([[1], [2, 3]], row_splits_dtype=tf.int32),
        tf.ragged.constant(3), tf.ragged.constant([1, 2]),
    ],
    "parts": lambda tf: [
        _deep(tf).flat_values, _deep(tf).nested_row_splits[1], _deep(tf).values, _numbers(tf).row_lengths(),
        _numbers(tf).row_starts(), _numbers(tf).row_limits(), _numbers(tf).value_rowids(), _numbers(tf).nrows(),
        _deep(tf).row_lengths(axis=2), _deep(tf).bounding_shape(), _deep(tf).nested_row_lengths()[1],
        _deep(tf).nested_value_rowids()[1], _boxes(tf).row_lengths(axis=2), _boxes(tf).bounding_shape(axis=1),
    ],
    "factories": lambda tf: [
        tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 2, 3]),
        tf.RaggedTensor.from_row_lengths([1, 2, 3], [1, 0, 2]),
        tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2], nrows=5),
        tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2]),
        tf.RaggedTensor.from_row_starts([1, 2, 3], [0, 1, 1]),
        tf.RaggedTensor.from_row_limits([1, 2, 3], [0, 1, 3]),
        tf.RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 1, 2], [0, 1, 3]]),
        tf.RaggedTensor.from_nested_row_lengths([1, 2, 3], [[2, 0], [1, 2]]),
        tf.RaggedTensor.from_nested_value_rowids([1, 2, 3], [[0, 1], [0, 1, 1]]),
    ],
    "dense": lambda tf: [
        _numbers(tf).to_tensor(), _numbers(tf).to_tensor(-1), _deep(tf).to_tensor(), _words(tf).to_tensor(),
        _words(tf).to_tensor("-"), _boxes(tf).to_tensor(), tf.RaggedTensor.from_tensor([[1, 2, 0], [0, 0, 0]]),
        tf.RaggedTensor.from_tensor([[1, 2, 0], [0, 0, 0]], padding=0),
        tf.RaggedTensor.from_tensor([[1, 0, 2], [0, 0, 0]], padding=0),
        tf.RaggedTensor.from_tensor([[1, 2, 0], [0, 0, 0]], lengths=[1, 3]),
        tf.RaggedTensor.from_tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], ragged_rank=2),
        tf.RaggedTensor.from_tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], lengths=[1, 2]),
    ],
    "sparse": lambda tf: [
        _numbers(tf).to_sparse(), _deep(tf).to_sparse(), _boxes(tf).to_sparse(),
        tf.RaggedTensor.from_sparse(tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 2, 3], [4, 5])),
    ],
    "indexing": lambda tf: [
        _numbers(tf)[0], _numbers(tf)[-2], _numbers(tf)[1:3], _numbers(tf)[:, :2], _numbers(tf)[:, -1:],
        _numbers(tf)[::2], _numbers(tf)[::-1], _numbers(tf)[:, 1:], _numbers(tf)[2, 1],
        _deep(tf)[0, 1], _deep(tf)[:, :1], _deep(tf)[:, :, 1:], _deep(tf)[..., :1], _deep(tf)[2, 0, 1],
        _boxes(tf)[:, :, 0], _boxes(tf)[1, 0], _numbers(tf)[tf.constant(3)], _numbers(tf)[tf.newaxis],
        _numbers(tf)[:, tf.newaxis], _numbers(tf)[:, :-1], _numbers(tf)[1:, :1],
    ],
    "gathering": lambda tf: [
        tf.gather(_numbers(tf), [2, 0, 2]), tf.gather(_deep(tf), 2), tf.gather(_deep(tf), [2, 1]),
        tf.gather(tf.constant([10, 20, 30]), tf.ragged.constant([[0, 2], [], [1]])),
        tf.gather(_numbers(tf), tf.ragged.constant([[0, 2], [3]])), tf.gather(_numbers(tf), [[0, 2], [3, 1]]),
        tf.batch_gather(_numbers(tf), tf.ragged.constant([[2, 0], [], [1], [0], []])),
        tf.ragged.boolean_mask(_numbers(tf), [True, False, True, True, False]),
        tf.ragged.boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, True]]),
        tf.ragged.boolean_mask(_numbers(tf), tf.ragged.constant([[True, False, True], [], [False, True], [False], []])),
        tf.ragged.boolean_mask([1, 2, 3], [True, False, True]),
    ],
    "joining": lambda tf: [
        tf.concat([_numbers(tf), _numbers(tf)], axis=0), tf.concat([_numbers(tf), _numbers(tf)], axis=1),
        tf.concat([_numbers(tf), [[7], [8], [9], [6], [5]]], axis=1), tf.stack([_numbers(tf), _numbers(tf)]),
        tf.stack([_numbers(tf), _numbers(tf)], axis=1), tf.concat([_deep(tf)] * 2, axis=2),
        tf.tile(_numbers(tf), [1, 2]), tf.tile(_numbers(tf), [2, 1]),
        tf.expand_dims(_numbers(tf), 0), tf.expand_dims(_numbers(tf), 1), tf.expand_dims(_numbers(tf), -1),
        tf.squeeze(tf.expand_dims(_numbers(tf), -1), [2]), tf.concat([_words(tf), _words(tf)], axis=1),
        tf.ragged.stack_dynamic_partitions(["a", "b", "c", "d"], [2, 0, 2, 0], 4),
    ],
    "ranges": lambda tf: [
        tf.ragged.range([3, 0, 2]), tf.ragged.range([1, 5], [4, 7]), tf.ragged.range([0, 0, 0], [5, 4, -3], [2, 3, -1]),
        tf.ragged.range(0, [3, 5], 2), tf.ragged.range([0.5], [2.0], 0.5),
        tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5, 6, 9]), tf.ragged.segment_ids_to_row_splits([0, 0, 0, 2, 2, 3]),
        tf.ragged.segment_ids_to_row_splits([0, 0], num_segments=4),
    ],
    "reductions": lambda tf: [
        reduce(value, axis=axis)
        for reduce in (tf.reduce_sum, tf.reduce_prod, tf.reduce_mean, tf.reduce_max, tf.reduce_min)
        for value, axes in (
            (_numbers(tf, tf.float64)[:1], (None, 0, 1, -1)),
            (tf.cast(_deep(tf), tf.float64), (None, 0, [0, 1, 2])),
            (tf.cast(_deep(tf)[:1], tf.float64), (1, 2, -1, [1, 2])),
            (tf.cast(_boxes(tf), tf.float64), (None, 0, 1, 2, [0, 2])),
        )
        for axis in axes
    ]
    + [tf.reduce_any(_numbers(tf) > 4, axis=1),
       tf.reduce_all(_numbers(tf) > 2, axis=1), tf.reduce_sum(_numbers(tf), axis=1), tf.reduce_max(_numbers(tf), axis=1)],
    "means of integers": lambda tf: [
        tf.reduce_mean(tf.cast(_numbers(tf)[:1], kind), axis)
        for kind in (tf.int32, tf.int64, tf.float32) for axis in (None, 0, 1)
    ],
    "of unknown rank": lambda tf: [
        tf.RaggedTensor.from_tensor(tf.placeholder_with_default(_GRID, None), *arguments)
        for arguments in ((), ([1, 2],), (None, [4, 5]), (None, 0), (None, None, 2))
    ],
    "elements": lambda tf: [
        _numbers(tf) + 1, 10 - _numbers(tf), _numbers(tf) * _numbers(tf), -_numbers(tf), abs(_numbers(tf)),
        _numbers(tf) / 2, _numbers(tf) // 2, _numbers(tf) % 2, _numbers(tf) > 2, tf.cast(_numbers(tf), tf.float32),
        tf.square(_numbers(tf)), tf.add(_numbers(tf), [[10], [20], [30], [40], [50]]), tf.maximum(_numbers(tf), 3),
        tf.ones_like(_numbers(tf)), tf.identity(_deep(tf)), tf.equal(_numbers(tf), 5), _boxes(tf) * [10, 100],
        tf.strings.length(_words(tf)), tf.string_join([_words(tf), _words(tf)], "/"), tf.add_n([_numbers(tf)] * 3),
        tf.ragged.map_flat_values(lambda x: x * 2, _deep(tf)), tf.size(_deep(tf)), tf.rank(_deep(tf)),
        tf.where(_numbers(tf) > 2), tf.one_hot(_numbers(tf)[:1], 5), tf.clip_by_value(_numbers(tf), 2, 4),
        tf.unsorted_segment_sum(_numbers(tf), [0, 1, 0, 1, 1], 2), tf.as_string(_numbers(tf)),
    ],
    "strings": lambda tf: [
        tf.compat.v2.strings.split(["a b", "", "c d e"]), tf.compat.v2.strings.split(["a,b", "c"], ","),
        tf.compat.v2.strings.split("x y"), tf.strings.split(["a b", "c"], result_type="RaggedTensor"),
        tf.compat.v2.strings.split([["a b"], ["c"]]), tf.strings.unicode_decode(["ab", "c"], "UTF-8"),
        tf.strings.unicode_split(["ab", "c"], "UTF-8"), tf.strings.unicode_encode(tf.ragged.constant([[97, 98], [99]]), "UTF-8"),
        tf.strings.split(["a b", "c"]),
    ],
}  # fmt: skip

ERRORS = {
    "depths": lambda tf: tf.ragged.constant([1, [2]]),
    "empty depths": lambda tf: tf.ragged.constant([[[]], [1]]),
    "private": lambda tf: tf.RaggedTensor(tf.constant([1]), tf.constant([0, 1])),
    "no splits": lambda tf: tf.RaggedTensor.from_row_splits([1], []),
    "rows": lambda tf: tf.RaggedTensor.from_value_rowids([1], [3], nrows=2),
    "inner index": lambda tf: _numbers(tf)[:, 0],
    "axis": lambda tf: tf.reduce_sum(_numbers(tf), axis=2),
    "kept": lambda tf: tf.reduce_sum(_numbers(tf), axis=1, keepdims=True),
    "ranks": lambda tf: tf.concat([_numbers(tf), _deep(tf)], axis=0),
    "truth": lambda tf: bool(_numbers(tf)),
    "list": lambda tf: _numbers(tf).to_list(),
    "tensor": lambda tf: tf.convert_to_tensor(_numbers(tf)),
    "sparse": lambda tf: tf.RaggedTensor.from_sparse(tf.constant([1])),
    "both": lambda tf: tf.RaggedTensor.from_tensor([[1]], lengths=[1], padding=0),
    "padding": lambda tf: tf.RaggedTensor.from_tensor(_GRID, padding=0),
    "mask": lambda tf: tf.ragged.boolean_mask([1], True),
    "splits type": lambda tf: tf.ragged.constant([[1]], row_splits_dtype=tf.float32),
    "spec": lambda tf: tf.RaggedTensorSpec(),
    "spec rank": lambda tf: tf.RaggedTensorSpec([None], ragged_rank=1),
}


def plain(value):
    """A value that JSON has a form for."""
    if hasattr(value, "dense_shape"):
        return ["sparse", value.indices.tolist(), plain(value.values), value.dense_shape.tolist()]
    found = (
        value.to_list()
        if hasattr(value, "to_list")
        else value.tolist()
        if hasattr(value, "tolist")
        else value
    )
    return _text(found)


def _text(value):
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value
