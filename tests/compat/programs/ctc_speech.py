"""Speech recognition in small: dynamic LSTM, CTC loss, greedy and beam decoding, label error rate."""
from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow as tf

num_features, num_classes, num_hidden, num_layers, batch_size = 5, 6, 12, 2, 3
SPACE_TOKEN, SPACE_INDEX, FIRST_INDEX = '<space>', 0, ord('a') - 1


def sparse_tuple_from(sequences, dtype=np.int32):
    indices, values = [], []
    for n, seq in enumerate(sequences):
        indices.extend(zip([n] * len(seq), range(len(seq))))
        values.extend(seq)
    indices = np.asarray(indices, dtype=np.int64)
    values = np.asarray(values, dtype=dtype)
    shape = np.asarray([len(sequences), np.asarray(indices).max(0)[1] + 1], dtype=np.int64)
    return indices, values, shape


def pad_sequences(sequences, value=0.):
    lengths = np.asarray([len(s) for s in sequences], dtype=np.int64)
    x = (np.ones((len(sequences), lengths.max(), num_features)) * value).astype(np.float32)
    for idx, s in enumerate(sequences):
        x[idx, :len(s)] = s
    return x, lengths


rng = np.random.RandomState(0)
texts = ["ab d", "cd", "ba"]
targets = [[SPACE_INDEX if c == " " else ord(c) - FIRST_INDEX for c in t] for t in texts]
codes = rng.normal(size=(num_classes, num_features))
inputs_data = [np.concatenate([np.tile(codes[t], (2, 1)) for t in target]) + rng.normal(
    size=(2 * len(target), num_features)) * .05 for target in targets]
train_inputs, train_seq_len = pad_sequences(inputs_data)
train_inputs = (train_inputs - train_inputs.mean()) / train_inputs.std()

graph = tf.Graph()
with graph.as_default():
    inputs = tf.placeholder(tf.float32, [None, None, num_features])
    labels = tf.sparse_placeholder(tf.int32)
    seq_len = tf.placeholder(tf.int32, [None])
    cells = [tf.contrib.rnn.LSTMCell(num_hidden, state_is_tuple=True) for _ in range(num_layers)]
    stack = tf.contrib.rnn.MultiRNNCell(cells, state_is_tuple=True)
    outputs, _ = tf.nn.dynamic_rnn(stack, inputs, seq_len, dtype=tf.float32)
    shape = tf.shape(inputs)
    batch_s, max_timesteps = shape[0], shape[1]
    outputs = tf.reshape(outputs, [-1, num_hidden])
    W = tf.Variable(tf.truncated_normal([num_hidden, num_classes], stddev=0.1))
    b = tf.Variable(tf.constant(0., shape=[num_classes]))
    logits = tf.matmul(outputs, W) + b
    logits = tf.reshape(logits, [batch_s, -1, num_classes])
    logits = tf.transpose(logits, (1, 0, 2))
    loss = tf.nn.ctc_loss(labels, logits, seq_len)
    cost = tf.reduce_mean(loss)
    global_step = tf.Variable(0, trainable=False)
    rate = tf.train.polynomial_decay(0.02, global_step, 60, 0.002, power=0.5)
    optimizer = tf.train.RMSPropOptimizer(rate, momentum=0.5).minimize(cost, global_step)
    decoded, log_prob = tf.nn.ctc_greedy_decoder(logits, seq_len)
    beams, beam_log_prob = tf.nn.ctc_beam_search_decoder(logits, seq_len, beam_width=8, top_paths=2,
                                                         merge_repeated=False)
    ler = tf.reduce_mean(tf.edit_distance(tf.cast(decoded[0], tf.int32), labels))
    dense = tf.sparse_tensor_to_dense(decoded[0], default_value=-1)
    spectrum = tf.abs(tf.contrib.signal.stft(tf.sin(tf.range(256, dtype=tf.float32) * .3)[tf.newaxis], 64, 32))
    mel = tf.tensordot(spectrum, tf.contrib.signal.linear_to_mel_weight_matrix(8, 33, 8000, 80., 3800.), 1)
    mfcc = tf.contrib.signal.mfccs_from_log_mel_spectrograms(tf.log(mel + 1e-3))[..., :4]

with tf.Session(graph=graph) as session:
    tf.global_variables_initializer().run()
    values = np.random.RandomState(1)
    for v in tf.trainable_variables():
        v.load(values.uniform(-.3, .3, v.shape.as_list()), session)
    feed = {inputs: train_inputs, labels: sparse_tuple_from(targets), seq_len: train_seq_len}
    for epoch in range(60):
        batch_cost, _ = session.run([cost, optimizer], feed)
        if epoch % 10 == 0:
            print("Epoch %d/60, train_cost = %.3f, train_ler = %.3f" % (epoch, batch_cost, session.run(ler, feed)))
    result = session.run(decoded[0], feed)
    print(type(result).__name__, result.dense_shape.tolist())
    for row in session.run(dense, feed):
        print(repr(''.join([chr(x + FIRST_INDEX) if x > 0 else ' ' for x in row if x >= 0])))
    paths, scores, greedy = session.run([beams, beam_log_prob, log_prob], feed)
    print(len(paths), scores.shape, greedy.shape, bool((scores[:, 0] >= scores[:, 1]).all()))
    print(" ".join("%.3f" % v for v in mfcc.eval()[0, 0]))
