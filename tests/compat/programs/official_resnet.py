"""A ResNet with an Estimator, as the official models had it: blocks, weight decay, schedules, hooks, warm start."""
from __future__ import absolute_import, division, print_function
import os
import tempfile

import numpy as np
import tensorflow as tf

_BATCH_NORM_DECAY, _BATCH_NORM_EPSILON = 0.9, 1e-5
tf.logging.set_verbosity(tf.logging.ERROR)


def batch_norm(inputs, training, data_format):
    return tf.layers.batch_normalization(inputs=inputs, axis=1 if data_format == 'channels_first' else 3,
                                         momentum=_BATCH_NORM_DECAY, epsilon=_BATCH_NORM_EPSILON, center=True,
                                         scale=True, training=training, fused=True)


def fixed_padding(inputs, kernel_size, data_format):
    pad_total = kernel_size - 1
    pad_beg = pad_total // 2
    pads = [pad_beg, pad_total - pad_beg]
    if data_format == 'channels_first':
        return tf.pad(inputs, [[0, 0], [0, 0], pads, pads])
    return tf.pad(tensor=inputs, paddings=[[0, 0], pads, pads, [0, 0]])


def fixed(shape, dtype=None, partition_info=None):
    return tf.constant(np.random.RandomState(int(np.prod(shape))).normal(0, .25, shape), dtype)


def conv2d_fixed_padding(inputs, filters, kernel_size, strides, data_format):
    if strides > 1:
        inputs = fixed_padding(inputs, kernel_size, data_format)
    return tf.layers.conv2d(inputs=inputs, filters=filters, kernel_size=kernel_size, strides=strides,
                            padding=('SAME' if strides == 1 else 'VALID'), use_bias=False, kernel_initializer=fixed,
                            data_format=data_format)


def building_block_v2(inputs, filters, training, projection_shortcut, strides, data_format):
    shortcut = inputs
    inputs = tf.nn.relu(batch_norm(inputs, training, data_format))
    if projection_shortcut is not None:
        shortcut = projection_shortcut(inputs)
    inputs = conv2d_fixed_padding(inputs, filters, 3, strides, data_format)
    inputs = tf.nn.relu(batch_norm(inputs, training, data_format))
    return conv2d_fixed_padding(inputs, filters, 3, 1, data_format) + shortcut


class Model(object):
    def __init__(self, num_classes, num_filters, block_sizes, data_format=None, dtype=tf.float32):
        if not data_format:
            data_format = 'channels_first' if tf.test.is_built_with_cuda() and tf.test.is_gpu_available() else 'channels_last'
        self.num_classes, self.num_filters, self.block_sizes = num_classes, num_filters, block_sizes
        self.data_format, self.dtype = data_format, dtype

    def _custom_dtype_getter(self, getter, name, shape=None, dtype=tf.float32, *args, **kwargs):
        if dtype == tf.float16:
            return tf.cast(getter(name, shape, tf.float32, *args, **kwargs), dtype=dtype, name=name + '_cast')
        return getter(name, shape, dtype, *args, **kwargs)

    def __call__(self, inputs, training):
        with tf.variable_scope('resnet_model', custom_getter=self._custom_dtype_getter):
            if self.data_format == 'channels_first':
                inputs = tf.transpose(a=inputs, perm=[0, 3, 1, 2])
            inputs = tf.identity(conv2d_fixed_padding(inputs, self.num_filters, 3, 1, self.data_format), 'initial_conv')
            for i, num_blocks in enumerate(self.block_sizes):
                filters, strides = self.num_filters * 2 ** i, 1 if i == 0 else 2

                def projection(x):
                    return conv2d_fixed_padding(x, filters, 1, strides, self.data_format)
                inputs = building_block_v2(inputs, filters, training, projection, strides, self.data_format)
                for _ in range(1, num_blocks):
                    inputs = building_block_v2(inputs, filters, training, None, 1, self.data_format)
                inputs = tf.identity(inputs, 'block_layer{}'.format(i + 1))
            inputs = tf.nn.relu(batch_norm(inputs, training, self.data_format))
            axes = [2, 3] if self.data_format == 'channels_first' else [1, 2]
            inputs = tf.identity(tf.squeeze(tf.reduce_mean(inputs, axes, keepdims=True), axes), 'final_reduce_mean')
            return tf.identity(tf.layers.dense(inputs, self.num_classes, kernel_initializer=fixed), 'final_dense')


def learning_rate_with_decay(batch_size, batch_denom, num_images, boundary_epochs, decay_rates, base_lr=0.1, warmup=True):
    initial = base_lr * batch_size / batch_denom
    batches_per_epoch = num_images / batch_size
    boundaries = [int(batches_per_epoch * epoch) for epoch in boundary_epochs]
    vals = [initial * decay for decay in decay_rates]

    def learning_rate_fn(global_step):
        lr = tf.train.piecewise_constant(global_step, boundaries, vals)
        if warmup:
            warmup_steps = int(batches_per_epoch)
            warmup_lr = initial * tf.cast(global_step, tf.float32) / tf.cast(warmup_steps, tf.float32)
            return tf.cond(pred=global_step < warmup_steps, true_fn=lambda: warmup_lr, false_fn=lambda: lr)
        return lr
    return learning_rate_fn


def resnet_model_fn(features, labels, mode, params):
    tf.summary.image('images', features, max_outputs=2)
    logits = Model(params["classes"], 4, [1, 2])(features, mode == tf.estimator.ModeKeys.TRAIN)
    predictions = {'classes': tf.argmax(logits, axis=1), 'probabilities': tf.nn.softmax(logits, name='softmax_tensor')}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode=mode, predictions=predictions, export_outputs={
            'predict': tf.estimator.export.PredictOutput(predictions)})
    cross_entropy = tf.losses.sparse_softmax_cross_entropy(logits=logits, labels=labels)
    tf.identity(cross_entropy, name='cross_entropy')
    tf.summary.scalar('cross_entropy', cross_entropy)
    l2_loss = 2e-4 * tf.add_n([tf.nn.l2_loss(tf.cast(v, tf.float32)) for v in tf.trainable_variables()
                               if 'batch_normalization' not in v.name])
    loss = cross_entropy + l2_loss
    if mode == tf.estimator.ModeKeys.TRAIN:
        global_step = tf.train.get_or_create_global_step()
        learning_rate = params["schedule"](global_step)
        tf.identity(learning_rate, name='learning_rate')
        optimizer = tf.train.MomentumOptimizer(learning_rate=learning_rate, momentum=0.9)
        grad_vars = [(g * params["scale"], v) for g, v in optimizer.compute_gradients(loss)]
        grad_vars = [(g / params["scale"], v) for g, v in grad_vars]
        minimize_op = optimizer.apply_gradients(grad_vars, global_step)
        train_op = tf.group(minimize_op, tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    else:
        train_op = None
    accuracy = tf.metrics.accuracy(labels, predictions['classes'])
    top_2 = tf.metrics.mean(tf.nn.in_top_k(predictions=logits, targets=labels, k=2, name='top_2_op'))
    tf.identity(accuracy[1], name='train_accuracy')
    return tf.estimator.EstimatorSpec(mode=mode, predictions=predictions, loss=loss, train_op=train_op,
                                      eval_metric_ops={'accuracy': accuracy, 'accuracy_top_2': top_2})


def input_fn(num_epochs):
    rng = np.random.RandomState(0)
    labels = np.arange(12, dtype=np.int32) % 3
    images = rng.rand(12, 8, 8, 3).astype(np.float32) * .2
    images[np.arange(12), :, :, labels] += .8
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat(num_epochs)
    return dataset.map(lambda i, l: (tf.image.per_image_standardization(i), l)).batch(4).prefetch(1)


class RateHook(tf.train.SessionRunHook):
    rates = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(run_context.session.graph.get_tensor_by_name("learning_rate:0"))

    def after_run(self, run_context, run_values):
        self.rates.append(float(run_values.results))


folder = tempfile.mkdtemp()
params = {"classes": 3, "scale": 128., "schedule": learning_rate_with_decay(4, 4, 12, [2, 3], [1, .1, .01], .2)}
classifier = tf.estimator.Estimator(resnet_model_fn, os.path.join(folder, "a"), params=params,
                                    config=tf.estimator.RunConfig(save_checkpoints_secs=None, save_checkpoints_steps=6,
                                                                  keep_checkpoint_max=2, log_step_count_steps=None))
logged = []
hook = tf.train.LoggingTensorHook({x: x for x in ['learning_rate', 'cross_entropy', 'train_accuracy']}, every_n_iter=4,
                                  formatter=lambda t: logged.append(sorted(t)) or "")
classifier.train(lambda: input_fn(4), hooks=[hook, RateHook(), tf.train.ProfilerHook(6, output_dir=folder)], max_steps=9)
print(" ".join("%.4f" % r for r in RateHook.rates), len(logged) <= 3)
results = classifier.evaluate(lambda: input_fn(1))
print({k: round(float(v), 3) for k, v in sorted(results.items())})
probabilities = [p["probabilities"] for p in classifier.predict(lambda: input_fn(1))]
print(len(probabilities), " ".join("%.3f" % p for p in probabilities[0]))
print(sorted(f for f in os.listdir(os.path.join(folder, "a")) if f.endswith(".index")),
      [n for n in classifier.get_variable_names() if "dense" in n and "Momentum" not in n])
warm = tf.estimator.WarmStartSettings(os.path.join(folder, "a"), vars_to_warm_start='^(?!.*dense)')
tuned = tf.estimator.Estimator(resnet_model_fn, os.path.join(folder, "b"), params=dict(params, classes=4), warm_start_from=warm)
tuned.train(lambda: input_fn(1), steps=1)
print(classifier.get_variable_value("resnet_model/conv2d/kernel").shape, tuned.get_variable_value("resnet_model/dense/kernel").shape)
