"""Examples through `tf.data` pipelines: mean time of an example, in batches of 128 that a step takes."""

from tf1 import tf  # isort: skip
from shapes import EXAMPLE, QUEUE_BATCH, examples

from measuring import report, sustained_seconds

D = tf.data.Dataset


def slices():
    images, labels = examples(2048)
    return D.from_tensor_slices((images, labels)).repeat()


def scaled(image, label):
    return image * 2.0 - 1.0, label


def augmented(image, label):
    pixels = tf.reshape(image, [28, 28, 1])
    pixels = tf.image.random_flip_left_right(tf.random_crop(pixels, [24, 24, 1]))
    return tf.image.per_image_standardization(pixels), tf.one_hot(label, 10)


PIPELINES = {
    "batch": lambda: slices().batch(QUEUE_BATCH),
    "shuffle, batch": lambda: slices().shuffle(1000).batch(QUEUE_BATCH),
    "shuffle, batch, prefetch": lambda: slices().shuffle(1000).batch(QUEUE_BATCH).prefetch(2),
    "map, batch": lambda: slices().map(scaled).batch(QUEUE_BATCH),
    "map of four, shuffle, batch, prefetch": lambda: (
        slices().map(scaled, num_parallel_calls=4).shuffle(1000).batch(QUEUE_BATCH).prefetch(2)
    ),
    "augmented by map of two, batch, prefetch": lambda: (
        slices().shuffle(1000).map(augmented, num_parallel_calls=2).batch(QUEUE_BATCH).prefetch(2)
    ),
    "filter, batch": lambda: slices().filter(lambda image, label: label < 8).batch(QUEUE_BATCH),
    "padded_batch": lambda: (
        D.range(2048).repeat().map(lambda n: tf.fill([n % 50 + 1], n)).padded_batch(QUEUE_BATCH, [None])
    ),
    "interleave, batch": lambda: (
        D.range(64).repeat().interleave(lambda n: D.range(n, n + 100), 8, 4).batch(QUEUE_BATCH)
    ),
    "generator, batch": lambda: D.from_generator(lambda: iter(range(10**9)), tf.int64, []).batch(QUEUE_BATCH),
}
assert EXAMPLE == 784


def us(make):
    """Microseconds of an example; the batch is made, but not fetched."""
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = make().make_initializable_iterator()
        element = iterator.get_next()
        batch = tf.group(*element) if isinstance(element, tuple) else tf.group(element)
        session.run(iterator.initializer)
        return sustained_seconds(lambda: session.run(batch)) / QUEUE_BATCH * 1e6


for name, make in PIPELINES.items():
    report(name, us(make), "us/example")
