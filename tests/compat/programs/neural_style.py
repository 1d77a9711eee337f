"""Neural style: a small image network from a .npy file, Gram matrices."""
import os
import tempfile

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
path = os.path.join(tempfile.mkdtemp(), "net.npy")
np.save(path, {"conv1_1": [rng.normal(0, .3, [3, 3, 3, 4]).astype(np.float32), np.zeros(4, np.float32)],
               "conv2_1": [rng.normal(0, .2, [3, 3, 4, 6]).astype(np.float32), np.full(6, .1, np.float32)]})
MEAN_PIXEL = np.array([123.68, 116.779, 103.939]) / 255.


class Vgg(object):
    def __init__(self, npy_path):
        self.data_dict = np.load(npy_path, encoding='latin1', allow_pickle=True).item()

    def build(self, rgb):
        r, g, b = tf.split(axis=3, num_or_size_splits=3, value=rgb)
        assert r.get_shape().as_list()[1:] == [8, 8, 1]
        bgr = tf.concat(axis=3, values=[b - MEAN_PIXEL[2], g - MEAN_PIXEL[1], r - MEAN_PIXEL[0]])
        self.conv1_1 = self.conv_layer(bgr, "conv1_1")
        self.pool1 = tf.nn.avg_pool(self.conv1_1, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='SAME', name="pool1")
        self.conv2_1 = self.conv_layer(self.pool1, "conv2_1")
        return {"conv1_1": self.conv1_1, "conv2_1": self.conv2_1}

    def conv_layer(self, bottom, name):
        with tf.variable_scope(name):
            filt = tf.constant(self.data_dict[name][0], name="filter")
            conv = tf.nn.conv2d(bottom, filt, [1, 1, 1, 1], padding='SAME')
            return tf.nn.relu(tf.nn.bias_add(conv, tf.constant(self.data_dict[name][1], name="biases")))


def gram_matrix(feature):
    channels = feature.get_shape().as_list()[3]
    flat = tf.reshape(feature, [-1, channels])
    return tf.matmul(flat, flat, transpose_a=True) / tf.cast(tf.size(feature), tf.float32)


content = rng.uniform(0, 1, [1, 8, 8, 3]).astype(np.float32)
style = np.tile(np.linspace(0, 1, 8)[None, None, :, None], [1, 8, 1, 3]).astype(np.float32)
vgg = Vgg(path)
with tf.Graph().as_default(), tf.Session() as sess:
    content_feature = sess.run(vgg.build(tf.constant(content))["conv2_1"])
    style_grams = {name: sess.run(gram_matrix(f)) for name, f in vgg.build(tf.constant(style)).items()}

with tf.Graph().as_default():
    image = tf.Variable(content * .5 + .25, name="image")
    features = vgg.build(image)
    content_loss = tf.nn.l2_loss(features["conv2_1"] - content_feature) * 2 / content_feature.size
    style_loss = tf.add_n([tf.nn.l2_loss(gram_matrix(features[n]) - style_grams[n]) for n in sorted(style_grams)])
    tv_loss = tf.reduce_sum(tf.image.total_variation(image))
    loss = 5 * content_loss + 10 * style_loss + 1e-3 * tv_loss
    init = tf.global_variables_initializer()
    adam = tf.train.AdamOptimizer(0.02).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(6):
            sess.run(adam)
        print("adam %.4f" % sess.run(loss), " ".join("%.4f" % v for v in sess.run([content_loss, style_loss, tv_loss])))
        sess.run(tf.assign(image, tf.clip_by_value(image, 0., 1.)))
        result = sess.run(image)
        print("within", bool(result.min() >= 0 and result.max() <= 1), result.shape)
        print(len(sess.run(tf.report_uninitialized_variables())))
