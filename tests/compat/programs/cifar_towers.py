"""Towers on several devices with shared variables and averaged gradients, fed by fixed-length record files."""
from __future__ import absolute_import, division, print_function
import os
import re
import tempfile

import numpy as np
from six.moves import xrange
import tensorflow as tf

FLAGS = tf.app.flags.FLAGS
tf.app.flags.DEFINE_integer('num_gpus', 2, """How many towers to use.""")
tf.app.flags.DEFINE_boolean('log_device_placement', False, """Whether to log device placement.""")
TOWER_NAME = 'tower'
MOVING_AVERAGE_DECAY = 0.9
HEIGHT = WIDTH = 8


def write_records(folder):
    rng = np.random.RandomState(0)
    for index in range(2):
        with open(os.path.join(folder, 'data_batch_%d.bin' % index), 'wb') as f:
            for i in range(10):
                label = i % 3
                image = rng.randint(0, 60, (3, HEIGHT, WIDTH)).astype(np.uint8)
                image[label] += 150
                f.write(np.uint8([label]).tobytes() + image.tobytes())


def read_cifar10(filename_queue):
    class CIFAR10Record(object):
        pass
    result = CIFAR10Record()
    label_bytes, result.height, result.width, result.depth = 1, HEIGHT, WIDTH, 3
    image_bytes = result.height * result.width * result.depth
    reader = tf.FixedLengthRecordReader(record_bytes=label_bytes + image_bytes)
    result.key, value = reader.read(filename_queue)
    record_bytes = tf.decode_raw(value, tf.uint8)
    result.label = tf.cast(tf.strided_slice(record_bytes, [0], [label_bytes]), tf.int32)
    depth_major = tf.reshape(tf.strided_slice(record_bytes, [label_bytes], [label_bytes + image_bytes]),
                             [result.depth, result.height, result.width])
    result.uint8image = tf.transpose(depth_major, [1, 2, 0])
    return result


def inputs(folder, batch_size):
    filenames = [os.path.join(folder, 'data_batch_%d.bin' % i) for i in xrange(2)]
    for f in filenames:
        if not tf.gfile.Exists(f):
            raise ValueError('Failed to find file: ' + f)
    filename_queue = tf.train.string_input_producer(filenames, shuffle=False)
    read_input = read_cifar10(filename_queue)
    resized = tf.image.resize_image_with_crop_or_pad(tf.cast(read_input.uint8image, tf.float32), 6, 6)
    float_image = tf.image.per_image_standardization(resized)
    float_image.set_shape([6, 6, 3])
    read_input.label.set_shape([1])
    images, labels = tf.train.batch([float_image, read_input.label], batch_size=batch_size, num_threads=1,
                                    capacity=3 * batch_size)
    tf.summary.image('images', images)
    return images, tf.reshape(labels, [batch_size])


def _activation_summary(x):
    tensor_name = re.sub('%s_[0-9]*/' % TOWER_NAME, '', x.op.name)
    tf.summary.histogram(tensor_name + '/activations', x)
    tf.summary.scalar(tensor_name + '/sparsity', tf.nn.zero_fraction(x))


def _variable_on_cpu(name, shape, initializer):
    with tf.device('/cpu:0'):
        return tf.get_variable(name, shape, initializer=initializer, dtype=tf.float32)


def _variable_with_weight_decay(name, shape, wd):
    value = np.random.RandomState(sum(shape)).normal(0, .2, shape)
    var = _variable_on_cpu(name, shape, tf.constant_initializer(value))
    if wd is not None:
        tf.add_to_collection('losses', tf.multiply(tf.nn.l2_loss(var), wd, name='weight_loss'))
    return var


def inference(images):
    with tf.variable_scope('conv1') as scope:
        kernel = _variable_with_weight_decay('weights', [3, 3, 3, 6], None)
        conv = tf.nn.conv2d(images, kernel, [1, 1, 1, 1], padding='SAME')
        biases = _variable_on_cpu('biases', [6], tf.constant_initializer(0.0))
        conv1 = tf.nn.relu(tf.nn.bias_add(conv, biases), name=scope.name)
        _activation_summary(conv1)
    pool1 = tf.nn.max_pool(conv1, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding='SAME', name='pool1')
    norm1 = tf.nn.lrn(pool1, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75, name='norm1')
    with tf.variable_scope('softmax_linear') as scope:
        reshape = tf.reshape(norm1, [images.get_shape().as_list()[0], -1])
        weights = _variable_with_weight_decay('weights', [reshape.get_shape()[1].value, 3], 0.004)
        biases = _variable_on_cpu('biases', [3], tf.constant_initializer(0.0))
        return tf.add(tf.matmul(reshape, weights), biases, name=scope.name)


def tower_loss(scope, images, labels):
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.cast(labels, tf.int64), logits=inference(images), name='cross_entropy_per_example')
    tf.add_to_collection('losses', tf.reduce_mean(cross_entropy, name='cross_entropy'))
    losses = tf.get_collection('losses', scope)
    total_loss = tf.add_n(losses, name='total_loss')
    for l in losses + [total_loss]:
        tf.summary.scalar(re.sub('%s_[0-9]*/' % TOWER_NAME, '', l.op.name), l)
    return total_loss


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grad = tf.concat(axis=0, values=[tf.expand_dims(g, 0) for g, _ in grad_and_vars])
        average_grads.append((tf.reduce_mean(grad, 0), grad_and_vars[0][1]))
    return average_grads


def main(argv=None):
    folder = tempfile.mkdtemp()
    write_records(folder)
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        global_step = tf.get_variable('global_step', [], initializer=tf.constant_initializer(0), trainable=False)
        opt = tf.train.GradientDescentOptimizer(tf.train.exponential_decay(0.1, global_step, 4, 0.5, staircase=True))
        images, labels = inputs(folder, 5)
        batch_queue = tf.contrib.slim.prefetch_queue.prefetch_queue([images, labels], capacity=4)
        tower_grads = []
        with tf.variable_scope(tf.get_variable_scope()):
            for i in xrange(FLAGS.num_gpus):
                with tf.device('/gpu:%d' % i):
                    with tf.name_scope('%s_%d' % (TOWER_NAME, i)) as scope:
                        image_batch, label_batch = batch_queue.dequeue()
                        loss = tower_loss(scope, image_batch, label_batch)
                        tf.get_variable_scope().reuse_variables()
                        summaries = tf.get_collection(tf.GraphKeys.SUMMARIES, scope)
                        tower_grads.append(opt.compute_gradients(loss))
        grads = average_gradients(tower_grads)
        for grad, var in grads:
            summaries.append(tf.summary.histogram(var.op.name + '/gradients', grad))
        apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
        variable_averages = tf.train.ExponentialMovingAverage(MOVING_AVERAGE_DECAY, global_step)
        variables_averages_op = variable_averages.apply(tf.trainable_variables())
        train_op = tf.group(apply_gradient_op, variables_averages_op)
        saver = tf.train.Saver(tf.global_variables())
        summary_op = tf.summary.merge(summaries)
        sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True,
                                                log_device_placement=FLAGS.log_device_placement))
        sess.run(tf.global_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        losses = []
        for step in xrange(8):
            _, loss_value = sess.run([train_op, loss])
            assert not np.isnan(loss_value), 'Model diverged with loss = NaN'
            losses.append(loss_value)
        print("loss falls", losses[-1] < losses[0], "step", sess.run(global_step))
        print(sorted(value.tag for value in tf.Summary.FromString(sess.run(summary_op)).value))
        saver.save(sess, os.path.join(folder, 'model.ckpt'), global_step=step)
        print(sorted(variable_averages.variables_to_restore()))
        print([v.name for v in tf.trainable_variables()], [v.device for v in tf.trainable_variables()][:1])
        coord.request_stop()
        coord.join(threads)
        # Evaluation restores the moving averages in place of the variables.
        saver = tf.train.Saver(variable_averages.variables_to_restore())
        last = sess.run(tf.trainable_variables()[0])
        saver.restore(sess, tf.train.latest_checkpoint(folder))
        print("averaged", bool(np.abs(last - sess.run(tf.trainable_variables()[0])).max() > 1e-6))


if __name__ == '__main__':
    tf.app.run()
