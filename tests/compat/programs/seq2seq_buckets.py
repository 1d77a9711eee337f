"""Sequence to sequence with attention and buckets, in the manner of the translation tutorial of 2016."""
from __future__ import absolute_import
from __future__ import division
from __future__ import print_function

import random

import numpy as np
from six.moves import xrange
import tensorflow as tf

PAD_ID, GO_ID, EOS_ID = 0, 1, 2
_buckets = [(3, 4), (5, 6)]

tf.app.flags.DEFINE_float("learning_rate", 0.5, "Learning rate.")
tf.app.flags.DEFINE_float("max_gradient_norm", 5.0, "Clip gradients to this norm.")
tf.app.flags.DEFINE_integer("batch_size", 4, "Batch size to use during training.")
tf.app.flags.DEFINE_integer("size", 8, "Size of each model layer.")
tf.app.flags.DEFINE_integer("num_layers", 2, "Number of layers in the model.")
tf.app.flags.DEFINE_integer("vocab_size", 11, "Vocabulary size.")
FLAGS = tf.app.flags.FLAGS


class Seq2SeqModel(object):
    def __init__(self, vocab_size, buckets, size, num_layers, max_gradient_norm, batch_size, learning_rate,
                 forward_only=False):
        self.vocab_size, self.buckets, self.batch_size = vocab_size, buckets, batch_size
        self.learning_rate = tf.Variable(float(learning_rate), trainable=False)
        self.learning_rate_decay_op = self.learning_rate.assign(self.learning_rate * 0.99)
        self.global_step = tf.Variable(0, trainable=False)

        w_t = tf.get_variable("proj_w", [vocab_size, size], dtype=tf.float32)
        w = tf.transpose(w_t)
        b = tf.get_variable("proj_b", [vocab_size], dtype=tf.float32)
        output_projection = (w, b)

        def sampled_loss(labels, logits):
            # The whole vocabulary in place of samples, so that runs can be compared.
            dense = tf.matmul(logits, w) + b
            return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(labels, [-1]), logits=dense)

        def single_cell():
            return tf.contrib.rnn.GRUCell(size)
        cell = single_cell()
        if num_layers > 1:
            cell = tf.contrib.rnn.MultiRNNCell([single_cell() for _ in range(num_layers)])

        def seq2seq_f(encoder_inputs, decoder_inputs, do_decode):
            return tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(
                encoder_inputs, decoder_inputs, _copy(cell), num_encoder_symbols=vocab_size,
                num_decoder_symbols=vocab_size, embedding_size=size, output_projection=output_projection,
                feed_previous=do_decode, dtype=tf.float32)

        def _copy(cell):
            import copy
            return copy.deepcopy(cell)

        self.encoder_inputs, self.decoder_inputs, self.target_weights = [], [], []
        for i in xrange(buckets[-1][0]):
            self.encoder_inputs.append(tf.placeholder(tf.int32, shape=[None], name="encoder{0}".format(i)))
        for i in xrange(buckets[-1][1] + 1):
            self.decoder_inputs.append(tf.placeholder(tf.int32, shape=[None], name="decoder{0}".format(i)))
            self.target_weights.append(tf.placeholder(tf.float32, shape=[None], name="weight{0}".format(i)))
        targets = [self.decoder_inputs[i + 1] for i in xrange(len(self.decoder_inputs) - 1)]

        self.outputs, self.losses = tf.contrib.legacy_seq2seq.model_with_buckets(
            self.encoder_inputs, self.decoder_inputs, targets, self.target_weights, buckets,
            lambda x, y: seq2seq_f(x, y, forward_only), softmax_loss_function=sampled_loss)
        self.decoded = [[tf.argmax(tf.matmul(output, w) + b, 1) for output in outputs] for outputs in self.outputs]

        params = tf.trainable_variables()
        if not forward_only:
            self.gradient_norms, self.updates = [], []
            opt = tf.train.GradientDescentOptimizer(self.learning_rate)
            for b in xrange(len(buckets)):
                gradients = tf.gradients(self.losses[b], params)
                clipped_gradients, norm = tf.clip_by_global_norm(gradients, max_gradient_norm)
                self.gradient_norms.append(norm)
                self.updates.append(opt.apply_gradients(zip(clipped_gradients, params),
                                                        global_step=self.global_step))
        self.saver = tf.train.Saver(tf.global_variables())

    def step(self, session, batch, bucket_id, forward_only):
        encoder_inputs, decoder_inputs, target_weights = batch
        encoder_size, decoder_size = self.buckets[bucket_id]
        input_feed = {}
        for l in xrange(encoder_size):
            input_feed[self.encoder_inputs[l].name] = encoder_inputs[l]
        for l in xrange(decoder_size):
            input_feed[self.decoder_inputs[l].name] = decoder_inputs[l]
            input_feed[self.target_weights[l].name] = target_weights[l]
        input_feed[self.decoder_inputs[decoder_size].name] = np.zeros([self.batch_size], dtype=np.int32)
        if not forward_only:
            output_feed = [self.updates[bucket_id], self.gradient_norms[bucket_id], self.losses[bucket_id]]
            return session.run(output_feed, input_feed)[1:]
        return session.run([self.losses[bucket_id]] + self.decoded[bucket_id], input_feed)

    def get_batch(self, rng, bucket_id):
        encoder_size, decoder_size = self.buckets[bucket_id]
        encoder_inputs, decoder_inputs = [], []
        for _ in xrange(self.batch_size):
            words = [rng.randint(3, self.vocab_size - 1) for _ in range(rng.randint(1, encoder_size - 1))]
            encoder_inputs.append(list(reversed(words + [PAD_ID] * (encoder_size - len(words)))))
            target = [GO_ID] + words + [EOS_ID]
            decoder_inputs.append(target + [PAD_ID] * (decoder_size - len(target)))
        by_time = lambda rows, size: [np.array([row[t] for row in rows], dtype=np.int32) for t in xrange(size)]
        weights = []
        for t in xrange(decoder_size):
            weights.append(np.array([float(t < decoder_size - 1 and row[t + 1] != PAD_ID)
                                     for row in decoder_inputs], dtype=np.float32))
        return by_time(encoder_inputs, encoder_size), by_time(decoder_inputs, decoder_size), weights


def main(_):
    with tf.Session() as sess:
        model = Seq2SeqModel(FLAGS.vocab_size, _buckets, FLAGS.size, FLAGS.num_layers, FLAGS.max_gradient_norm,
                             FLAGS.batch_size, FLAGS.learning_rate)
        sess.run(tf.global_variables_initializer())
        values = np.random.RandomState(3)
        for v in tf.trainable_variables():
            print(v.op.name, v.get_shape().as_list())
            sess.run(v.assign(values.uniform(-0.3, 0.3, v.get_shape().as_list())))
        rng = random.Random(7)
        for step in range(8):
            bucket_id = step % len(_buckets)
            norm, loss = model.step(sess, model.get_batch(rng, bucket_id), bucket_id, False)
            print("step %d bucket %d norm %.4f perplexity %.3f" % (step, bucket_id, norm, np.exp(loss)))
        sess.run(model.learning_rate_decay_op)
        result = model.step(sess, model.get_batch(rng, 0), 0, True)
        print("eval %.4f rate %.4f step %d" % (result[0], model.learning_rate.eval(), model.global_step.eval()))
        print("decoded", np.array(result[1:]).T.tolist())


if __name__ == "__main__":
    tf.app.run()
