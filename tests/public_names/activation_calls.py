"""Calls of the functions of `tf.nn` on features, logits, labels and embeddings."""

from class_calls import ClassCalls

VALUES = """
x = tf.constant([[-3.0, -0.5, 0.0], [0.25, 2.0, 7.0]])
y = tf.constant([[1.0, 0.5, 0.25], [0.0, 1.0, 1.0]])
w = tf.constant([[1.0, -1.0], [0.5, 2.0], [3.0, 0.25]])
b = tf.constant([0.5, -4.0])
image = tf.reshape(tf.cos(tf.range(36.0)), [2, 3, 3, 2])
mean = tf.constant([0.1, 0.2])
variance = tf.constant([1.0, 4.0])
tables = [tf.reshape(tf.range(6.0), [3, 2]), tf.reshape(tf.range(10.0, 14.0), [2, 2])]
ids = tf.SparseTensor([[0, 0], [0, 2], [1, 0]], tf.constant([0, 3, 4], tf.int64), [2, 3])
weights = tf.SparseTensor([[0, 0], [0, 2], [1, 0]], [1.0, 3.0, 0.5], [2, 3])
frames = tf.reshape(tf.cos(tf.range(24.0) * 1.5) * 3.0, [4, 2, 3])
lengths = tf.constant([4, 3])
letters = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0, 1, 1], [2, 2])
def parts(sparse):
    return [sparse.indices, sparse.values, sparse.dense_shape]
def kept(y):
    found = run(y)
    rows_alike = bool((found[:, 1:] == found[:, :-1]).all())
    return [list(found.shape), sorted(set(found.ravel().tolist())), rows_alike]
"""
FEATURES = {
    "bias_add": "[tf.nn.bias_add(image, b, 'NHWC', 'a'), tf.nn.bias_add(image, [1.0, 2.0, 3.0], 'NCHW')]",
    "crelu": "tf.nn.crelu(x, 'a')",
    "dropout": (
        "[kept(tf.nn.dropout(tf.ones([40, 50]), 0.5, [40, 1], 3, 'a')), tf.nn.dropout(x, 1.0),"
        " kept(tf.nn.dropout(tf.ones([40, 50]), keep_prob=0.25))]"
    ),
    "elu": "tf.nn.elu(x, 'a')",
    "leaky_relu": "[tf.nn.leaky_relu(x, 0.5, 'a'), tf.nn.leaky_relu(x)]",
    "log_softmax": "[tf.nn.log_softmax(x, 0, 'a'), tf.nn.log_softmax(x, dim=1), tf.nn.log_softmax(x)]",
    "relu": "tf.nn.relu(x, 'a')",
    "relu6": "tf.nn.relu6(x, 'a')",
    "relu_layer": "tf.nn.relu_layer(x, w, b, 'a')",
    "selu": "tf.nn.selu(x, 'a')",
    "sigmoid": "tf.nn.sigmoid(x, 'a')",
    "softmax": "[tf.nn.softmax(x, 0, 'a'), tf.nn.softmax(x, dim=1), tf.nn.softmax(x)]",
    "softplus": "tf.nn.softplus(x, 'a')",
    "softsign": "tf.nn.softsign(x, 'a')",
    "swish": "[tf.nn.swish(x), tf.gradients(tf.nn.swish(x), x)]",
    "tanh": "tf.nn.tanh(x, 'a')",
    "xw_plus_b": "[tf.nn.xw_plus_b(x, w, b, 'a'), tf.nn.xw_plus_b(x, w, b).op.name]",
    "zero_fraction": "tf.nn.zero_fraction(x, 'a')",
}
LOGITS = {
    "ctc_beam_search_decoder": (
        "[[parts(each) for each in found] + [scores] for found, scores in"
        " [tf.nn.ctc_beam_search_decoder(frames, lengths, 5, 2, False)]]"
    ),
    "ctc_greedy_decoder": (
        "[parts(tf.nn.ctc_greedy_decoder(frames, lengths, False)[0][0]),"
        " tf.nn.ctc_greedy_decoder(frames, lengths)[1]]"
    ),
    "ctc_loss": (
        "[tf.nn.ctc_loss(letters, frames, lengths, False, True, False, True),"
        " tf.nn.ctc_loss(letters, tf.transpose(frames, [1, 0, 2]), lengths, time_major=False)]"
    ),
    "in_top_k": "tf.nn.in_top_k(x, [2, 1], 1, 'a')",
    "l2_loss": "tf.nn.l2_loss(x, 'a')",
    "log_poisson_loss": "[tf.nn.log_poisson_loss(y * 4, x, True, 'a'), tf.nn.log_poisson_loss(y * 4, x)]",
    "sigmoid_cross_entropy_with_logits": (
        "tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x, name='a')"
    ),
    "softmax_cross_entropy_with_logits": (
        "[tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=x, dim=0, name='a'),"
        " tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=x)]"
    ),
    "sparse_softmax_cross_entropy_with_logits": (
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0], logits=x, name='a')"
    ),
    "top_k": "[tf.nn.top_k(x, 2, True, 'a'), tf.nn.top_k(x).indices, tf.nn.top_k(x, 3, sorted=True).values]",
    "weighted_cross_entropy_with_logits": "tf.nn.weighted_cross_entropy_with_logits(y, x, 2.5, 'a')",
}
NORMS = {
    "batch_norm_with_global_normalization": (
        "tf.nn.batch_norm_with_global_normalization("
        "image, mean, variance, [0.0, 1.0], [2.0, 3.0], 0.01, True, 'a')"
    ),
    "batch_normalization": (
        "[tf.nn.batch_normalization(image, mean, variance, [0.0, 1.0], [2.0, 3.0], 0.01, 'a'),"
        " tf.nn.batch_normalization(x, 1.0, 4.0, None, None, 0.0)]"
    ),
    "fused_batch_norm": (
        "[tf.nn.fused_batch_norm(image, [1.0, 2.0], [0.5, 0.0], [0.1, 0.2], [1.0, 4.0], 0.01, 'NHWC',"
        " False, 'a')[0],"
        " tf.nn.fused_batch_norm(image, [1.0, 2.0], [0.5, 0.0])[:3]]"
    ),
    "l2_normalize": "[tf.nn.l2_normalize(x, 1, 1e-6, 'a'), tf.nn.l2_normalize(x, dim=[0, 1])]",
    "local_response_normalization": "tf.nn.local_response_normalization(image, 1, 2.0, 0.5, 0.75, 'a')",
    "lrn": "[tf.nn.lrn(image, 1, 2.0, 0.5, 0.75, 'a'), tf.nn.lrn(image[:1])]",
    "moments": (
        "[tf.nn.moments(x, [0], None, 'a', True), tf.nn.moments(x, [0, 1]), tf.nn.moments(x, [1], shift=1.0)]"
    ),
    "normalize_moments": (
        "[tf.nn.normalize_moments(4.0, x[0], y[0] + 9.0, 0.5, 'a'),"
        " tf.nn.normalize_moments(4.0, x[0], y[0] + 9.0, None)]"
    ),
    "sufficient_statistics": (
        "[tf.nn.sufficient_statistics(x, [0], 0.5, True, 'a'), tf.nn.sufficient_statistics(x, [0, 1])]"
    ),
    "weighted_moments": (
        "[tf.nn.weighted_moments(x, [0], y + 1.0, 'a', True), tf.nn.weighted_moments(x, [0, 1], 2.0)]"
    ),
}
EMBEDDINGS = {
    "embedding_lookup": (
        "[tf.nn.embedding_lookup(tables, [[0, 1], [4, 3]], 'mod', 'a', True, None),"
        " tf.nn.embedding_lookup(tables, [0, 4], 'div'), tf.nn.embedding_lookup(w, [2, 0], max_norm=1.0)]"
    ),
    "embedding_lookup_sparse": (
        "[tf.nn.embedding_lookup_sparse(tables, ids, weights, 'mod', 'a', 'sqrtn', None),"
        " tf.nn.embedding_lookup_sparse(tables, ids, None, 'div', combiner='sum'),"
        " tf.nn.embedding_lookup_sparse(tables, ids, weights, combiner='mean', max_norm=2.0)]"
    ),
}
TABLES = [ClassCalls("tf.nn", VALUES, {**FEATURES, **LOGITS, **NORMS, **EMBEDDINGS})]
