"""A small ResNet in slim: arg_scope, blocks, learning.train, evaluation and a restored part of the variables."""
from __future__ import absolute_import, division, print_function
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.contrib.slim.nets import resnet_v1, resnet_utils
from tensorflow.contrib.slim.python.slim.learning import train_step

slim = tf.contrib.slim
tf.logging.set_verbosity(tf.logging.ERROR)
train_dir = tempfile.mkdtemp()
rng = np.random.RandomState(0)
IMAGES = rng.rand(8, 16, 16, 3).astype(np.float32)
LABELS = np.arange(8) % 4
IMAGES[np.arange(8), LABELS * 4, :, 0] += 3


@slim.add_arg_scope
def bottleneck(inputs, depth, stride, outputs_collections=None, scope=None):
    with tf.variable_scope(scope, 'unit', [inputs]) as sc:
        preact = slim.batch_norm(inputs, activation_fn=tf.nn.relu, scope='preact')
        shortcut = slim.conv2d(preact, depth, [1, 1], stride=stride, normalizer_fn=None, activation_fn=None,
                               scope='shortcut')
        residual = slim.conv2d(preact, depth // 2, [1, 1], scope='conv1')
        residual = resnet_utils.conv2d_same(residual, depth // 2, 3, stride, scope='conv2')
        residual = slim.conv2d(residual, depth, [1, 1], normalizer_fn=None, activation_fn=None, scope='conv3')
        return slim.utils.collect_named_outputs(outputs_collections, sc.original_name_scope, shortcut + residual)


def fixed(shape, dtype=tf.float32, partition_info=None):
    count = int(np.prod(shape))
    return tf.reshape(tf.sin(tf.range(count, dtype=tf.float32) * 0.7) * 0.3, shape)


def network(images, num_classes, is_training):
    batch_norm_params = {'decay': 0.9, 'epsilon': 1e-3, 'is_training': is_training, 'scale': True}
    with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(1e-3),
                        weights_initializer=fixed):
        with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, normalizer_params=batch_norm_params):
            with slim.arg_scope([slim.batch_norm], **batch_norm_params):
                with tf.variable_scope('tiny', 'tiny', [images]) as sc:
                    end_points_collection = sc.name + '_end_points'
                    with slim.arg_scope([slim.conv2d, bottleneck], outputs_collections=end_points_collection):
                        net = slim.conv2d(images, 4, [3, 3], scope='root')
                        net = slim.max_pool2d(net, [2, 2], scope='pool')
                        net = slim.repeat(net, 2, bottleneck, 8, 2, scope='block')
                        net = slim.stack(net, slim.conv2d, [(6, [1, 1]), (8, [3, 3])], scope='head')
                        net = tf.reduce_mean(net, [1, 2], name='pool5', keep_dims=True)
                        net = slim.dropout(net, 1.0, is_training=is_training)
                        logits = slim.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None,
                                             scope='logits')
                        end_points = slim.utils.convert_collection_to_dict(end_points_collection)
                        logits = tf.squeeze(logits, [1, 2], name='SpatialSqueeze')
                        end_points['predictions'] = slim.softmax(logits, scope='predictions')
                        return logits, end_points


with tf.Graph().as_default():
    images, labels = tf.constant(IMAGES), tf.constant(LABELS)
    logits, end_points = network(images, 4, True)
    for name in sorted(end_points):
        print(name, end_points[name].get_shape())
    one_hot = slim.one_hot_encoding(labels, 4)
    tf.losses.softmax_cross_entropy(one_hot, logits, label_smoothing=0.1)
    total_loss = tf.losses.get_total_loss()
    print(len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)), len(slim.get_model_variables()),
          [v.op.name for v in slim.get_variables_by_suffix('gamma')][:3])
    global_step = slim.get_or_create_global_step()
    learning_rate = tf.train.piecewise_constant(global_step, [3, 6], [0.1, 0.05, 0.01])
    for variable in slim.get_model_variables():
        slim.summaries.add_histogram_summary(variable, 'weights')
    optimizer = tf.train.MomentumOptimizer(learning_rate, momentum=0.9)
    train_op = slim.learning.create_train_op(total_loss, optimizer, clip_gradient_norm=4,
                                             gradient_multipliers={'tiny/logits/biases': 2.0})
    losses = []

    def train_step_fn(session, *args, **kwargs):
        loss, should_stop = train_step(session, *args, **kwargs)
        losses.append(loss)
        return [loss, should_stop]

    final = slim.learning.train(train_op, train_dir, train_step_fn=train_step_fn, number_of_steps=8, log_every_n_steps=2,
                                save_summaries_secs=600, save_interval_secs=600)
    print(" ".join("%.4f" % loss for loss in losses), "%.4f" % final)

with tf.Graph().as_default():
    images, labels = tf.constant(IMAGES), tf.constant(LABELS)
    logits, _ = network(images, 4, False)
    tf.train.get_or_create_global_step()
    names_to_values, names_to_updates = slim.metrics.aggregate_metric_map({
        'Accuracy': slim.metrics.streaming_accuracy(tf.argmax(logits, 1), labels),
        'Recall_2': slim.metrics.streaming_recall_at_k(logits, labels, 2),
    })
    for name, value in names_to_values.items():
        summary = tf.summary.scalar('eval/' + name, value, collections=[])
        tf.add_to_collection(tf.GraphKeys.SUMMARIES, summary)
    checkpoint_path = tf.train.latest_checkpoint(train_dir)
    values = slim.evaluation.evaluate_once(
        master='', checkpoint_path=checkpoint_path, logdir=train_dir, num_evals=2,
        eval_op=list(names_to_updates.values()), final_op=logits, variables_to_restore=slim.get_variables_to_restore())
    print(os.path.basename(checkpoint_path), " ".join("%.2f" % v for v in values.ravel()[:8]))

with tf.Graph().as_default():
    logits, _ = network(tf.constant(IMAGES), 6, False)
    variables = slim.get_variables_to_restore(exclude=['tiny/logits', 'global_step'])
    init_fn = slim.assign_from_checkpoint_fn(checkpoint_path, variables)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        init_fn(sess)
        print(len(variables), "%.1f" % sess.run(variables[0]).sum(), logits.shape)

with tf.Graph().as_default():
    with slim.arg_scope(resnet_v1.resnet_arg_scope()):
        net, points = resnet_v1.resnet_v1_50(tf.zeros([1, 32, 32, 3]), 10, is_training=False, global_pool=True)
    print(net.shape, len(slim.get_variables()), sorted(points)[-1])
