"""Sparse tensors, embedding look-ups, strings, regular expressions, hashing, tables and sets as feature programs used them."""
import numpy as np
import tensorflow as tf

sess = tf.Session()
# ---- factorisation machine over sparse features
ids = tf.SparseTensor(indices=[[0, 0], [0, 2], [1, 1], [2, 0]], values=[1, 3, 2, 0], dense_shape=[4, 3])
weights = tf.SparseTensor(ids.indices, [1.0, 0.5, 2.0, 1.0], ids.dense_shape)
table = tf.get_variable("table", initializer=(np.arange(10).reshape(5, 2) / 10.).astype(np.float32))
parts = tf.get_variable("parts", [6, 2], partitioner=tf.fixed_size_partitioner(3),
                        initializer=tf.constant_initializer(.25))
for combiner in ("sum", "mean", "sqrtn"):
    looked = tf.nn.embedding_lookup_sparse(table, ids, weights, combiner=combiner)
    safe = tf.contrib.layers.safe_embedding_lookup_sparse([table], ids, weights, combiner=combiner, default_id=1)
    sess.run(tf.global_variables_initializer())
    print(combiner, sess.run(looked).round(3).tolist(), sess.run(safe).round(3).tolist()[3])
print(sess.run(tf.nn.embedding_lookup(parts, [0, 5, 3], partition_strategy="div")).tolist(), len(list(parts)))
linear = tf.sparse_tensor_dense_matmul(tf.cast(tf.sparse_reset_shape(weights, [4, 5]), tf.float32), table)
labels = tf.constant([[1.], [0.], [1.], [0.]])
logits = tf.reduce_sum(linear, 1, keep_dims=True) + tf.Variable(0.1, name="bias")
loss = tf.reduce_mean(tf.nn.weighted_cross_entropy_with_logits(targets=labels, logits=logits, pos_weight=2.))
grads = tf.gradients(loss, [table])
ftrl = tf.train.FtrlOptimizer(0.2, l1_regularization_strength=0.01)
loss_sparse = tf.reduce_sum(tf.square(tf.nn.embedding_lookup_sparse(table, ids, weights, combiner="sum")))
print(type(tf.gradients(loss_sparse, [table])[0]).__name__)
train = [ftrl.minimize(loss), tf.train.AdagradOptimizer(0.1).minimize(loss_sparse)]
sess.run(tf.global_variables_initializer())
for i in range(6):
    sess.run(train[i % 2])
print("%.4f %.4f" % tuple(sess.run([loss, loss_sparse])), sess.run(table).round(3).ravel().tolist())

# ---- sparse operations
s = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1., 2., 3.], [2, 3])
print(sess.run(tf.sparse_tensor_to_dense(tf.sparse_add(s, s))).tolist(), sess.run(tf.sparse_reduce_sum(s, 1)).tolist())
print(sess.run(tf.sparse_tensor_to_dense(tf.sparse_concat(1, [s, s]))).tolist())
print(sess.run(tf.sparse_transpose(s)).indices.tolist(), sess.run(tf.sparse_slice(s, [1, 0], [1, 3])).values.tolist())
print(sess.run(tf.sparse_to_indicator(tf.SparseTensor([[0, 0], [1, 0]], [2, 0], [2, 1]), 3)).tolist())
print(sess.run(tf.sparse_softmax(s)).values.round(3).tolist(), sess.run(tf.sparse_retain(s, [True, False, True])).values.tolist())
filled, empty = tf.sparse_fill_empty_rows(ids, 7)
print(sess.run(filled).values.tolist(), sess.run(empty).tolist())
feed_sparse = tf.sparse_placeholder(tf.float32, shape=[2, 3])
print(sess.run(tf.sparse_reduce_max(feed_sparse, 0), {feed_sparse: tf.SparseTensorValue([[0, 0], [1, 2]], [4., 5.], [2, 3])}).tolist())
print(sess.run(tf.sparse_merge(tf.SparseTensor([[0, 0], [1, 0]], [2, 0], [2, 1]), tf.SparseTensor([[0, 0], [1, 0]], [.5, .7], [2, 1]), 4)).dense_shape.tolist())

# ---- strings
lines = tf.constant(["The quick, brown fox!", "  jumps over\tthe dog ", ""])
clean = tf.regex_replace(tf.strings.lower(lines), r"[^a-z ]", "")
words = tf.string_split(tf.strings.strip(clean), " ")
print(sess.run(clean).tolist(), sess.run(words).values.tolist(), sess.run(words).dense_shape.tolist())
print(sess.run(tf.strings.regex_full_match(words.values, "[a-m].*")).tolist(), sess.run(tf.strings.length(lines)).tolist())
print(sess.run(tf.string_join([lines[0], "x"], separator="|")), sess.run(tf.substr(lines[0], 4, 5)), sess.run(tf.reduce_join([["a", "b"], ["c", "d"]], 1, separator="-")).tolist())
print(sess.run(tf.string_to_hash_bucket_fast(["a", "b", "abc"], 100)).tolist(), sess.run(tf.string_to_hash_bucket_strong(["a"], 50, [1, 2])).tolist(), sess.run(tf.string_to_hash_bucket(["a"], 50)).tolist())
print(sess.run(tf.string_to_number(["1.5", "-2"])).tolist(), sess.run(tf.as_string([1.25, 3.], precision=1)).tolist(), sess.run(tf.as_string(7, width=3, fill="0")))
print(sess.run(tf.decode_base64(tf.encode_base64("hello"))), sess.run(tf.strings.unicode_script([ord("a"), 0x4E00])).tolist())
print(sess.run(tf.decode_csv(["1,a,0.5", "2,,"], [[0], ["?"], [9.]]))[1].tolist(), sess.run(tf.decode_raw("ab", tf.uint8)).tolist())
print(sess.run(tf.parse_tensor(tf.serialize_tensor(tf.constant([1, 2])), tf.int32)).tolist(), sess.run(tf.decode_json_example('{"features": {}}')) == b"")

# ---- tables, vocabularies, sets
lookup = tf.contrib.lookup.HashTable(tf.contrib.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([5, 6], tf.int64)), -1)
mutable = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, 0)
vocabulary = tf.contrib.lookup.index_table_from_tensor(["the", "fox"], num_oov_buckets=2)
back = tf.contrib.lookup.index_to_string_table_from_tensor(["the", "fox"], default_value="UNK")
sess.run(tf.tables_initializer())
sess.run(mutable.insert(["k", "l"], tf.constant([1, 2], tf.int64)))
print(sess.run(lookup.lookup(tf.constant(["b", "z"]))).tolist(), sess.run(mutable.size()), sess.run(mutable.lookup(tf.constant(["l", "m"]))).tolist())
print(sess.run(vocabulary.lookup(words)).values.tolist(), sess.run(back.lookup(tf.constant([1, 0, 9], tf.int64))).tolist(), sess.run(lookup.size()))
y, idx, count = tf.unique_with_counts([3, 1, 3, 2, 1, 3])
print(sess.run([y, idx, count])[2].tolist(), sess.run(tf.setdiff1d([1, 2, 3, 4], [2, 4])).out.tolist(), sess.run(tf.sets.set_intersection([[1, 2]], [[2, 3]])).values.tolist())
print(sess.run(tf.bincount([1, 1, 3])).tolist(), sess.run(tf.histogram_fixed_width([0., .4, .9, 1.], [0., 1.], 2)).tolist(), sess.run(tf.confusion_matrix([0, 1, 1], [0, 1, 0])).tolist())
print(sess.run(tf.segment_mean([1., 3., 5.], [0, 0, 1])).tolist(), sess.run(tf.unsorted_segment_sum([1., 2., 4.], [1, 0, 1], 3)).tolist(), sess.run(tf.dynamic_partition([1, 2, 3], [1, 0, 1], 2))[1].tolist())
print(sess.run(tf.dynamic_stitch([[0, 2], [1]], [[10, 30], [20]])).tolist(), sess.run(tf.edit_distance(tf.SparseTensor([[0, 0]], ["a"], [1, 1]), tf.SparseTensor([[0, 0], [0, 1]], ["a", "b"], [1, 2]))).tolist())
