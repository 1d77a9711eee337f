"""Examples of 784 floats in TFRecord files, and JPEG images: how many a second.

Written message by message, as programs do it, and with Flowstone's encoder of arrays; read and parsed in
batches of 128, every checksum verified. Pillow's own rate is beside that of `decode_jpeg`.
"""

import io
import os
import shutil
import tempfile

import numpy as np

from tf1 import tf  # isort: skip
from shapes import EXAMPLE, QUEUE_BATCH, examples

from measuring import median_seconds, report, sustained_seconds

ROWS = 4096
OURS = os.environ["IMPLEMENTATION"] == "flowstone"
images, labels = examples(ROWS)
folder = tempfile.mkdtemp(prefix="records-")
path = os.path.join(folder, "examples")


def message(image, label):
    example = tf.train.Example()
    example.features.feature["image"].float_list.value.extend(image)
    example.features.feature["label"].int64_list.value.append(label)
    return example.SerializeToString()


def write_each():
    with tf.python_io.TFRecordWriter(path) as writer:
        for image, label in zip(images, labels):
            writer.write(message(image, label))


def write_arrays():
    from flowstone.io.examples import encode_examples

    with tf.python_io.TFRecordWriter(path) as writer:
        for each in encode_examples({"image": images, "label": labels}):
            writer.write(each)


def reading():
    """Examples a second of a pipeline that reads and parses."""
    features = {"image": tf.FixedLenFeature([EXAMPLE], tf.float32), "label": tf.FixedLenFeature([], tf.int64)}
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = tf.data.TFRecordDataset(path).repeat().batch(QUEUE_BATCH)
        iterator = dataset.map(lambda texts: tf.parse_example(texts, features)).make_initializable_iterator()
        batch = tf.group(*iterator.get_next().values())
        session.run(iterator.initializer)
        return QUEUE_BATCH / sustained_seconds(lambda: session.run(batch))


def decoding(height, width):
    """Images a second; of a smooth picture with noise, as photographs are."""
    rows, columns = np.mgrid[0:height, 0:width]
    smooth = np.stack(
        [np.sin(rows / 31) * 90, np.cos(columns / 47) * 90, (rows + columns) / 9 % 200 - 100], 2
    )
    pixels = np.clip(smooth + 128 + np.random.RandomState(0).randn(height, width, 3) * 6, 0, 255)
    with tf.Graph().as_default(), tf.Session() as session:
        file = session.run(tf.image.encode_jpeg(pixels.astype(np.uint8), quality=85))
        contents = tf.placeholder(tf.string, [])
        decoded = tf.image.decode_jpeg(contents, dct_method="INTEGER_ACCURATE").op
        report(
            f"decode_jpeg {height} x {width}",
            1 / sustained_seconds(lambda: session.run(decoded, {contents: file})),
            "images/s",
        )
    if OURS:
        from PIL import Image

        def pillow():
            np.asarray(Image.open(io.BytesIO(file)))

        report(f"Pillow, {height} x {width}", 1 / sustained_seconds(pillow), "images/s")


try:
    report("write, each", ROWS / median_seconds(write_each, 1, 3), "examples/s")
    if OURS:
        report("write, arrays", ROWS / median_seconds(write_arrays, 1, 3), "examples/s")
    report("read and parse", reading(), "examples/s")
    for size in ((64, 64), (480, 640), (1200, 1600)):
        decoding(*size)
finally:
    shutil.rmtree(folder)
