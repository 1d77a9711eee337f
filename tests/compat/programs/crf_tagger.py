"""Bidirectional LSTM with a conditional random field over words and characters, of the named-entity kind."""
import numpy as np
import tensorflow as tf

TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
SENTENCES = [("anna lives in rome", "1 0 0 3"), ("in oslo mister bo jensen waits", "0 3 1 2 2 0"),
             ("rome", "3"), ("they met anna of oslo", "0 0 1 0 3"), ("mister jensen left", "1 2 0")]
vocab = {w: i + 1 for i, w in enumerate(sorted({w for s, _ in SENTENCES for w in s.split()}))}
chars = {c: i + 1 for i, c in enumerate(sorted({c for w in vocab for c in w}))}


def pad_sequences(sequences, pad_tok, max_length):
    return ([list(s)[:max_length] + [pad_tok] * max(max_length - len(s), 0) for s in sequences],
            [min(len(s), max_length) for s in sequences])


class NERModel(object):
    def __init__(self):
        self.word_ids = tf.placeholder(tf.int32, shape=[None, None], name="word_ids")
        self.sequence_lengths = tf.placeholder(tf.int32, shape=[None], name="sequence_lengths")
        self.char_ids = tf.placeholder(tf.int32, shape=[None, None, None], name="char_ids")
        self.word_lengths = tf.placeholder(tf.int32, shape=[None, None], name="word_lengths")
        self.labels = tf.placeholder(tf.int32, shape=[None, None], name="labels")
        self.dropout = tf.placeholder(dtype=tf.float32, shape=[], name="dropout")
        self.lr = tf.placeholder(dtype=tf.float32, shape=[], name="lr")
        init = lambda seed: tf.constant_initializer(np.random.RandomState(seed).uniform(-.3, .3, 20000))

        with tf.variable_scope("words"):
            word_embeddings = tf.nn.embedding_lookup(
                tf.get_variable("_word_embeddings", [len(vocab) + 1, 6], tf.float32,
                                initializer=self.fixed(1)), self.word_ids, name="word_embeddings")
        with tf.variable_scope("chars", initializer=self.fixed(2)):
            _char_embeddings = tf.get_variable(name="_char_embeddings", dtype=tf.float32,
                                               shape=[len(chars) + 1, 4])
            char_embeddings = tf.nn.embedding_lookup(_char_embeddings, self.char_ids, name="char_embeddings")
            s = tf.shape(char_embeddings)
            char_embeddings = tf.reshape(char_embeddings, shape=[s[0] * s[1], s[-2], 4])
            word_lengths = tf.reshape(self.word_lengths, shape=[s[0] * s[1]])
            cell_fw = tf.contrib.rnn.LSTMCell(3, state_is_tuple=True)
            cell_bw = tf.contrib.rnn.LSTMCell(3, state_is_tuple=True)
            _, ((_, output_fw), (_, output_bw)) = tf.nn.bidirectional_dynamic_rnn(
                cell_fw, cell_bw, char_embeddings, sequence_length=word_lengths, dtype=tf.float32)
            output = tf.reshape(tf.concat([output_fw, output_bw], axis=-1), shape=[s[0], s[1], 2 * 3])
            word_embeddings = tf.concat([word_embeddings, output], axis=-1)
        self.word_embeddings = tf.nn.dropout(word_embeddings, self.dropout)
        with tf.variable_scope("bi-lstm", initializer=self.fixed(3)):
            (output_fw, output_bw), _ = tf.nn.bidirectional_dynamic_rnn(
                tf.contrib.rnn.LSTMCell(5), tf.contrib.rnn.LSTMCell(5), self.word_embeddings,
                sequence_length=self.sequence_lengths, dtype=tf.float32)
            output = tf.nn.dropout(tf.concat([output_fw, output_bw], axis=-1), self.dropout)
        with tf.variable_scope("proj", initializer=self.fixed(4)):
            W = tf.get_variable("W", dtype=tf.float32, shape=[10, len(TAGS)])
            b = tf.get_variable("b", shape=[len(TAGS)], dtype=tf.float32, initializer=tf.zeros_initializer())
            nsteps = tf.shape(output)[1]
            pred = tf.matmul(tf.reshape(output, [-1, 10]), W) + b
            self.logits = tf.reshape(pred, [-1, nsteps, len(TAGS)])
        transitions = tf.get_variable("transitions", [len(TAGS)] * 2, initializer=self.fixed(5))
        log_likelihood, self.trans_params = tf.contrib.crf.crf_log_likelihood(
            self.logits, self.labels, self.sequence_lengths, transition_params=transitions)
        self.loss = tf.reduce_mean(-log_likelihood)
        self.decoded, self.best = tf.contrib.crf.crf_decode(self.logits, self.trans_params, self.sequence_lengths)
        optimizer = tf.train.AdamOptimizer(self.lr)
        grads, vs = zip(*optimizer.compute_gradients(self.loss))
        grads, self.gnorm = tf.clip_by_global_norm(grads, 1)
        self.train_op = optimizer.apply_gradients(zip(grads, vs))

    @staticmethod
    def fixed(seed):
        def initializer(shape, dtype=None, partition_info=None):
            return tf.constant(np.random.RandomState(seed).uniform(-.4, .4, shape), dtype=dtype)
        return initializer

    def feed(self, lr=None, dropout=1.0):
        words, lengths = pad_sequences([[vocab[w] for w in s.split()] for s, _ in SENTENCES], 0, 6)
        labels, _ = pad_sequences([list(map(int, t.split())) for _, t in SENTENCES], 0, 6)
        char_ids, word_lengths = [], []
        for s, _ in SENTENCES:
            ids, n = pad_sequences([[chars[c] for c in w] for w in s.split()], 0, 6)
            char_ids.append(ids + [[0] * 6] * (6 - len(ids)))
            word_lengths.append(n + [0] * (6 - len(n)))
        feed = {self.word_ids: words, self.sequence_lengths: lengths, self.char_ids: char_ids,
                self.word_lengths: word_lengths, self.labels: labels, self.dropout: dropout}
        if lr is not None:
            feed[self.lr] = lr
        return feed, lengths


model = NERModel()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for v in tf.trainable_variables():
        print(v.name, v.shape)
    feed, lengths = model.feed(lr=0.05)
    for epoch in range(12):
        _, loss, norm = sess.run([model.train_op, model.loss, model.gnorm], feed)
        if epoch % 3 == 0:
            print("epoch %d loss %.4f norm %.4f" % (epoch, loss, norm))
    logits, trans_params = sess.run([model.logits, model.trans_params], feed)
    decoded, best = sess.run([model.decoded, model.best], feed)
    for logit, length, row, score in zip(logits, lengths, decoded, best):
        viterbi_sequence, viterbi_score = tf.contrib.crf.viterbi_decode(logit[:length], trans_params)
        print([TAGS[t] for t in viterbi_sequence], "%.3f %.3f" % (viterbi_score, score),
              list(row[:length]) == viterbi_sequence)
