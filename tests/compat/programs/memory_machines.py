"""Memories: a Neural Turing machine over a TensorArray, and an end-to-end memory network with its own gradient noise."""
from __future__ import division
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import array_ops, tensor_array_ops

rng = np.random.RandomState(0)
N, M, CONTROLLER, BATCH, STEPS = 6, 4, 10, 3, 5


def fixed(shape, seed, scale=.3):
    return np.random.RandomState(seed).uniform(-scale, scale, shape).astype(np.float32)


def smooth_cosine_similarity(m, k):
    dot = tf.squeeze(tf.matmul(m, tf.expand_dims(k, -1)), -1)
    norm = tf.sqrt(tf.reduce_sum(m * m, 2)) * tf.expand_dims(tf.sqrt(tf.reduce_sum(k * k, 1)), 1)
    return dot / (norm + 1e-3)


def circular_convolution(v, k):
    size = int(v.get_shape()[1])
    return tf.add_n([tf.expand_dims(k[:, i], 1) * tf.concat([v[:, -(i - 1):], v[:, :-(i - 1)]] if i != 1 else [v], 1)
                     if i != 0 else tf.expand_dims(k[:, 0], 1) * tf.concat([v[:, 1:], v[:, :1]], 1) for i in range(3)]) + 0 * size


class NTMCell(tf.contrib.rnn.RNNCell):
    def __init__(self, n, m, controller_size):
        super(NTMCell, self).__init__()
        self.n, self.m = n, m
        self.controller = tf.contrib.rnn.BasicLSTMCell(controller_size, forget_bias=0.0)

    @property
    def state_size(self):
        return (self.controller.state_size, self.m, self.n, tf.TensorShape([self.n, self.m]))

    @property
    def output_size(self):
        return self.m

    def address(self, head, w, memory):
        key, beta, gate = tf.tanh(head[:, :self.m]), tf.nn.softplus(head[:, self.m:self.m + 1]), tf.sigmoid(head[:, self.m + 1:self.m + 2])
        shift, gamma = tf.nn.softmax(head[:, self.m + 2:self.m + 5]), 1 + tf.nn.softplus(head[:, self.m + 5:self.m + 6])
        content = tf.nn.softmax(beta * smooth_cosine_similarity(memory, key))
        shifted = circular_convolution(gate * content + (1 - gate) * w, shift)
        sharp = tf.pow(shifted + 1e-6, gamma)
        return sharp / tf.reduce_sum(sharp, 1, keep_dims=True)

    def __call__(self, inputs, state, scope=None):
        with tf.variable_scope(scope or type(self).__name__):
            controller_state, read, w, memory = state
            out, controller_state = self.controller(tf.concat([inputs, read], 1), controller_state)
            head = tf.contrib.layers.fully_connected(out, self.m + 6, activation_fn=None, scope="head")
            w = self.address(head, w, memory)
            erase = tf.contrib.layers.fully_connected(out, self.m, activation_fn=tf.sigmoid, scope="erase")
            add = tf.contrib.layers.fully_connected(out, self.m, activation_fn=tf.tanh, scope="add")
            memory = memory * (1 - tf.matmul(tf.expand_dims(w, 2), tf.expand_dims(erase, 1))) + tf.matmul(
                tf.expand_dims(w, 2), tf.expand_dims(add, 1))
            read = tf.reduce_sum(tf.expand_dims(w, 2) * memory, 1)
            return read, (controller_state, read, w, memory)

    def zero_state(self, batch_size, dtype):
        return (self.controller.zero_state(batch_size, dtype), tf.zeros([batch_size, self.m]),
                tf.one_hot(tf.zeros([batch_size], tf.int32), self.n), tf.fill([batch_size, self.n, self.m], 1e-2))


def run_cell(cell, inputs, length):
    inputs_ta = tensor_array_ops.TensorArray(tf.float32, size=length).unstack(tf.transpose(inputs, [1, 0, 2]))
    outputs_ta = tensor_array_ops.TensorArray(tf.float32, size=length, dynamic_size=False, infer_shape=True)

    def body(t, state, outputs_ta):
        output, state = cell(inputs_ta.read(t), state, scope="ntm")
        return t + 1, state, outputs_ta.write(t, output)
    _, final, outputs_ta = tf.while_loop(lambda t, *_: t < length, body,
                                         (tf.constant(0), cell.zero_state(BATCH, tf.float32), outputs_ta),
                                         parallel_iterations=32, swap_memory=True)
    return tf.transpose(outputs_ta.stack(), [1, 0, 2]), final


with tf.Graph().as_default(), tf.Session() as sess:
    x = tf.constant((rng.rand(BATCH, STEPS, 4) > .5).astype(np.float32))
    cell = NTMCell(N, M, CONTROLLER)
    outputs, final = run_cell(cell, tf.concat([x, tf.zeros_like(x)], 1), 2 * STEPS)
    raw, _ = tf.nn.dynamic_rnn(cell, x, initial_state=cell.zero_state(BATCH, tf.float32), scope="rnn")
    logits = tf.layers.dense(outputs[:, STEPS:], 4, name="out")
    loss = tf.losses.sigmoid_cross_entropy(x, logits)
    variables = [v for v in tf.trainable_variables() if not v.op.name.startswith("rnn")]
    optimizer = tf.train.RMSPropOptimizer(0.01, momentum=0.9, decay=0.9)
    grads = [(tf.clip_by_value(g, -10., 10.), v) for g, v in optimizer.compute_gradients(loss, variables) if g is not None]
    train = optimizer.apply_gradients(grads)
    sess.run(tf.global_variables_initializer())
    for i, v in enumerate(tf.trainable_variables()):
        v.load(fixed(v.shape.as_list(), i), sess)
    for step in range(16):
        value, _ = sess.run([loss, train])
        if step % 5 == 0:
            print("copy step %d loss %.4f" % (step, value))
    print([v.op.name for v in tf.trainable_variables()][:4], "%.4f" % sess.run(final[2]).sum(), outputs.shape[2], raw.shape)

# ---- end-to-end memory network
STORIES = np.array([[[1, 2, 3], [4, 2, 5], [0, 0, 0]], [[4, 2, 3], [1, 2, 6], [4, 2, 5]], [[1, 2, 5], [4, 2, 6], [1, 2, 3]]])
QUESTIONS, ANSWERS = np.array([[7, 1, 0], [7, 4, 0], [7, 1, 0]]), np.array([3, 5, 3])


def position_encoding(sentence_size, embedding_size):
    encoding = np.ones((embedding_size, sentence_size), dtype=np.float32)
    ls, le = sentence_size + 1, embedding_size + 1
    for i in range(1, le):
        for j in range(1, ls):
            encoding[i - 1, j - 1] = (i - (embedding_size + 1) / 2) * (j - (sentence_size + 1) / 2)
    encoding = 1 + 4 * encoding / embedding_size / sentence_size
    encoding[:, -1] = 1.0
    return np.transpose(encoding)


def zero_nil_slot(t, name=None):
    with tf.op_scope([t], name, "zero_nil_slot") as name:
        t = tf.convert_to_tensor(t, name="t")
        s = tf.shape(t)[1]
        z = tf.zeros(tf.stack([1, s]))
        return tf.concat(axis=0, values=[z, tf.slice(t, [1, 0], [-1, -1])], name=name)


def add_gradient_noise(t, stddev=1e-3, name=None):
    with tf.op_scope([t, stddev], name, "add_gradient_noise") as name:
        t = tf.convert_to_tensor(t, name="t")
        return tf.add(t, tf.random_normal(tf.shape(t), stddev=stddev), name=name)


tf.reset_default_graph()
with tf.Session() as sess:
    stories, queries = tf.placeholder(tf.int32, [None, 3, 3]), tf.placeholder(tf.int32, [None, 3])
    answers, rate = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [])
    encoding = tf.constant(position_encoding(3, 6), name="encoding")
    A = tf.Variable(np.concatenate([np.zeros([1, 6]), fixed([7, 6], 1)]).astype(np.float32), name="A")
    C = []
    for hopn in range(2):
        with tf.variable_scope('hop_{}'.format(hopn)):
            C.append(tf.Variable(np.concatenate([np.zeros([1, 6]), fixed([7, 6], 2 + hopn)]).astype(np.float32), name="C"))
    u = [tf.reduce_sum(tf.nn.embedding_lookup(A, queries) * encoding, 1)]
    for hopn in range(2):
        memory = tf.reduce_sum(tf.nn.embedding_lookup(A if hopn == 0 else C[hopn - 1], stories) * encoding, 2)
        probs = tf.nn.softmax(tf.reduce_sum(memory * tf.transpose(tf.expand_dims(u[-1], -1), [0, 2, 1]), 2))
        m_c = tf.transpose(tf.reduce_sum(tf.nn.embedding_lookup(C[hopn], stories) * encoding, 2), [0, 2, 1])
        u.append(u[-1] + tf.reduce_sum(m_c * tf.expand_dims(probs, 1), 2))
    logits = tf.matmul(u[-1], tf.transpose(C[-1], [1, 0]))
    loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=answers))
    opt = tf.train.GradientDescentOptimizer(learning_rate=rate)
    grads_and_vars = [(tf.clip_by_norm(g, 40.), v) for g, v in opt.compute_gradients(loss)]
    noisy = [(add_gradient_noise(g, 1e-9), v) for g, v in grads_and_vars]
    nil = [(zero_nil_slot(g), v) if v.name in ("A:0", "hop_0/C:0", "hop_1/C:0") else (g, v) for g, v in noisy]
    train = opt.apply_gradients(nil, name="train_op")
    sess.run(tf.global_variables_initializer())
    feed = {stories: STORIES, queries: QUESTIONS, answers: ANSWERS}
    for epoch in range(40):
        cost, _ = sess.run([loss, train], dict(feed, **{rate: .1}) if False else {**feed, rate: .1})
        if epoch % 13 == 0:
            print("epoch %d cost %.4f" % (epoch, cost))
    print(sess.run(tf.argmax(logits, 1, name="predict_op"), feed).tolist(), "%.4f" % abs(sess.run(A)[0]).sum())
    print([v.name for v in tf.trainable_variables()], array_ops.rank(logits).eval(feed))
