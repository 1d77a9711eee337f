"""Character model with an LSTM: a class, pickled configuration, state fed back step by step, sampling."""
from __future__ import print_function
import argparse
import collections
import os
import tempfile

import numpy as np
import tensorflow as tf
from six.moves import cPickle
from tensorflow.contrib import legacy_seq2seq, rnn

TEXT = "how much wood would a woodchuck chuck if a woodchuck could chuck wood? " * 4


class TextLoader():
    def __init__(self, data_dir, batch_size, seq_length):
        self.data_dir, self.batch_size, self.seq_length = data_dir, batch_size, seq_length
        counter = collections.Counter(TEXT)
        self.chars, _ = zip(*sorted(counter.items(), key=lambda x: (-x[1], x[0])))
        self.vocab_size = len(self.chars)
        self.vocab = dict(zip(self.chars, range(len(self.chars))))
        with open(os.path.join(data_dir, "vocab.pkl"), 'wb') as f:
            cPickle.dump(self.chars, f)
        tensor = np.array(list(map(self.vocab.get, TEXT)))
        self.num_batches = int(tensor.size / (batch_size * seq_length))
        tensor = tensor[:self.num_batches * batch_size * seq_length]
        ydata = np.copy(tensor)
        ydata[:-1], ydata[-1] = tensor[1:], tensor[0]
        self.x_batches = np.split(tensor.reshape(batch_size, -1), self.num_batches, 1)
        self.y_batches = np.split(ydata.reshape(batch_size, -1), self.num_batches, 1)
        self.pointer = 0

    def next_batch(self):
        x, y = self.x_batches[self.pointer], self.y_batches[self.pointer]
        self.pointer += 1
        return x, y


class Model():
    def __init__(self, args, training=True):
        self.args = args
        if not training:
            args.batch_size = args.seq_length = 1
        cells = []
        for _ in range(args.num_layers):
            cell = {'rnn': rnn.BasicRNNCell, 'gru': rnn.GRUCell, 'lstm': rnn.BasicLSTMCell,
                    'nas': rnn.NASCell}[args.model](args.rnn_size)
            if training and args.output_keep_prob <= 1.0:
                cell = rnn.DropoutWrapper(cell, input_keep_prob=1.0, output_keep_prob=args.output_keep_prob)
            cells.append(cell)
        self.cell = cell = rnn.MultiRNNCell(cells, state_is_tuple=True)
        self.input_data = tf.placeholder(tf.int32, [args.batch_size, args.seq_length])
        self.targets = tf.placeholder(tf.int32, [args.batch_size, args.seq_length])
        self.initial_state = cell.zero_state(args.batch_size, tf.float32)
        with tf.variable_scope('rnnlm'):
            softmax_w = tf.get_variable("softmax_w", [args.rnn_size, args.vocab_size])
            softmax_b = tf.get_variable("softmax_b", [args.vocab_size])
        embedding = tf.get_variable("embedding", [args.vocab_size, args.rnn_size])
        inputs = tf.nn.embedding_lookup(embedding, self.input_data)
        inputs = tf.split(inputs, args.seq_length, 1)
        inputs = [tf.squeeze(input_, [1]) for input_ in inputs]

        def loop(prev, _):
            prev = tf.matmul(prev, softmax_w) + softmax_b
            prev_symbol = tf.stop_gradient(tf.argmax(prev, 1))
            return tf.nn.embedding_lookup(embedding, prev_symbol)
        outputs, last_state = legacy_seq2seq.rnn_decoder(inputs, self.initial_state, cell,
                                                         loop_function=loop if not training else None,
                                                         scope='rnnlm')
        output = tf.reshape(tf.concat(outputs, 1), [-1, args.rnn_size])
        self.logits = tf.matmul(output, softmax_w) + softmax_b
        self.probs = tf.nn.softmax(self.logits)
        loss = legacy_seq2seq.sequence_loss_by_example(
            [self.logits], [tf.reshape(self.targets, [-1])], [tf.ones([args.batch_size * args.seq_length])])
        with tf.name_scope('cost'):
            self.cost = tf.reduce_sum(loss) / args.batch_size / args.seq_length
        self.final_state = last_state
        self.lr = tf.Variable(0.0, trainable=False)
        tvars = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), args.grad_clip)
        with tf.name_scope('optimizer'):
            optimizer = tf.train.AdamOptimizer(self.lr)
        self.train_op = optimizer.apply_gradients(zip(grads, tvars))
        tf.summary.histogram('logits', self.logits)
        tf.summary.histogram('loss', loss)
        tf.summary.scalar('train_loss', self.cost)

    def sample(self, sess, chars, vocab, num, prime):
        state = sess.run(self.cell.zero_state(1, tf.float32))
        for char in prime[:-1]:
            x = np.zeros((1, 1))
            x[0, 0] = vocab[char]
            [state] = sess.run([self.final_state], {self.input_data: x, self.initial_state: state})
        ret, char = prime, prime[-1]
        for _ in range(num):
            x = np.zeros((1, 1))
            x[0, 0] = vocab[char]
            [probs, state] = sess.run([self.probs, self.final_state],
                                      {self.input_data: x, self.initial_state: state})
            char = chars[np.argmax(probs[0])]
            ret += char
        return ret


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--model', default='lstm')
    parser.add_argument('--rnn_size', type=int, default=16)
    parser.add_argument('--num_layers', type=int, default=2)
    parser.add_argument('--batch_size', type=int, default=4)
    parser.add_argument('--seq_length', type=int, default=8)
    parser.add_argument('--num_epochs', type=int, default=3)
    parser.add_argument('--grad_clip', type=float, default=5.)
    parser.add_argument('--output_keep_prob', type=float, default=1.0)
    args = parser.parse_args()
    save_dir = tempfile.mkdtemp()
    data_loader = TextLoader(save_dir, args.batch_size, args.seq_length)
    args.vocab_size = data_loader.vocab_size
    with open(os.path.join(save_dir, 'config.pkl'), 'wb') as f:
        cPickle.dump(args, f)
    model = Model(args)
    with tf.Session() as sess:
        summaries = tf.summary.merge_all()
        writer = tf.summary.FileWriter(os.path.join(save_dir, "logs"))
        writer.add_graph(sess.graph)
        sess.run(tf.global_variables_initializer())
        saver = tf.train.Saver(tf.global_variables())
        rng = np.random.RandomState(0)
        for v in tf.trainable_variables():
            v.load(rng.uniform(-.3, .3, v.get_shape().as_list()), sess)
        for e in range(args.num_epochs):
            sess.run(tf.assign(model.lr, 0.02 * (0.97 ** e)))
            data_loader.pointer = 0
            state = sess.run(model.initial_state)
            for b in range(data_loader.num_batches):
                x, y = data_loader.next_batch()
                feed = {model.input_data: x, model.targets: y}
                for i, (c, h) in enumerate(model.initial_state):
                    feed[c] = state[i].c
                    feed[h] = state[i].h
                summ, train_loss, state, _ = sess.run([summaries, model.cost, model.final_state, model.train_op],
                                                      feed)
                writer.add_summary(summ, e * data_loader.num_batches + b)
            print("epoch %d train_loss = %.4f" % (e, train_loss))
        saver.save(sess, os.path.join(save_dir, 'model.ckpt'), global_step=args.num_epochs)

    # sample.py
    tf.reset_default_graph()
    with open(os.path.join(save_dir, 'config.pkl'), 'rb') as f:
        saved_args = cPickle.load(f)
    with open(os.path.join(save_dir, 'vocab.pkl'), 'rb') as f:
        chars = cPickle.load(f)
    model = Model(saved_args, training=False)
    with tf.Session() as sess:
        tf.global_variables_initializer().run()
        saver = tf.train.Saver(tf.global_variables())
        ckpt = tf.train.get_checkpoint_state(save_dir)
        if ckpt and ckpt.model_checkpoint_path:
            saver.restore(sess, ckpt.model_checkpoint_path)
            print(repr(model.sample(sess, chars, data_loader.vocab, 20, "how mu")))


if __name__ == '__main__':
    main()
