"""Image to image with an encoder and decoder, skip connections, two optimisers that follow one another, and EMA of losses."""
from __future__ import absolute_import, division, print_function
import argparse
import collections
import glob
import json
import math
import os
import random
import tempfile

import numpy as np
import tensorflow as tf

EPS = 1e-12
Examples = collections.namedtuple("Examples", "paths, inputs, targets, count, steps_per_epoch")
Model = collections.namedtuple("Model", "outputs, predict_real, predict_fake, discrim_loss, discrim_grads_and_vars, "
                               "gen_loss_GAN, gen_loss_L1, gen_grads_and_vars, train")
parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="train", choices=["train", "test", "export"])
parser.add_argument("--seed", type=int, default=7)
parser.add_argument("--max_steps", type=int, default=4)
parser.add_argument("--ngf", type=int, default=4)
parser.add_argument("--ndf", type=int, default=4)
parser.add_argument("--batch_size", type=int, default=2)
parser.add_argument("--separable_conv", action="store_true")
parser.add_argument("--scale_size", type=int, default=16)
parser.add_argument("--lr", type=float, default=0.0002)
a = parser.parse_args()


def preprocess(image):
    with tf.name_scope("preprocess"):
        return image * 2 - 1


def deprocess(image):
    with tf.name_scope("deprocess"):
        return (image + 1) / 2


def gen_conv(batch_input, out_channels):
    initializer = tf.random_normal_initializer(0, 0.02)
    if a.separable_conv:
        return tf.layers.separable_conv2d(batch_input, out_channels, kernel_size=4, strides=(2, 2), padding="same",
                                          depthwise_initializer=initializer, pointwise_initializer=initializer)
    return tf.layers.conv2d(batch_input, out_channels, kernel_size=4, strides=(2, 2), padding="same",
                            kernel_initializer=initializer)


def gen_deconv(batch_input, out_channels):
    return tf.layers.conv2d_transpose(batch_input, out_channels, kernel_size=4, strides=(2, 2), padding="same",
                                      kernel_initializer=tf.random_normal_initializer(0, 0.02))


def discrim_conv(batch_input, out_channels, stride):
    padded_input = tf.pad(batch_input, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="CONSTANT")
    return tf.layers.conv2d(padded_input, out_channels, kernel_size=4, strides=(stride, stride), padding="valid",
                            kernel_initializer=tf.random_normal_initializer(0, 0.02))


def lrelu(x, a):
    with tf.name_scope("lrelu"):
        x = tf.identity(x)
        return (0.5 * (1 + a)) * x + (0.5 * (1 - a)) * tf.abs(x)


def batchnorm(inputs):
    return tf.layers.batch_normalization(inputs, axis=3, epsilon=1e-5, momentum=0.1, training=True,
                                         gamma_initializer=tf.random_normal_initializer(1.0, 0.02))


def load_examples(folder):
    for i in range(4):
        image = np.random.RandomState(i).randint(0, 255, [16, 32, 3]).astype(np.uint8)
        with tf.Graph().as_default(), tf.Session() as sess:
            with open(os.path.join(folder, "%d.png" % i), "wb") as f:
                f.write(sess.run(tf.image.encode_png(image)))
    input_paths = glob.glob(os.path.join(folder, "*.png"))
    get_name = lambda path: os.path.splitext(os.path.basename(path))[0]
    assert all(get_name(path).isdigit() for path in input_paths)
    input_paths = sorted(input_paths, key=lambda path: int(get_name(path)))
    with tf.name_scope("load_images"):
        path_queue = tf.train.string_input_producer(input_paths, shuffle=False)
        reader = tf.WholeFileReader()
        paths, contents = reader.read(path_queue)
        raw_input = tf.image.convert_image_dtype(tf.image.decode_png(contents), dtype=tf.float32)
        assertion = tf.assert_equal(tf.shape(raw_input)[2], 3, message="image does not have 3 channels")
        with tf.control_dependencies([assertion]):
            raw_input = tf.identity(raw_input)
        raw_input.set_shape([None, None, 3])
        width = tf.shape(raw_input)[1]
        inputs, targets = preprocess(raw_input[:, :width // 2, :]), preprocess(raw_input[:, width // 2:, :])
    seed = random.Random(a.seed).randint(0, 2 ** 31 - 1)

    def transform(image):
        r = tf.image.random_flip_left_right(image, seed=seed) if a.mode != "train" else image
        r = tf.image.resize_images(r, [a.scale_size, a.scale_size], method=tf.image.ResizeMethod.AREA)
        offset = tf.cast(tf.floor(tf.random_uniform([2], 0, a.scale_size - 16 + 1, seed=seed)), dtype=tf.int32)
        return tf.image.crop_to_bounding_box(r, offset[0], offset[1], 16, 16)
    with tf.name_scope("input_images"):
        input_images = transform(inputs)
    with tf.name_scope("target_images"):
        target_images = transform(targets)
    paths_batch, inputs_batch, targets_batch = tf.train.batch([paths, input_images, target_images], batch_size=a.batch_size)
    return Examples(paths_batch, inputs_batch, targets_batch, len(input_paths), int(math.ceil(len(input_paths) / a.batch_size)))


def create_generator(generator_inputs, channels):
    layers = []
    with tf.variable_scope("encoder_1"):
        layers.append(gen_conv(generator_inputs, a.ngf))
    for out_channels in [a.ngf * 2, a.ngf * 4]:
        with tf.variable_scope("encoder_%d" % (len(layers) + 1)):
            layers.append(batchnorm(gen_conv(lrelu(layers[-1], 0.2), out_channels)))
    num_encoder_layers = len(layers)
    for decoder_layer, (out_channels, dropout) in enumerate([(a.ngf * 2, 0.0), (a.ngf, 0.0)]):
        skip_layer = num_encoder_layers - decoder_layer - 1
        with tf.variable_scope("decoder_%d" % (skip_layer + 1)):
            input = layers[-1] if decoder_layer == 0 else tf.concat([layers[-1], layers[skip_layer]], axis=3)
            output = batchnorm(gen_deconv(tf.nn.relu(input), out_channels))
            layers.append(tf.nn.dropout(output, keep_prob=1 - dropout) if dropout > 0.0 else output)
    with tf.variable_scope("decoder_1"):
        layers.append(tf.tanh(gen_deconv(tf.nn.relu(tf.concat([layers[-1], layers[0]], axis=3)), channels)))
    return layers[-1]


def create_model(inputs, targets):
    def create_discriminator(discrim_inputs, discrim_targets):
        layers = [lrelu(discrim_conv(tf.concat([discrim_inputs, discrim_targets], axis=3), a.ndf, stride=2), 0.2)] if False else []
        input = tf.concat([discrim_inputs, discrim_targets], axis=3)
        with tf.variable_scope("layer_1"):
            layers.append(lrelu(discrim_conv(input, a.ndf, stride=2), 0.2))
        with tf.variable_scope("layer_2"):
            layers.append(lrelu(batchnorm(discrim_conv(layers[-1], a.ndf * 2, stride=1)), 0.2))
        with tf.variable_scope("layer_3"):
            layers.append(tf.sigmoid(discrim_conv(layers[-1], out_channels=1, stride=1)))
        return layers[-1]

    with tf.variable_scope("generator"):
        outputs = create_generator(inputs, int(targets.get_shape()[-1]))
    with tf.name_scope("real_discriminator"):
        with tf.variable_scope("discriminator"):
            predict_real = create_discriminator(inputs, targets)
    with tf.name_scope("fake_discriminator"):
        with tf.variable_scope("discriminator", reuse=True):
            predict_fake = create_discriminator(inputs, outputs)
    with tf.name_scope("discriminator_loss"):
        discrim_loss = tf.reduce_mean(-(tf.log(predict_real + EPS) + tf.log(1 - predict_fake + EPS)))
    with tf.name_scope("generator_loss"):
        gen_loss_GAN = tf.reduce_mean(-tf.log(predict_fake + EPS))
        gen_loss_L1 = tf.reduce_mean(tf.abs(targets - outputs))
        gen_loss = gen_loss_GAN * 1. + gen_loss_L1 * 100.
    with tf.name_scope("discriminator_train"):
        discrim_tvars = [var for var in tf.trainable_variables() if var.name.startswith("discriminator")]
        discrim_optim = tf.train.AdamOptimizer(a.lr, 0.5)
        discrim_grads_and_vars = discrim_optim.compute_gradients(discrim_loss, var_list=discrim_tvars)
        discrim_train = discrim_optim.apply_gradients(discrim_grads_and_vars)
    with tf.name_scope("generator_train"):
        with tf.control_dependencies([discrim_train]):
            gen_tvars = [var for var in tf.trainable_variables() if var.name.startswith("generator")]
            gen_optim = tf.train.AdamOptimizer(a.lr, 0.5)
            gen_grads_and_vars = gen_optim.compute_gradients(gen_loss, var_list=gen_tvars)
            gen_train = gen_optim.apply_gradients(gen_grads_and_vars)
    ema = tf.train.ExponentialMovingAverage(decay=0.99)
    update_losses = ema.apply([discrim_loss, gen_loss_GAN, gen_loss_L1])
    global_step = tf.train.get_or_create_global_step()
    incr_global_step = tf.assign(global_step, global_step + 1)
    return Model(predict_real=predict_real, predict_fake=predict_fake, discrim_loss=ema.average(discrim_loss),
                 discrim_grads_and_vars=discrim_grads_and_vars, gen_loss_GAN=ema.average(gen_loss_GAN),
                 gen_loss_L1=ema.average(gen_loss_L1), gen_grads_and_vars=gen_grads_and_vars, outputs=outputs,
                 train=tf.group(update_losses, incr_global_step, gen_train))


def main():
    tf.set_random_seed(a.seed)
    folder = tempfile.mkdtemp()
    examples = load_examples(folder)
    model = create_model(examples.inputs, examples.targets)
    with tf.name_scope("convert_outputs"):
        converted_outputs = tf.image.convert_image_dtype(deprocess(model.outputs), dtype=tf.uint8, saturate=True)
    with tf.name_scope("encode_images"):
        display = {"paths": examples.paths, "outputs": tf.map_fn(tf.image.encode_png, converted_outputs, dtype=tf.string)}
    tf.summary.image("outputs", converted_outputs)
    for var in tf.trainable_variables():
        tf.summary.histogram(var.op.name + "/values", var)
    for grad, var in model.discrim_grads_and_vars + model.gen_grads_and_vars:
        tf.summary.histogram(var.op.name + "/gradients", grad)
    parameter_count = tf.reduce_sum([tf.reduce_prod(tf.shape(v)) for v in tf.trainable_variables()])
    saver = tf.train.Saver(max_to_keep=1)
    sv = tf.train.Supervisor(logdir=folder, save_summaries_secs=0, saver=None)
    with sv.managed_session() as sess:
        print("parameter_count =", sess.run(parameter_count), json.dumps(vars(a), sort_keys=True))
        for i, v in enumerate(tf.trainable_variables()):
            v.load(np.random.RandomState(i).normal(float("gamma" in v.name), .1, v.shape.as_list()), sess)
        fetches = {"train": model.train, "global_step": sv.global_step, "discrim_loss": model.discrim_loss,
                   "gen_loss_GAN": model.gen_loss_GAN, "gen_loss_L1": model.gen_loss_L1}
        for step in range(a.max_steps):
            results = sess.run({"train": model.train, "global_step": tf.train.get_global_step()} if step < a.max_steps - 1 else fetches)
        results = sess.run({k: v for k, v in fetches.items() if k != "train"})
        print("step %d" % results["global_step"], " ".join("%s %.4f" % (k, results[k]) for k in ("discrim_loss", "gen_loss_GAN", "gen_loss_L1")))
        shown = sess.run(display)
        print([os.path.basename(p).decode() for p in shown["paths"]], [o[1:4] for o in shown["outputs"]])
        saver.save(sess, os.path.join(folder, "model"), global_step=sv.global_step)
        print(sorted(os.path.basename(f) for f in glob.glob(os.path.join(folder, "model*.index"))), sv.should_stop())
        summary = tf.Summary.FromString(sess.run(sv.summary_op))
        print(len(summary.value), summary.value[0].tag)


main()
