"""Generative adversarial network with transposed convolutions and batch norm, two optimisers by variable names."""
from __future__ import division
import math

import numpy as np
import tensorflow as tf


class batch_norm(object):
    def __init__(self, epsilon=1e-5, momentum=0.9, name="batch_norm"):
        with tf.variable_scope(name):
            self.epsilon, self.momentum, self.name = epsilon, momentum, name

    def __call__(self, x, train=True):
        return tf.contrib.layers.batch_norm(x, decay=self.momentum, updates_collections=None,
                                            epsilon=self.epsilon, scale=True, is_training=train,
                                            scope=self.name)


def conv_cond_concat(x, y):
    x_shapes, y_shapes = x.get_shape(), y.get_shape()
    return tf.concat([x, y * tf.ones([x_shapes[0], x_shapes[1], x_shapes[2], y_shapes[3]])], 3)


def conv2d(input_, output_dim, k_h=5, k_w=5, d_h=2, d_w=2, stddev=0.02, name="conv2d"):
    with tf.variable_scope(name):
        w = tf.get_variable('w', [k_h, k_w, input_.get_shape()[-1], output_dim],
                            initializer=tf.truncated_normal_initializer(stddev=stddev))
        conv = tf.nn.conv2d(input_, w, strides=[1, d_h, d_w, 1], padding='SAME')
        biases = tf.get_variable('biases', [output_dim], initializer=tf.constant_initializer(0.0))
        return tf.reshape(tf.nn.bias_add(conv, biases), conv.get_shape())


def deconv2d(input_, output_shape, k_h=5, k_w=5, d_h=2, d_w=2, stddev=0.02, name="deconv2d", with_w=False):
    with tf.variable_scope(name):
        w = tf.get_variable('w', [k_h, k_w, output_shape[-1], input_.get_shape()[-1]],
                            initializer=tf.random_normal_initializer(stddev=stddev))
        try:
            deconv = tf.nn.conv2d_transpose(input_, w, output_shape=output_shape, strides=[1, d_h, d_w, 1])
        except AttributeError:
            deconv = tf.nn.deconv2d(input_, w, output_shape=output_shape, strides=[1, d_h, d_w, 1])
        biases = tf.get_variable('biases', [output_shape[-1]], initializer=tf.constant_initializer(0.0))
        deconv = tf.reshape(tf.nn.bias_add(deconv, biases), deconv.get_shape())
        return (deconv, w, biases) if with_w else deconv


def lrelu(x, leak=0.2, name="lrelu"):
    return tf.maximum(x, leak * x)


def linear(input_, output_size, scope=None, stddev=0.02, bias_start=0.0):
    shape = input_.get_shape().as_list()
    with tf.variable_scope(scope or "Linear"):
        matrix = tf.get_variable("Matrix", [shape[1], output_size], tf.float32,
                                 tf.random_normal_initializer(stddev=stddev))
        bias = tf.get_variable("bias", [output_size], initializer=tf.constant_initializer(bias_start))
        return tf.matmul(input_, matrix) + bias


def conv_out_size_same(size, stride):
    return int(math.ceil(float(size) / float(stride)))


class DCGAN(object):
    batch_size, z_dim, df_dim, gf_dim, size, y_dim = 8, 6, 4, 4, 8, 2

    def __init__(self, sess):
        self.sess = sess
        self.d_bn1, self.g_bn0, self.g_bn1 = batch_norm(name='d_bn1'), batch_norm(name='g_bn0'), batch_norm(name='g_bn1')
        self.y = tf.placeholder(tf.float32, [self.batch_size, self.y_dim], name='y')
        self.inputs = tf.placeholder(tf.float32, [self.batch_size, self.size, self.size, 1], name='real_images')
        self.z = tf.placeholder(tf.float32, [None, self.z_dim], name='z')
        self.z_sum = tf.summary.histogram("z", self.z)
        self.G = self.generator(self.z)
        self.D, self.D_logits = self.discriminator(self.inputs, self.y)
        self.sampler = self.generator(self.z, train=False)
        self.D_, self.D_logits_ = self.discriminator(self.G, self.y, reuse=True)
        self.d_sum = tf.summary.histogram("d", self.D)
        self.G_sum = tf.summary.image("G", self.G)

        def sigmoid_cross_entropy_with_logits(x, y):
            try:
                return tf.nn.sigmoid_cross_entropy_with_logits(logits=x, labels=y)
            except TypeError:
                return tf.nn.sigmoid_cross_entropy_with_logits(logits=x, targets=y)
        self.d_loss_real = tf.reduce_mean(sigmoid_cross_entropy_with_logits(self.D_logits, tf.ones_like(self.D)))
        self.d_loss_fake = tf.reduce_mean(sigmoid_cross_entropy_with_logits(self.D_logits_, tf.zeros_like(self.D_)))
        self.g_loss = tf.reduce_mean(sigmoid_cross_entropy_with_logits(self.D_logits_, tf.ones_like(self.D_)))
        self.d_loss = self.d_loss_real + self.d_loss_fake
        self.summary = tf.summary.merge([self.z_sum, self.d_sum, self.G_sum,
                                         tf.summary.scalar("d_loss", self.d_loss)])
        t_vars = tf.trainable_variables()
        self.d_vars = [var for var in t_vars if 'd_' in var.name]
        self.g_vars = [var for var in t_vars if 'g_' in var.name]

    def discriminator(self, image, y, reuse=False):
        with tf.variable_scope("discriminator") as scope:
            if reuse:
                scope.reuse_variables()
            x = conv_cond_concat(image, tf.reshape(y, [self.batch_size, 1, 1, self.y_dim]))
            h0 = lrelu(conv2d(x, self.df_dim, name='d_h0_conv'))
            h1 = lrelu(self.d_bn1(conv2d(h0, self.df_dim * 2, name='d_h1_conv')))
            h2 = linear(tf.reshape(h1, [self.batch_size, -1]), 1, 'd_h2_lin')
            return tf.nn.sigmoid(h2), h2

    def generator(self, z, train=True):
        with tf.variable_scope("generator") as scope:
            if not train:
                scope.reuse_variables()
            s2 = conv_out_size_same(self.size, 2)
            s4 = conv_out_size_same(s2, 2)
            h0 = tf.reshape(linear(z, self.gf_dim * 2 * s4 * s4, 'g_h0_lin'), [-1, s4, s4, self.gf_dim * 2])
            h0 = tf.nn.relu(self.g_bn0(h0, train=train))
            h1, self.h1_w, self.h1_b = deconv2d(h0, [self.batch_size, s2, s2, self.gf_dim], name='g_h1',
                                                with_w=True)
            h1 = tf.nn.relu(self.g_bn1(h1, train=train))
            return tf.nn.tanh(deconv2d(h1, [self.batch_size, self.size, self.size, 1], name='g_h2'))

    def train(self):
        d_optim = tf.train.AdamOptimizer(0.002, beta1=0.5).minimize(self.d_loss, var_list=self.d_vars)
        g_optim = tf.train.AdamOptimizer(0.002, beta1=0.5).minimize(self.g_loss, var_list=self.g_vars)
        try:
            tf.global_variables_initializer().run()
        except AttributeError:
            tf.initialize_all_variables().run()
        rng = np.random.RandomState(0)
        for var in tf.trainable_variables():
            var.load(rng.normal(0, .2, var.get_shape().as_list()), self.sess)
        data = np.tile(np.sin(np.arange(self.size))[:, None, None], [self.batch_size, 1, self.size, 1])
        labels = np.eye(2)[rng.randint(0, 2, self.batch_size)]
        for counter in range(6):
            batch_z = rng.uniform(-1, 1, [self.batch_size, self.z_dim]).astype(np.float32)
            feed = {self.inputs: data, self.z: batch_z, self.y: labels}
            _, summary_str = self.sess.run([d_optim, self.summary], feed_dict=feed)
            _ = self.sess.run(g_optim, feed_dict={self.z: batch_z, self.y: labels})
            errD_fake = self.d_loss_fake.eval({self.z: batch_z, self.y: labels})
            errD_real = self.d_loss_real.eval({self.inputs: data, self.y: labels})
            errG = self.g_loss.eval({self.z: batch_z, self.y: labels})
            print("Step: [%2d] d_loss: %.4f, g_loss: %.4f" % (counter, errD_fake + errD_real, errG))
        samples = self.sess.run(self.sampler, feed_dict={self.z: batch_z})
        print("sample %s mean %.4f std %.4f" % (samples.shape, samples.mean(), samples.std()))
        parsed = tf.Summary.FromString(summary_str)
        print([value.tag for value in parsed.value])
        for var in tf.global_variables():
            if "moving" in var.name and "Adam" not in var.name:
                print(var.name, "%.4f" % var.eval().mean())


with tf.Session() as sess:
    model = DCGAN(sess)
    tf.contrib.slim.model_analyzer.analyze_vars(tf.trainable_variables(), print_info=True)
    model.train()
