"""A convolutional network on digits, as tutorials wrote it for TensorFlow 0.6 to 0.8."""
from __future__ import absolute_import, division, print_function

import sys
import time

import numpy
from six.moves import xrange  # pylint: disable=redefined-builtin
import tensorflow as tf

IMAGE_SIZE = 12
NUM_CHANNELS = 1
NUM_LABELS = 4
BATCH_SIZE = 16
SEED = 66478
NUM_EPOCHS = 2

tf.app.flags.DEFINE_boolean("self_test", False, "True if running a self test.")
tf.app.flags.DEFINE_float("base_learning_rate", 0.05, "the first learning rate")
FLAGS = tf.app.flags.FLAGS


def fake_data(num_images):
    """Images with one bright quarter; the label says which one."""
    rng = numpy.random.RandomState(1)
    data = rng.uniform(-0.2, 0.2, (num_images, IMAGE_SIZE, IMAGE_SIZE, NUM_CHANNELS)).astype(numpy.float32)
    labels = rng.randint(0, NUM_LABELS, num_images)
    half = IMAGE_SIZE // 2
    for image, label in zip(data, labels):
        image[(label // 2) * half:(label // 2 + 1) * half, (label % 2) * half:(label % 2 + 1) * half] += 0.5
    return data, labels.astype(numpy.int64)


def error_rate(predictions, labels):
    return 100.0 - (100.0 * numpy.sum(numpy.argmax(predictions, 1) == labels) / predictions.shape[0])


def weights(*shape):
    rng = numpy.random.RandomState(sum(shape))
    return tf.Variable((rng.standard_normal(shape) * 0.1).astype(numpy.float32))


def main(argv=None):  # pylint: disable=unused-argument
    train_data, train_labels = fake_data(96)
    train_size = train_labels.shape[0]

    train_data_node = tf.placeholder(tf.float32, shape=(BATCH_SIZE, IMAGE_SIZE, IMAGE_SIZE, NUM_CHANNELS))
    train_labels_node = tf.placeholder(tf.int64, shape=(BATCH_SIZE,))

    conv1_weights, conv1_biases = weights(5, 5, NUM_CHANNELS, 8), tf.Variable(tf.zeros([8]))
    conv2_weights, conv2_biases = weights(5, 5, 8, 12), tf.Variable(tf.constant(0.1, shape=[12]))
    fc1_weights = weights(IMAGE_SIZE // 4 * IMAGE_SIZE // 4 * 12, 32)
    fc1_biases = tf.Variable(tf.constant(0.1, shape=[32]))
    fc2_weights, fc2_biases = weights(32, NUM_LABELS), tf.Variable(tf.constant(0.1, shape=[NUM_LABELS]))

    def model(data, train=False):
        conv = tf.nn.conv2d(data, conv1_weights, strides=[1, 1, 1, 1], padding="SAME")
        relu = tf.nn.relu(tf.nn.bias_add(conv, conv1_biases))
        pool = tf.nn.max_pool(relu, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
        conv = tf.nn.conv2d(pool, conv2_weights, strides=[1, 1, 1, 1], padding="SAME")
        relu = tf.nn.relu(tf.nn.bias_add(conv, conv2_biases))
        pool = tf.nn.max_pool(relu, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
        shape = pool.get_shape().as_list()
        reshape = tf.reshape(pool, [shape[0], shape[1] * shape[2] * shape[3]])
        hidden = tf.nn.relu(tf.matmul(reshape, fc1_weights) + fc1_biases)
        if train:
            hidden = tf.nn.dropout(hidden, 1.0, seed=SEED)
        return tf.matmul(hidden, fc2_weights) + fc2_biases

    logits = model(train_data_node, True)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=train_labels_node, logits=logits))
    regularizers = (tf.nn.l2_loss(fc1_weights) + tf.nn.l2_loss(fc1_biases) +
                    tf.nn.l2_loss(fc2_weights) + tf.nn.l2_loss(fc2_biases))
    loss += 5e-4 * regularizers

    batch = tf.Variable(0, dtype=tf.float32)
    learning_rate = tf.train.exponential_decay(FLAGS.base_learning_rate, batch * BATCH_SIZE, train_size, 0.95,
                                               staircase=True)
    optimizer = tf.train.MomentumOptimizer(learning_rate, 0.9).minimize(loss, global_step=batch)
    train_prediction = tf.nn.softmax(logits)

    start_time = time.time()
    with tf.Session() as sess:
        tf.initialize_all_variables().run()
        for step in xrange(int(NUM_EPOCHS * train_size) // BATCH_SIZE):
            offset = (step * BATCH_SIZE) % (train_size - BATCH_SIZE)
            batch_data = train_data[offset:(offset + BATCH_SIZE), ...]
            batch_labels = train_labels[offset:(offset + BATCH_SIZE)]
            feed_dict = {train_data_node: batch_data, train_labels_node: batch_labels}
            _, l, lr, predictions = sess.run([optimizer, loss, learning_rate, train_prediction],
                                             feed_dict=feed_dict)
            if step % 3 == 0:
                assert time.time() >= start_time
                print("Step %d (epoch %.2f)" % (step, float(step) * BATCH_SIZE / train_size))
                print("Minibatch loss: %.4f, learning rate: %.6f" % (l, lr))
                print("Minibatch error: %.1f%%" % error_rate(predictions, batch_labels))
                sys.stdout.flush()


if __name__ == "__main__":
    tf.app.run()
