"""Where the names of TensorFlow 1.15's `tf.compat.v2` differ from those of `tf.compat.v1`, as tables.

`SIGNATURES` has, by namespace, the functions whose arguments have other names, another order or other values
where the program says nothing; a line with ``= NAMESPACE:`` names those that are as there. `RENAMED` says
what ours are called, and `GIVEN` what ours is told besides.
`OTHERS` has what is another object here; `REFUSED` what would compute something else, with what to use.
"""

from __future__ import annotations

__all__ = ["GIVEN", "OTHERS", "REFUSED", "RENAMED", "SIGNATURES"]

SIGNATURES = """
tf:
    argmax(input, axis=None, output_type=int64, name=None)
    argmin(input, axis=None, output_type=int64, name=None)
    assert_equal(x, y, message=None, summarize=None, name=None)
    assert_greater(x, y, message=None, summarize=None, name=None)
    assert_less(x, y, message=None, summarize=None, name=None)
    assert_rank(x, rank, message=None, name=None)
    reduce_all(input_tensor, axis=None, keepdims=False, name=None)
    reduce_any(input_tensor, axis=None, keepdims=False, name=None)
    reduce_logsumexp(input_tensor, axis=None, keepdims=False, name=None)
    reduce_max(input_tensor, axis=None, keepdims=False, name=None)
    reduce_mean(input_tensor, axis=None, keepdims=False, name=None)
    reduce_min(input_tensor, axis=None, keepdims=False, name=None)
    reduce_prod(input_tensor, axis=None, keepdims=False, name=None)
    reduce_sum(input_tensor, axis=None, keepdims=False, name=None)
    batch_to_space(input, block_shape, crops, name=None)
    boolean_mask(tensor, mask, axis=None, name='boolean_mask')
    case(pred_fn_pairs, default=None, exclusive=False, strict=False, name='case')
    cond(pred, true_fn=None, false_fn=None, name=None)
    constant(value, dtype=None, shape=None, name='Const')
    convert_to_tensor(value, dtype=None, dtype_hint=None, name=None)
    device(device_name)
    expand_dims(input, axis, name=None)
    gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None)
    gather_nd(params, indices, batch_dims=0, name=None)
    gradients(ys, xs, grad_ys=None, name='gradients', gate_gradients=False, aggregation_method=None,
        stop_gradients=None, unconnected_gradients='none')
    hessians(ys, xs, gate_gradients=False, aggregation_method=None, name='hessians')
    name_scope(name)
    norm(tensor, ord='euclidean', axis=None, keepdims=None, name=None)
    ones_like(input, dtype=None, name=None)
    pad(tensor, paddings, mode='CONSTANT', constant_values=0, name=None)
    random_normal_initializer(mean=0.0, stddev=0.05, seed=None)
    random_uniform_initializer(minval=-0.05, maxval=0.05, seed=None)
    reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None)
    scalar_mul(scalar, x, name=None)
    shape(input, out_type=int32, name=None)
    size(input, out_type=int32, name=None)
    space_to_batch(input, block_shape, paddings, name=None)
    squeeze(input, axis=None, name=None)
    transpose(a, perm=None, conjugate=False, name='transpose')
    tuple(tensors, control_inputs=None, name=None)
    while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True,
        swap_memory=False, maximum_iterations=None, name=None)
    zeros_like(input, dtype=None, name=None)
debugging:
    = tf: assert_equal assert_greater assert_less assert_rank
    assert_all_finite(x, message, name=None)
    assert_greater_equal(x, y, message=None, summarize=None, name=None)
    assert_integer(x, message=None, name=None)
    assert_less_equal(x, y, message=None, summarize=None, name=None)
    assert_near(x, y, rtol=None, atol=None, message=None, summarize=None, name=None)
    assert_negative(x, message=None, summarize=None, name=None)
    assert_non_negative(x, message=None, summarize=None, name=None)
    assert_non_positive(x, message=None, summarize=None, name=None)
    assert_none_equal(x, y, summarize=None, message=None, name=None)
    assert_positive(x, message=None, summarize=None, name=None)
    assert_rank_at_least(x, rank, message=None, name=None)
    assert_rank_in(x, ranks, message=None, name=None)
    assert_scalar(tensor, message=None, name=None)
    assert_type(tensor, tf_type, message=None, name=None)
feature_column:
    categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size=None, dtype=string,
        default_value=None, num_oov_buckets=0)
image:
    crop_and_resize(image, boxes, box_indices, crop_size, method='bilinear', extrapolation_value=0,
        name=None)
    draw_bounding_boxes(images, boxes, colors, name=None)
    extract_glimpse(input, size, offsets, centered=True, normalized=True, noise='uniform', name=None)
    sample_distorted_bounding_box(image_size, bounding_boxes, seed=0, min_object_covered=0.1,
        aspect_ratio_range=None, area_range=None, max_attempts=None,
        use_image_if_no_bounding_boxes=None, name=None)
initializers:
    VarianceScaling(scale=1.0, mode='fan_in', distribution='truncated_normal', seed=None)
    RandomNormal(mean=0.0, stddev=0.05, seed=None)
    RandomUniform(minval=-0.05, maxval=0.05, seed=None)
    TruncatedNormal(mean=0.0, stddev=0.05, seed=None)
    Constant(value=0)
    Zeros()
    Ones()
    Identity(gain=1.0)
    Orthogonal(gain=1.0, seed=None)
    GlorotNormal(seed=None)
    GlorotUniform(seed=None)
io:
    decode_csv(records, record_defaults, field_delim=',', use_quote_delim=True, na_value='',
        select_cols=None, name=None)
    parse_example(serialized, features, example_names=None, name=None)
    parse_single_example(serialized, features, example_names=None, name=None)
    serialize_many_sparse(sp_input, out_type=string, name=None)
    serialize_sparse(sp_input, out_type=string, name=None)
linalg:
    = tf: norm
    l2_normalize(x, axis=None, epsilon=1e-12, name=None)
math:
    = tf: argmax argmin reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min
        reduce_prod reduce_sum scalar_mul
    = linalg: l2_normalize
    confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype=int32, name=None)
    count_nonzero(input, axis=None, keepdims=None, dtype=int64, name=None)
    in_top_k(targets, predictions, k, name=None)
    log_softmax(logits, axis=None, name=None)
    softmax(logits, axis=None, name=None)
nn:
    = math: in_top_k log_softmax softmax
    = linalg: l2_normalize
    = tf: space_to_batch
    avg_pool2d(input, ksize, strides, padding, data_format='NHWC', name=None)
    conv1d(input, filters, stride, padding, data_format='NWC', dilations=None, name=None)
    conv2d(input, filters, strides, padding, data_format='NHWC', dilations=None, name=None)
    conv3d(input, filters, strides, padding, data_format='NDHWC', dilations=None, name=None)
    conv2d_transpose(input, filters, output_shape, strides, padding='SAME', data_format='NHWC',
        dilations=None, name=None)
    conv3d_transpose(input, filters, output_shape, strides, padding='SAME', data_format='NDHWC',
        dilations=None, name=None)
    convolution(input, filters, strides=None, padding='VALID', data_format=None, dilations=None,
        name=None)
    crelu(features, axis=-1, name=None)
    depth_to_space(input, block_size, data_format='NHWC', name=None)
    depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None, name=None)
    dropout(x, rate, noise_shape=None, seed=None, name=None)
    embedding_lookup(params, ids, max_norm=None, name=None)
    embedding_lookup_sparse(params, sp_ids, sp_weights, combiner=None, max_norm=None, name=None)
    safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights=None, combiner='mean',
        default_id=None, max_norm=None, name=None)
    fractional_avg_pool(value, pooling_ratio, pseudo_random=False, overlapping=False, seed=0, name=None)
    fractional_max_pool(value, pooling_ratio, pseudo_random=False, overlapping=False, seed=0, name=None)
    max_pool_with_argmax(input, ksize, strides, padding, data_format='NHWC', output_dtype=int64,
        include_batch_in_index=False, name=None)
    moments(x, axes, shift=None, keepdims=False, name=None)
    nce_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1, sampled_values=None,
        remove_accidental_hits=False, name='nce_loss')
    sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1,
        sampled_values=None, remove_accidental_hits=True, seed=None, name='sampled_softmax_loss')
    pool(input, window_shape, pooling_type, strides=None, padding='VALID', data_format=None,
        dilations=None, name=None)
    separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format=None,
        dilations=None, name=None)
    sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None)
    space_to_depth(input, block_size, data_format='NHWC', name=None)
    sparse_softmax_cross_entropy_with_logits(labels, logits, name=None)
    sufficient_statistics(x, axes, shift=None, keepdims=False, name=None)
    weighted_cross_entropy_with_logits(labels, logits, pos_weight, name=None)
    weighted_moments(x, axes, frequency_weights, keepdims=False, name=None)
random:
    poisson(shape, lam, dtype=float32, seed=None, name=None)
sparse:
    add(a, b, threshold=0)
    concat(axis, sp_inputs, expand_nonconcat_dims=False, name=None)
    segment_mean(data, indices, segment_ids, num_segments=None, name=None)
    segment_sqrt_n(data, indices, segment_ids, num_segments=None, name=None)
    segment_sum(data, indices, segment_ids, num_segments=None, name=None)
    split(sp_input=None, num_split=None, axis=None, name=None)
strings:
    length(input, unit='BYTE', name=None)
    reduce_join(inputs, axis=None, keepdims=False, separator='', name=None)
    substr(input, pos, len, unit='BYTE', name=None)
    to_hash_bucket(input, num_buckets, name=None)
    to_number(input, out_type=float32, name=None)
"""

RENAMED = {
    "convert_to_tensor": {"dtype_hint": "preferred_dtype"},
    "device": {"device_name": "device_name_or_function"},
    "image.extract_glimpse": {"noise": "uniform_noise"},
    "math.count_nonzero": {"input": "input_tensor"},
    "ones_like": {"input": "tensor"},
    "zeros_like": {"input": "tensor"},
}

GIVEN = {
    "cond": {"strict": True},
    "while_loop": {"return_same_structure": True},
} | {
    f"nn.{name}": {"partition_strategy": "div"}
    for name in (
        "embedding_lookup",
        "embedding_lookup_sparse",
        "nce_loss",
        "safe_embedding_lookup_sparse",
        "sampled_softmax_loss",
    )
}

# The dotted names below flowstone of other objects, by those of compat.v2.
OTHERS = {
    "concat": "ops.arrays.joining.concat",
    "initializers.Constant": "constant_initializer",
    "initializers.GlorotNormal": "glorot_normal_initializer",
    "initializers.GlorotUniform": "glorot_uniform_initializer",
    "initializers.Identity": "initializers.identity",
    "initializers.Ones": "ones_initializer",
    "initializers.Orthogonal": "orthogonal_initializer",
    "initializers.RandomNormal": "random_normal_initializer",
    "initializers.RandomUniform": "random_uniform_initializer",
    "initializers.TruncatedNormal": "truncated_normal_initializer",
    "initializers.VarianceScaling": "variance_scaling_initializer",
    "initializers.Zeros": "zeros_initializer",
    "keras.layers.DenseFeatures": "keras.version_two.DenseFeatures",
    "keras.layers.GRU": "keras.version_two.GRU",
    "keras.layers.GRUCell": "keras.version_two.GRUCell",
    "keras.layers.LSTM": "keras.version_two.LSTM",
    "keras.layers.LSTMCell": "keras.version_two.LSTMCell",
    "losses": "keras.losses",
    "metrics": "keras.metrics",
    "nn.avg_pool": "nn.avg_pool_v2",
    "nn.ctc_loss": "nn.ctc_loss_v2",
    "nn.max_pool": "nn.max_pool_v2",
    "nn.softmax_cross_entropy_with_logits": "nn.softmax_cross_entropy_with_logits_v2",
    "optimizers": "keras.optimizers",
    "random.set_seed": "set_random_seed",
    "reverse": "ops.arrays.rearranging.reverse",
    "saved_model.load": "saved_model.load_v2",
    "split": "ops.arrays.joining.split",
    "strings.split": "ops.strings.splitting.split_v2",
    "summary": "compat.version_two.summaries.summary",
    "where": "where_v2",
}

REFUSED = {
    "image.resize": "tf.compat.v1.image.resize, whose pixels have other centres",
    "image.resize_with_pad": "tf.compat.v1.image.resize_image_with_pad, whose pixels have other centres",
    "nn.dilation2d": "tf.compat.v1.nn.dilation2d",
    "nn.erosion2d": "tf.compat.v1.nn.erosion2d",
    "test.compute_gradient": "tf.compat.v1.test.compute_gradient",
}
