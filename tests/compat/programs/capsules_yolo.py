"""Image models of one's own layers: capsules with routing, a YOLO loss, a U-Net with crops, dilated WaveNet blocks."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
slim = tf.contrib.slim


def load(sess, seed=0, scale=.3):
    values = np.random.RandomState(seed)
    for v in tf.trainable_variables():
        v.load(values.uniform(-scale, scale, v.shape.as_list()), sess)


# ---- capsules


def squash(vector, epsilon=1e-9):
    squared = tf.reduce_sum(tf.square(vector), -2, keep_dims=True)
    return squared / (1 + squared) / tf.sqrt(squared + epsilon) * vector


def routing(inputs, b_ij, num_outputs, num_dims, iterations=3):
    shape = inputs.shape.as_list()
    W = tf.get_variable('Weight', shape=[1, shape[1], num_dims * num_outputs] + shape[-2:], dtype=tf.float32,
                        initializer=tf.random_normal_initializer(stddev=.1))
    tiled = tf.tile(inputs, [1, 1, num_dims * num_outputs, 1, 1])
    u_hat = tf.reshape(tf.reduce_sum(W * tiled, axis=3, keepdims=True), [-1, shape[1], num_outputs, num_dims, 1])
    u_hat_stopped = tf.stop_gradient(u_hat, name='stop_gradient')
    for r_iter in range(iterations):
        with tf.variable_scope('iter_' + str(r_iter)):
            c_ij = tf.nn.softmax(b_ij, axis=2)
            used = u_hat if r_iter == iterations - 1 else u_hat_stopped
            v_j = squash(tf.reduce_sum(tf.multiply(c_ij, used), axis=1, keepdims=True))
            if r_iter < iterations - 1:
                agreement = tf.reduce_sum(u_hat_stopped * tf.tile(v_j, [1, shape[1], 1, 1, 1]), axis=3, keepdims=True)
                b_ij += agreement
    return v_j


with tf.Graph().as_default(), tf.Session() as sess:
    images, labels = tf.constant(rng.rand(6, 8, 8, 1), tf.float32), tf.constant(np.arange(6) % 3)
    conv1 = tf.contrib.layers.conv2d(images, 8, 3, 1, padding='VALID')
    primary = tf.contrib.layers.conv2d(conv1, 8, 3, 2, padding="VALID", activation_fn=tf.nn.relu)
    capsules = squash(tf.reshape(primary, (6, -1, 4, 1)))
    with tf.variable_scope('routing'):
        inputs = tf.reshape(capsules, shape=(6, -1, 1, capsules.shape[-2].value, 1))
        b_IJ = tf.constant(np.zeros([6, inputs.shape[1].value, 3, 1, 1], dtype=np.float32))
        digits = tf.squeeze(routing(inputs, b_IJ, 3, 5), axis=1)
    v_length = tf.sqrt(tf.reduce_sum(tf.square(digits), axis=2, keepdims=True) + 1e-9)
    T_c = tf.one_hot(labels, 3)
    max_l = tf.reshape(tf.square(tf.maximum(0., .9 - v_length)), [6, -1])
    max_r = tf.reshape(tf.square(tf.maximum(0., v_length - .1)), [6, -1])
    margin_loss = tf.reduce_mean(tf.reduce_sum(T_c * max_l + .5 * (1 - T_c) * max_r, axis=1))
    masked = tf.multiply(tf.squeeze(digits, -1), tf.reshape(T_c, (-1, 3, 1)))
    decoded = tf.contrib.layers.fully_connected(tf.reshape(masked, (6, -1)), 64, activation_fn=tf.sigmoid)
    loss = margin_loss + .05 * tf.reduce_mean(tf.square(decoded - tf.reshape(images, (6, -1))))
    train = tf.train.AdamOptimizer(.01).minimize(loss)
    sess.run(tf.global_variables_initializer())
    load(sess)
    for step in range(7):
        value, length, _ = sess.run([loss, v_length, train])
        if step % 3 == 0:
            print("capsules %d loss %.4f length %.4f" % (step, value, length.mean()))

# ---- YOLO: a loss over cells and boxes
S, B, C = 4, 2, 3


def calc_iou(boxes1, boxes2):
    corners = [tf.stack([b[..., 0] - b[..., 2] / 2.0, b[..., 1] - b[..., 3] / 2.0,
                         b[..., 0] + b[..., 2] / 2.0, b[..., 1] + b[..., 3] / 2.0], axis=-1) for b in (boxes1, boxes2)]
    lu, rd = tf.maximum(corners[0][..., :2], corners[1][..., :2]), tf.minimum(corners[0][..., 2:], corners[1][..., 2:])
    intersection = tf.maximum(0.0, rd - lu)
    inter_square = intersection[..., 0] * intersection[..., 1]
    union = tf.maximum(boxes1[..., 2] * boxes1[..., 3] + boxes2[..., 2] * boxes2[..., 3] - inter_square, 1e-10)
    return tf.clip_by_value(inter_square / union, 0.0, 1.0)


def loss_layer(predicts, labels):
    classes = tf.reshape(predicts[:, :S * S * C], [-1, S, S, C])
    scales = tf.reshape(predicts[:, S * S * C:S * S * (C + B)], [-1, S, S, B])
    boxes = tf.reshape(predicts[:, S * S * (C + B):], [-1, S, S, B, 4])
    response = tf.reshape(labels[..., 0], [-1, S, S, 1])
    truth = tf.tile(tf.reshape(labels[..., 1:5], [-1, S, S, 1, 4]), [1, 1, 1, B, 1]) / 32.
    offset = tf.reshape(tf.constant(np.transpose(np.reshape(np.array([np.arange(S)] * S * B), (B, S, S)), (1, 2, 0)),
                                    dtype=tf.float32), [1, S, S, B])
    offset = tf.tile(offset, [tf.shape(predicts)[0], 1, 1, 1])
    offset_tran = tf.transpose(offset, (0, 2, 1, 3))
    predicted = tf.stack([(boxes[..., 0] + offset) / S, (boxes[..., 1] + offset_tran) / S,
                          tf.square(boxes[..., 2]), tf.square(boxes[..., 3])], axis=-1)
    iou = calc_iou(predicted, truth)
    object_mask = tf.cast(iou >= tf.reduce_max(iou, 3, keep_dims=True), tf.float32) * response
    noobject_mask = tf.ones_like(object_mask, dtype=tf.float32) - object_mask
    truth_tran = tf.stack([truth[..., 0] * S - offset, truth[..., 1] * S - offset_tran,
                           tf.sqrt(truth[..., 2]), tf.sqrt(truth[..., 3])], axis=-1)
    for name, value, weight in [
            ("class", tf.reduce_mean(tf.reduce_sum(tf.square(response * (classes - labels[..., 5:])), axis=[1, 2, 3])), 2.),
            ("object", tf.reduce_mean(tf.reduce_sum(tf.square(object_mask * (scales - iou)), axis=[1, 2, 3])), 1.),
            ("noobject", tf.reduce_mean(tf.reduce_sum(tf.square(noobject_mask * scales), axis=[1, 2, 3])), 1.),
            ("coord", tf.reduce_mean(tf.reduce_sum(tf.square(tf.expand_dims(object_mask, 4) * (boxes - truth_tran)), axis=[1, 2, 3, 4])), 5.)]:
        tf.losses.add_loss(value * weight)
        tf.summary.scalar(name + '_loss', value)
    return tf.losses.get_total_loss()


with tf.Graph().as_default(), tf.Session() as sess:
    images = tf.constant(rng.rand(2, 32, 32, 3), tf.float32)
    label = np.zeros([2, S, S, 5 + C], np.float32)
    label[0, 1, 2] = [1, 20, 12, 8, 10, 0, 1, 0]
    label[1, 3, 0] = [1, 4, 28, 6, 6, 1, 0, 0]
    with slim.arg_scope([slim.conv2d, slim.fully_connected], activation_fn=tf.nn.leaky_relu,
                        weights_regularizer=slim.l2_regularizer(0.0005)):
        net = tf.pad(images, np.array([[0, 0], [3, 3], [3, 3], [0, 0]]), name='pad_1')
        net = slim.conv2d(net, 6, 7, 2, padding='VALID', scope='conv_2')
        net = slim.max_pool2d(net, 2, padding='SAME', scope='pool_3')
        net = slim.conv2d(net, 8, 3, 2, scope='conv_4')
        net = tf.transpose(net, [0, 3, 1, 2], name='trans_31')
        net = slim.flatten(net, scope='flat_32')
        net = slim.fully_connected(net, S * S * (C + B * 5), activation_fn=None, scope='fc_36')
    loss = loss_layer(net, tf.constant(label))
    train = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.01), tf.train.get_or_create_global_step())
    sess.run(tf.global_variables_initializer())
    load(sess, 1, .1)
    for step in range(7):
        value = sess.run(train)
        if step % 3 == 0:
            print("yolo %d loss %.4f" % (step, value))
    summary = tf.Summary.FromString(sess.run(tf.summary.merge_all()))
    print([(v.tag, "%.4f" % v.simple_value) for v in summary.value])

# ---- U-Net, with crops and a dice loss


def crop_and_concat(x1, x2):
    x1_shape, x2_shape = tf.shape(x1), tf.shape(x2)
    offsets = [0, (x1_shape[1] - x2_shape[1]) // 2, (x1_shape[2] - x2_shape[2]) // 2, 0]
    return tf.concat([tf.slice(x1, offsets, [-1, x2_shape[1], x2_shape[2], -1]), x2], 3)


with tf.Graph().as_default(), tf.Session() as sess:
    x = tf.placeholder(tf.float32, [None, None, None, 1])
    y = tf.placeholder(tf.float32, [None, None, None, 2])
    training = tf.placeholder(tf.bool, [])
    kept, node = [], x
    for layer in range(2):
        node = tf.layers.conv2d(node, 4 * 2 ** layer, 3, padding="valid", use_bias=False)
        node = tf.nn.relu(tf.layers.batch_normalization(node, momentum=.8, training=training))
        kept.append(node)
        if layer == 0:
            node = tf.layers.max_pooling2d(node, 2, 2)
    w = tf.get_variable("up", [2, 2, 4, 8])
    shape = tf.shape(node)
    node = tf.nn.conv2d_transpose(node, w, tf.stack([shape[0], shape[1] * 2, shape[2] * 2, shape[3] // 2]), [1, 2, 2, 1], "VALID")
    node = crop_and_concat(kept[0], node)
    node.set_shape([None, None, None, 8])
    logits = tf.layers.conv2d(tf.layers.separable_conv2d(node, 4, 3, padding="same", activation=tf.nn.elu), 2, 1)
    flat_logits, flat_labels = tf.reshape(logits, [-1, 2]), tf.reshape(y, [-1, 2])
    weighted = tf.multiply(tf.nn.softmax_cross_entropy_with_logits_v2(logits=flat_logits, labels=tf.stop_gradient(flat_labels)),
                           tf.reduce_sum(tf.constant([1., 3.]) * flat_labels, axis=1))
    prediction = tf.nn.softmax(logits)
    dice = 1 - 2 * tf.reduce_sum(prediction * y) / (1e-5 + tf.reduce_sum(prediction) + tf.reduce_sum(y))
    loss = tf.reduce_mean(weighted) + dice
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(update_ops):
        train = tf.train.MomentumOptimizer(0.05, .9, use_nesterov=True).minimize(loss)
    iou, iou_update = tf.metrics.mean_iou(tf.argmax(y, 3), tf.argmax(logits, 3), 2)
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    load(sess, 2)
    data = rng.rand(2, 14, 14, 1)
    truth = np.eye(2)[(data[:, 3:11, 3:11, 0] > .5).astype(int)]
    size = sess.run(tf.shape(logits), {x: data, training: False})
    truth = truth[:, :size[1], :size[2]]
    for step in range(9):
        value, _ = sess.run([loss, train], {x: data, y: truth, training: True})
        if step % 4 == 0:
            print("unet %d loss %.4f" % (step, value))
    sess.run(iou_update, {x: data, y: truth, training: False})
    print(len(update_ops), size.tolist(), "%.3f" % sess.run(iou), [v.op.name for v in tf.global_variables() if "moving" in v.name][:2])

# ---- WaveNet


def causal_conv(value, filter_, dilation):
    with tf.name_scope('causal_conv'):
        filter_width = tf.shape(filter_)[0]
        padded = tf.pad(value, [[0, 0], [(2 - 1) * dilation, 0], [0, 0]])
        if dilation > 1:
            shape = tf.shape(padded)
            pad_elements = dilation - 1 - (shape[1] + dilation - 1) % dilation
            more = tf.pad(padded, [[0, 0], [0, pad_elements], [0, 0]])
            transposed = tf.transpose(tf.reshape(more, [-1, dilation, shape[2]]), perm=[1, 0, 2])
            batches = tf.reshape(transposed, [shape[0] * dilation, -1, shape[2]])
            conv = tf.nn.conv1d(batches, filter_, stride=1, padding='VALID')
            shape2 = tf.shape(conv)
            prepared = tf.transpose(tf.reshape(conv, [dilation, -1, shape2[2]]), perm=[1, 0, 2])
            conv = tf.reshape(prepared, [tf.div(shape2[0], dilation), -1, shape2[2]])
        else:
            conv = tf.nn.conv1d(padded, filter_, stride=1, padding='VALID')
        return tf.slice(conv, [0, 0, 0], [-1, tf.shape(value)[1], -1]) + 0. * tf.to_float(filter_width)


def mu_law_encode(audio, quantization_channels):
    mu = tf.to_float(quantization_channels - 1)
    safe_audio_abs = tf.minimum(tf.abs(audio), 1.0)
    magnitude = tf.log1p(mu * safe_audio_abs) / tf.log1p(mu)
    return tf.to_int32((tf.sign(audio) * magnitude + 1) / 2 * mu + 0.5)


with tf.Graph().as_default(), tf.Session() as sess:
    audio = tf.constant(np.sin(np.arange(40) * .5)[None, :, None] * .8, tf.float32)
    encoded = mu_law_encode(audio, 16)
    network = tf.one_hot(tf.reshape(encoded, [1, -1]), 16)
    outputs, current = [], causal_conv(network, tf.get_variable("first", [2, 16, 6]), 1)
    for i, dilation in enumerate([1, 2, 4]):
        with tf.variable_scope('layer%d' % i):
            out = tf.tanh(causal_conv(current, tf.get_variable("filter", [2, 6, 6]), dilation)) * tf.sigmoid(
                causal_conv(current, tf.get_variable("gate", [2, 6, 6]), dilation))
            outputs.append(tf.nn.conv1d(out, tf.get_variable("skip", [1, 6, 8]), stride=1, padding="SAME"))
            current += tf.nn.conv1d(out, tf.get_variable("dense", [1, 6, 6]), stride=1, padding="SAME")
    raw = tf.nn.conv1d(tf.nn.relu(sum(outputs)), tf.get_variable("post", [1, 8, 16]), stride=1, padding="SAME")
    same = tf.layers.conv1d(network, 3, 2, dilation_rate=2, padding="valid", name="library")
    target = tf.reshape(network[:, 1:], [-1, 16])
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=tf.reshape(raw[:, :-1], [-1, 16]), labels=target))
    loss += 0.001 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if 'bias' not in v.name])
    train = tf.train.AdamOptimizer(0.02, epsilon=1e-4).minimize(loss)
    sess.run(tf.global_variables_initializer())
    load(sess, 3)
    for step in range(10):
        value, _ = sess.run([loss, train])
        if step % 3 == 0:
            print("wavenet %d loss %.4f" % (step, value))
    print(sess.run(encoded).ravel()[:8].tolist(), same.shape, "%.4f" % sess.run(same).sum())
