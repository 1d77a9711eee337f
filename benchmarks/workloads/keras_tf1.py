"""A training step of a perceptron for MNIST through Keras, with an optimiser of tf.train, and by hand.

Both steps compute the loss and the accuracy of a batch of 128 besides. Flowstone needs the extra keras.
"""

from tf1 import tf  # isort: skip
import numpy as np

from measuring import median_of_many, report

UNITS = (512, 512, 10)
numbers = np.random.RandomState(0)
images = numbers.rand(128, 784).astype(np.float32)
labels = np.eye(10, dtype=np.float32)[numbers.randint(10, size=128)]


def by_hand() -> float:
    """The seconds of a step."""
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
        hidden, columns = x, 784
        for i, units in enumerate(UNITS):
            hidden = tf.nn.relu(hidden) if i else hidden
            weights = tf.Variable(tf.truncated_normal([columns, units], stddev=0.05))
            hidden = tf.matmul(hidden, weights) + tf.Variable(tf.zeros([units]))
            columns = units
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=hidden))
        right = tf.equal(tf.argmax(hidden, 1), tf.argmax(y, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            fetches = [loss, accuracy, train]
            return median_of_many(lambda: session.run(fetches, {x: images, y: labels}))


def through_keras() -> float:
    """The seconds of a step."""
    layers = tf.keras.layers
    model = tf.keras.Sequential()
    model.add(layers.Dense(UNITS[0], activation="relu", input_shape=(784,)))
    model.add(layers.Dense(UNITS[1], activation="relu"))
    model.add(layers.Dense(UNITS[2], activation="softmax"))
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    model.compile(optimizer=optimizer, loss="categorical_crossentropy", metrics=["accuracy"])
    return median_of_many(lambda: model.train_on_batch(images, labels))


hand, keras = by_hand(), through_keras()
report("step by hand", hand * 1e3, "ms")
report("step through Keras", keras * 1e3, "ms")
