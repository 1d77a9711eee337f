"""Inputs of `tf.contrib.learn.io`, for TensorFlow and for flowstone: each function takes the module.

It keeps to Python 3.7, on which TensorFlow 1.15 runs.
"""

import os
import shutil
import tempfile

import numpy as np

X = np.arange(10.0).reshape(5, 2)
LABELS = np.array([1, 0, 1, 0, 1])


def plain(value):
    """The value as JSON has it; paths without their folder."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if hasattr(value, "dense_shape"):
        return [plain(value.indices), plain(value.values), plain(value.dense_shape)]
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return os.path.basename(value.decode())
    array = np.asarray(value)
    return (
        [plain(each) for each in array]
        if array.ndim
        else str(array)
        if array.dtype.kind in "OU"
        else array.item()
    )


# ---- feeders


def _rows():
    for i in range(5):
        yield np.array([i, i + 1.0])


def _numbers():
    for i in range(5):
        yield np.int64(i)


def _dicts():
    for i in range(5):
        yield {"a": np.array([i, i + 1.0]), "b": np.array([i])}


def feeders(module):
    """The feeders of a module `data_feeder`, by name."""
    make, stream = module.DataFeeder, module.StreamingDataFeeder
    columns = {"a": X, "b": X[:, 0].astype(np.int32)}
    targets = {"l": np.arange(5), "m": X}
    return {
        "plain": lambda: make(X, np.arange(5), None, 2, False, epochs=2),
        "shuffled": lambda: make(X, np.arange(5), None, 2, epochs=2),
        "drawn": lambda: make(X, np.arange(5), None, 2, random_state=np.random.RandomState(3), epochs=2),
        "classes": lambda: make(X, np.arange(5), 5, 2, False),
        "one_class": lambda: make(X, np.arange(5), 1, 2, False),
        "no_labels": lambda: make(X, None, None, 2, False),
        "whole": lambda: make(X, None, None, shuffle=False, epochs=1),
        "dicts": lambda: make(columns, targets, {"l": 5}, 2, False),
        "dict_and_array": lambda: make(columns, np.arange(5), None, 2, False),
        "texts": lambda: make(np.array(["a", "bb", "c"]), np.array(["x", "y", "z"]), None, 2, False),
        "objects": lambda: make(np.array(["a", "bb", "c"], object), None, None, 2, False),
        "rows_of_labels": lambda: make(X, X, None, 2, False),
        "rows_of_classes": lambda: make(X, X > 4, 2, 2, False),
        "booleans": lambda: make(X > 2, X[:, 0] > 4, None, 2, False),
        "cubes": lambda: make(np.ones((4, 2, 3)), np.arange(4), None, 3, False),
        "small": lambda: make(X, LABELS.astype(np.uint8), 2, 4, False, epochs=1),
        "floats": lambda: make(X, LABELS.astype(np.float64), 2, 4, False, epochs=1),
        "stream": lambda: stream(_rows(), _numbers(), None, 2),
        "stream_without_labels": lambda: stream(_rows(), None, None, 2),
        "stream_of_classes": lambda: stream(_rows(), _numbers(), 5, 2),
        "stream_of_rows": lambda: stream(_rows(), _rows(), None, 2),
        "stream_of_dicts": lambda: stream(_dicts(), _dicts(), None, 2),
        "set_up": lambda: module.setup_train_data_feeder(_rows(), _numbers(), None, 3),
    }


def _described(placeholders):
    if placeholders is None:
        return None
    if isinstance(placeholders, dict):
        return {key: _described(each) for key, each in placeholders.items()}
    return [placeholders.name, placeholders.dtype.name, placeholders.shape.as_list()]


def feeder_answers(tf, module):
    """Placeholders, types and the first seven feeds of each feeder."""
    found = {}
    for name, make in feeders(module).items():
        with tf.Graph().as_default():
            feeder = make()
            inputs, outputs = feeder.input_builder()
            feeder.make_epoch_variable()
            feed, feeds = feeder.get_feed_dict_fn(), []
            for _ in range(7):
                try:
                    feeds.append(plain(feed()))
                except StopIteration:
                    break
            found[name] = [_described(inputs), _described(outputs), plain(feeder.get_feed_params()), feeds]
    return found


# ---- input functions


def _padded():
    for i in range(3):
        yield {"h": np.ones(i + 1) * i, "w": np.array(i), "l": np.array([i * 10])}


def _even():
    for i in range(5):
        yield {"h": np.ones(2) * i, "w": np.array(i), "l": np.array([i * 10])}


def _single():
    for text in ("a", "bb"):
        yield {"h": np.array([text, "c"])}


def input_fns(tf):
    io = tf.contrib.learn.io
    found = {
        "arrays": io.numpy_input_fn({"x": np.arange(4.0)}, np.arange(4), batch_size=3, shuffle=False),
        "padded": io.generator_input_fn(_padded, "l", 4, shuffle=False, pad_value=7),
        "padded_by_the_queue": io.generator_input_fn(_padded, "l", 3, shuffle=False, pad_value=7),
        "no_target": io.generator_input_fn(_even, None, 4, shuffle=False),
        "two_targets": io.generator_input_fn(_even, ["l", "w"], 5, shuffle=False),
        "one_target_of_a_list": io.generator_input_fn(_even, ["l"], 5, shuffle=False),
        "texts": io.generator_input_fn(_single, None, 2, shuffle=False),
    }
    for size in (2, 4, 5, 7, 12):
        for epochs in (1, 2):
            found[f"generator_{size}_{epochs}"] = io.generator_input_fn(
                _even, "l", size, epochs, shuffle=False
            )
    return found


def write_files(tf, folder):
    """Two files of records, f0.rec and f1.rec, and two of lines, t0.txt and t1.txt."""
    for part in range(2):
        with tf.python_io.TFRecordWriter(os.path.join(folder, f"f{part}.rec")) as records:
            for i in range(4):
                example = tf.train.Example()
                example.features.feature["a"].int64_list.value.append(part * 10 + i)
                example.features.feature["s"].bytes_list.value.extend(b"x%d" % j for j in range(i % 3))
                records.write(example.SerializeToString())
        with open(os.path.join(folder, f"t{part}.txt"), "w") as lines:
            lines.writelines(f"line{part * 10 + i}\n" for i in range(4))


def readers(tf, folder):
    """Functions that read these files, by name."""
    io, records, lines = tf.contrib.learn.io, os.path.join(folder, "f*.rec"), os.path.join(folder, "t*.txt")
    features = {"a": tf.FixedLenFeature([], tf.int64), "s": tf.VarLenFeature(tf.string)}
    options = {"randomize_input": False, "num_epochs": 1}
    text = (3, tf.TextLineReader)

    def parse(line):
        return {"p": line, "l": tf.substr(line, 0, 2)}

    def queue_of_features():
        sparse = tf.SparseTensor([[0, 1]], ["a"], [2, 2])
        keys = tf.constant(["x", "y"])
        return io.queue_parsed_features({"a": tf.constant([1, 2]), "s": sparse}, keys, name="nm")

    return {
        "lines": lambda: io.read_batch_examples(lines, *text, **options),
        "lines_named": lambda: io.read_batch_examples([lines.replace("*", "0")], *text, name="nn", **options),
        "keyed": lambda: io.read_keyed_batch_examples(lines, *text, **options),
        "parsed": lambda: io.read_keyed_batch_examples(lines, *text, parse_fn=parse, **options),
        "parsed_tensor": lambda: io.read_batch_examples(
            lines, *text, parse_fn=lambda line: tf.substr(line, 0, 4), **options
        ),
        "two_at_once": lambda: io.read_batch_examples(lines, *text, read_batch_size=2, **options),
        "shared": lambda: io.read_keyed_batch_examples_shared_queue(lines, *text, **options),
        "features": lambda: io.read_batch_features(
            records, 3, features, tf.TFRecordReader, num_enqueue_threads=1, **options
        ),
        "keyed_features": lambda: io.read_keyed_batch_features(
            records, 3, features, tf.TFRecordReader, num_enqueue_threads=1, **options
        ),
        "shared_features": lambda: io.read_keyed_batch_features_shared_queue(
            records, 3, features, tf.TFRecordReader, num_queue_runners=1, **options
        ),
        "record_features": lambda: io.read_batch_record_features(records, 8, features, **options),
        "queue_of_features": queue_of_features,
    }


def batches(tf, build, count=6):
    """The batches that a function's tensors give, and the names of these."""
    with tf.Graph().as_default():
        outputs = build()
        flat = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        names = [each.name for each in flat if isinstance(each, tf.Tensor)]
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            found = []
            try:
                for _ in range(count):
                    found.append(plain(session.run(outputs)))
            except tf.errors.OutOfRangeError:
                found.append("end")
            coordinator.request_stop()
            coordinator.join(threads)
        return [names, found]


def input_answers(tf):
    """The batches of every input function and reader."""
    folder = tempfile.mkdtemp()
    try:
        write_files(tf, folder)
        found = {name: batches(tf, make) for name, make in sorted(input_fns(tf).items())}
        for name, make in readers(tf, folder).items():
            found[name] = batches(tf, make, 1 if name == "queue_of_features" else 4)
        return found
    finally:
        shutil.rmtree(folder)
