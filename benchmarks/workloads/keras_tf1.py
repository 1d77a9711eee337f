"""A training step of a perceptron for MNIST through Keras, and by hand with an optimiser of tf.train.

Both steps compute the loss and the accuracy of a batch of 128 besides. Through Keras, the optimiser is one of
tf.train, or Keras' own. By hand it is that of tf.train whose slots are the same: Keras' SGD has a momentum,
also where that is 0. Flowstone needs the extra keras, or
`setup_peers.sh`.
"""

from tf1 import tf  # isort: skip
import numpy as np

from measuring import median_of_many, report

UNITS = (512, 512, 10)
CALLS = 20
numbers = np.random.RandomState(0)
images = numbers.rand(128, 784).astype(np.float32)
labels = np.eye(10, dtype=np.float32)[numbers.randint(10, size=128)]
train, own = tf.train, tf.keras.optimizers
OPTIMIZERS = {  # name: by hand, Keras' own
    "SGD": (lambda: train.MomentumOptimizer(0.01, 0.0), lambda: own.SGD(0.01)),
    "momentum": (lambda: train.MomentumOptimizer(0.01, 0.9), lambda: own.SGD(0.01, momentum=0.9)),
    "RMSprop": (lambda: train.RMSPropOptimizer(0.001), lambda: own.RMSprop(0.001)),
    "Adagrad": (lambda: train.AdagradOptimizer(0.01), lambda: own.Adagrad(0.01)),
    "Adam": (lambda: train.AdamOptimizer(0.001), lambda: own.Adam(0.001)),
}


def by_hand(optimizer) -> float:
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
        step = optimizer().minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            fetches = [loss, accuracy, step]
            return median_of_many(lambda: session.run(fetches, {x: images, y: labels}), CALLS)


def through_keras(optimizer) -> float:
    """The seconds of a step."""
    tf.keras.backend.clear_session()
    layers = tf.keras.layers
    model = tf.keras.Sequential()
    model.add(layers.Dense(UNITS[0], activation="relu", input_shape=(784,)))
    model.add(layers.Dense(UNITS[1], activation="relu"))
    model.add(layers.Dense(UNITS[2], activation="softmax"))
    model.compile(optimizer=optimizer(), loss="categorical_crossentropy", metrics=["accuracy"])
    return median_of_many(lambda: model.train_on_batch(images, labels), CALLS)


def descent():
    """Plain descent, without a slot."""
    return train.GradientDescentOptimizer(0.01)


report("step by hand", by_hand(descent) * 1e3, "ms")
report("step through Keras, descent of tf.train", through_keras(descent) * 1e3, "ms")
for name, (hand, keras) in OPTIMIZERS.items():
    report(f"step by hand, {name}", by_hand(hand) * 1e3, "ms")
    report(f"step through Keras, its {name}", through_keras(keras) * 1e3, "ms")
