"""Serialised Examples and lines of text parsed into tensors: microseconds of a run, nothing fetched.

Records of a table: eight numbers, four words, four lists of a few words. Images: 784 floats and a label. A
step with feature columns parses 128 records, looks up embeddings and trains a small network, on one thread.
"""

from tf1 import tf  # isort: skip
import numpy as np
from shapes import EXAMPLE

from measuring import report, settled_seconds

ROWS = (1, 32, 1024)
random = np.random.RandomState(0)
FLOATS, INTEGERS = [f"float_{i}" for i in range(4)], [f"integer_{i}" for i in range(4)]
WORDS, LISTS = [f"word_{i}" for i in range(4)], [f"list_{i}" for i in range(4)]


def words(count):
    return [b"word%d" % i for i in random.randint(0, 1000, count)]


def record():
    example = tf.train.Example()
    features = example.features.feature
    for key in FLOATS:
        features[key].float_list.value.append(random.rand())
    for key in INTEGERS:
        features[key].int64_list.value.append(random.randint(0, 1000))
    for key in WORDS:
        features[key].bytes_list.value.extend(words(1))
    for key in LISTS:
        features[key].bytes_list.value.extend(words(random.randint(0, 5)))
    return example.SerializeToString()


def image():
    example = tf.train.Example()
    example.features.feature["image"].float_list.value.extend(random.rand(EXAMPLE))
    example.features.feature["label"].int64_list.value.append(random.randint(0, 10))
    return example.SerializeToString()


def sequence():
    example = tf.train.SequenceExample()
    example.context.feature["label"].int64_list.value.append(random.randint(0, 10))
    lists = example.feature_lists.feature_list
    for _ in range(random.randint(10, 30)):
        lists["floats"].feature.add().float_list.value.extend(random.rand(8))
        lists["words"].feature.add().bytes_list.value.extend(words(random.randint(0, 4)))
    return example.SerializeToString()


def line():
    numbers = [b"%.4f" % number for number in random.rand(4)] + [b"%d" % n for n in random.randint(0, 999, 4)]
    return b",".join(numbers + words(4))


TABLE = {
    **{key: tf.FixedLenFeature([], tf.float32) for key in FLOATS},
    **{key: tf.FixedLenFeature([], tf.int64) for key in INTEGERS},
    **{key: tf.FixedLenFeature([], tf.string, "") for key in WORDS},
    **{key: tf.VarLenFeature(tf.string) for key in LISTS},
}
IMAGE = {"image": tf.FixedLenFeature([EXAMPLE], tf.float32), "label": tf.FixedLenFeature([], tf.int64)}
CONTEXT = {"label": tf.FixedLenFeature([], tf.int64)}
STEPS = {"floats": tf.FixedLenSequenceFeature([8], tf.float32), "words": tf.VarLenFeature(tf.string)}


def flat(found):
    parts = [each for part in found for each in (part if isinstance(part, tuple) else (part,))]
    tensors = [tensor for part in parts for tensor in (part.values() if isinstance(part, dict) else [part])]
    return [each.values if isinstance(each, tf.SparseTensor) else each for each in tensors]


def us(fed, dims, build):
    """Of a run of what `build` adds to a graph, of a placeholder for texts."""
    with tf.Graph().as_default(), tf.Session() as session:
        texts = tf.placeholder(tf.string, dims)
        run = session.make_callable([each.op for each in flat(build(texts))], [texts])
        fed = np.array(fed, object)
        return 1e6 * settled_seconds(lambda: run(fed))


def columns_step():
    """A training step of a network on feature columns."""
    columns = tf.feature_column
    dense = [columns.numeric_column(key) for key in FLOATS]
    for key in INTEGERS:
        buckets = columns.bucketized_column(columns.numeric_column(key, dtype=tf.int64), [100, 400, 700])
        dense.append(buckets)
    for key in WORDS + LISTS:
        hashed = columns.categorical_column_with_hash_bucket(key, 1000)
        dense.append(columns.embedding_column(hashed, 8))
    options = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Graph().as_default(), tf.Session(config=options) as session:
        texts, labels = tf.placeholder(tf.string, [None]), tf.constant(random.rand(128, 1).astype(np.float32))
        features = tf.parse_example(texts, columns.make_parse_example_spec(dense))
        units = columns.input_layer(features, dense)
        for size in (32, 1):
            weights = tf.Variable(tf.random_normal([units.shape[1].value, size], stddev=0.1, seed=0))
            units = tf.matmul(units, weights)
            units = tf.nn.relu(units) if size > 1 else units
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=units, labels=labels))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        run = session.make_callable(step, [texts])
        fed = np.array([record() for _ in range(128)], object)
        return 1e6 * settled_seconds(lambda: run(fed))


for rows in ROWS:
    table = [record() for _ in range(rows)]
    report(f"{rows} records", us(table, [None], lambda texts: tf.parse_example(texts, TABLE).values()), "us")
for rows in ROWS:
    images = [image() for _ in range(rows)]
    report(f"{rows} images", us(images, [None], lambda texts: tf.parse_example(texts, IMAGE).values()), "us")
report("one record", us(record(), [], lambda text: tf.parse_single_example(text, TABLE).values()), "us")
report(
    "one sequence",
    us(sequence(), [], lambda text: tf.parse_single_sequence_example(text, CONTEXT, STEPS)),
    "us",
)
sequences = [sequence() for _ in range(32)]
report(
    "32 sequences",
    us(sequences, [None], lambda texts: tf.io.parse_sequence_example(texts, CONTEXT, STEPS)),
    "us",
)
DEFAULTS = [[0.0]] * 4 + [[0]] * 4 + [[""]] * 4
for rows in ROWS:
    lines = [line() for _ in range(rows)]
    report(f"{rows} lines", us(lines, [None], lambda texts: tf.decode_csv(texts, DEFAULTS)), "us")
report("step with feature columns", columns_step(), "us")
