"""Pipelines of tf.data: every kind of iterator, padding, generators, records, and statistics of a run."""
import collections
import os
import tempfile

import numpy as np
import tensorflow as tf

# Initializable, with a placeholder.
features_placeholder = tf.placeholder(tf.float32, [None, 2])
labels_placeholder = tf.placeholder(tf.int64, [None])
dataset = tf.data.Dataset.from_tensor_slices((features_placeholder, labels_placeholder))
dataset = dataset.shuffle(20, seed=1).repeat(2).batch(3)
iterator = dataset.make_initializable_iterator()
x, y = iterator.get_next()
print(dataset.output_shapes, dataset.output_types, x.shape, y.dtype)
sess = tf.Session()
features = np.arange(10, dtype=np.float32).reshape(5, 2)
sess.run(iterator.initializer, feed_dict={features_placeholder: features, labels_placeholder: np.arange(5)})
total, sizes = 0, []
while True:
    try:
        values, labels = sess.run([x, y])
        total += values.sum()
        sizes.append(len(labels))
    except tf.errors.OutOfRangeError:
        break
print("total %.1f" % total, sizes)

# Reinitializable: one structure, two datasets.
training = tf.data.Dataset.range(4).map(lambda v: v + tf.constant(10, tf.int64))
validation = tf.data.Dataset.range(3)
iterator = tf.data.Iterator.from_structure(training.output_types, training.output_shapes)
next_element = iterator.get_next()
training_init_op, validation_init_op = iterator.make_initializer(training), iterator.make_initializer(validation)
for _ in range(2):
    for init, count in ((training_init_op, 4), (validation_init_op, 3)):
        sess.run(init)
        print([int(sess.run(next_element)) for _ in range(count)], end=' ')
print()

# Feedable: a handle chooses.
handle = tf.placeholder(tf.string, shape=[])
iterator = tf.data.Iterator.from_string_handle(handle, training.output_types, training.output_shapes)
next_element = iterator.get_next()
one_shot = training.repeat().make_one_shot_iterator()
initializable = validation.make_initializable_iterator()
training_handle, validation_handle = sess.run(one_shot.string_handle()), sess.run(initializable.string_handle())
seen = []
for _ in range(2):
    seen += [int(sess.run(next_element, {handle: training_handle})) for _ in range(3)]
    sess.run(initializable.initializer)
    seen += [int(sess.run(next_element, {handle: validation_handle})) for _ in range(3)]
print(seen)

# Text with a table, padded and bucketed, in a nested structure.
folder = tempfile.mkdtemp()
lines = ["the cat sat", "a dog", "the dog sat on the cat", "cat", "on a mat the dog"]
with open(os.path.join(folder, "text"), "w") as f:
    f.write("\n".join(lines))
table = tf.contrib.lookup.index_table_from_tensor(tf.constant(["the", "cat", "dog", "sat"]), num_oov_buckets=1)
Sentence = collections.namedtuple("Sentence", ["ids", "length"])


def to_ids(line):
    words = tf.string_split([line]).values
    return Sentence(tf.cast(table.lookup(words), tf.int32), tf.size(words))


sentences = tf.data.TextLineDataset(os.path.join(folder, "text")).map(to_ids, num_parallel_calls=2).prefetch(2)
batched = sentences.padded_batch(2, Sentence([None], []), padding_values=Sentence(-1, 0))
bucketed = sentences.apply(tf.contrib.data.group_by_window(
    lambda s: tf.cast(s.length > 2, tf.int64), lambda key, d: d.padded_batch(2, Sentence([None], [])), 2))
for each in (batched, bucketed):
    iterator = each.make_initializable_iterator()
    batch = iterator.get_next()
    sess.run([tf.tables_initializer(), iterator.initializer])
    try:
        while True:
            value = sess.run(batch)
            print(type(value).__name__, value.ids.tolist(), value.length.tolist())
    except tf.errors.OutOfRangeError:
        pass


# Generators, interleaving, filters, batches of a fixed size.
def fibonacci():
    a, b = 0, 1
    while True:
        yield {"value": a, "even": a % 2 == 0}
        a, b = b, a + b


numbers = tf.data.Dataset.from_generator(fibonacci, {"value": tf.int32, "even": tf.bool}, {"value": [], "even": []})
numbers = numbers.filter(lambda d: d["even"]).map(lambda d: d["value"]).take(5)
print([int(sess.run(n)) for n in [numbers.make_one_shot_iterator().get_next()] for _ in range(5)])
mixed = tf.data.Dataset.range(3).interleave(
    lambda v: tf.data.Dataset.from_tensors(v).repeat(3), cycle_length=2, block_length=2)
mixed = mixed.apply(tf.contrib.data.map_and_batch(lambda v: (v, v * v), 4, drop_remainder=True))
mixed = mixed.apply(tf.contrib.data.prefetch_to_device("/cpu:0")) if False else mixed
item = mixed.make_one_shot_iterator().get_next()
print([[list(map(int, part)) for part in sess.run(item)] for _ in range(2)], item[0].shape)
zipped = tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.from_tensor_slices(["a", "b", "c"])))
zipped = zipped.concatenate(zipped.skip(1)).enumerate() if hasattr(zipped, "enumerate") else zipped
zipped = zipped.flat_map(lambda i, pair: tf.data.Dataset.from_tensors((i, pair[0], pair[1])).repeat(i % 2 + 1))
element = zipped.make_one_shot_iterator().get_next()
print([tuple(v if isinstance(v, bytes) else int(v) for v in sess.run(element)) for _ in range(7)])


def sparse_rows(v):
    return tf.SparseTensor([[v]], [v], [4])


sparse = tf.data.Dataset.range(3).map(sparse_rows).batch(2)
print(sess.run(tf.sparse_tensor_to_dense(sparse.make_one_shot_iterator().get_next())).tolist())
counted = tf.data.Dataset.range(5).apply(tf.contrib.data.scan(tf.constant(0, tf.int64), lambda s, v: (s + v, s + v)))
element = counted.apply(tf.contrib.data.unbatch() if False else tf.contrib.data.ignore_errors())
element = element.make_one_shot_iterator().get_next()
print([int(sess.run(element)) for _ in range(5)])
python = tf.data.Dataset.range(3).map(
    lambda v: tuple(tf.py_func(lambda n: [np.float32(n / 2), b"n%d" % n], [v], [tf.float32, tf.string])))
element = python.make_one_shot_iterator().get_next()
print([[float(a), b] for a, b in (sess.run(element) for _ in range(3))], element[0].shape)
