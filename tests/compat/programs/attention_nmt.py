"""Attention with tf.contrib.seq2seq: trained with a helper, decoded greedily and with a beam."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.python.layers import core as layers_core
from tensorflow.python.ops import lookup_ops

VOCAB = ["<unk>", "<s>", "</s>", "a", "b", "c", "d"]
UNITS, BATCH, BEAM = 8, 4, 3
hparams = tf.contrib.training.HParams(attention="luong", num_units=UNITS, learning_rate=0.1, max_gradient_norm=5.0,
                                      src_max_len=6, infer_mode="beam_search")
hparams.parse("learning_rate=0.05")
hparams.add_hparam("tgt_sos_id", 1)


def make_data():
    src = tf.data.Dataset.from_tensor_slices(["a b c", "d a", "c c b d", "b"])
    tgt = tf.data.Dataset.from_tensor_slices(["c b a", "a d", "d b c c", "b"])
    table = lookup_ops.index_table_from_tensor(tf.constant(VOCAB), default_value=0)
    data = tf.data.Dataset.zip((src, tgt))
    data = data.map(lambda s, t: (tf.string_split([s]).values, tf.string_split([t]).values))
    data = data.filter(lambda s, t: tf.logical_and(tf.size(s) > 0, tf.size(t) > 0))
    data = data.map(lambda s, t: (tf.cast(table.lookup(s), tf.int32), tf.cast(table.lookup(t), tf.int32)))
    data = data.map(lambda s, t: (s, tf.concat(([1], t), 0), tf.concat((t, [2]), 0)))
    data = data.map(lambda s, i, o: (s, i, o, tf.size(s), tf.size(i)))
    return data.padded_batch(BATCH, padded_shapes=(tf.TensorShape([None]), tf.TensorShape([None]), tf.TensorShape([None]),
                                                   tf.TensorShape([]), tf.TensorShape([])),
                             padding_values=(2, 2, 2, 0, 0)).repeat()


def initializer(shape, dtype=None, partition_info=None):
    return tf.constant(np.random.RandomState(int(np.prod(shape))).uniform(-.4, .4, shape), dtype)


class Model(object):
    """The graph for training, or that for inference, whose variables have the same names."""
    def __init__(self, mode):
        self.iterator = make_data().make_initializable_iterator()
        source, target_in, target_out, self.source_length, target_length = self.iterator.get_next()
        self.mode, self.batch_size = mode, tf.size(self.source_length)
        with tf.variable_scope("nmt", initializer=initializer, dtype=tf.float32):
            self.embedding = tf.get_variable("embedding", [len(VOCAB), UNITS])
            with tf.variable_scope("encoder"):
                fw, bw = tf.nn.rnn_cell.GRUCell(UNITS // 2), tf.nn.rnn_cell.GRUCell(UNITS // 2)
                bi_outputs, bi_state = tf.nn.bidirectional_dynamic_rnn(
                    fw, bw, tf.nn.embedding_lookup(self.embedding, source), self.source_length, dtype=tf.float32)
                self.memory, self.state = tf.concat(bi_outputs, -1), tf.concat(bi_state, -1)
            with tf.variable_scope("decoder") as scope:
                self.output_layer = layers_core.Dense(len(VOCAB), use_bias=False, name="output_projection")
                if mode == "train":
                    self.train(scope, target_in, target_out, target_length)
                else:
                    self.infer(scope)
        self.saver = tf.train.Saver()

    def attend(self, memory, length, state, batch, history=False):
        mechanism = (tf.contrib.seq2seq.LuongAttention(UNITS, memory, length, scale=True)
                     if hparams.attention == "luong" else
                     tf.contrib.seq2seq.BahdanauAttention(UNITS, memory, length, normalize=True))
        cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(UNITS), mechanism, attention_layer_size=UNITS,
                                                   alignment_history=history, output_attention=True, name="attention")
        return cell, cell.zero_state(batch, tf.float32).clone(cell_state=state)

    def train(self, scope, target_in, target_out, target_length):
        cell, initial = self.attend(self.memory, self.source_length, self.state, self.batch_size, True)
        helper = tf.contrib.seq2seq.TrainingHelper(tf.nn.embedding_lookup(self.embedding, target_in), target_length)
        decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, initial)
        outputs, final_state, _ = tf.contrib.seq2seq.dynamic_decode(decoder, swap_memory=True, scope=scope)
        logits = self.output_layer(outputs.rnn_output)
        weights = tf.sequence_mask(target_length, tf.shape(target_out)[1], dtype=tf.float32)
        self.loss = tf.contrib.seq2seq.sequence_loss(logits, target_out, weights)
        self.alignments = tf.transpose(final_state.alignment_history.stack(), [1, 0, 2])
        params = tf.trainable_variables()
        gradients = tf.gradients(self.loss, params, colocate_gradients_with_ops=True)
        clipped, self.norm = tf.clip_by_global_norm(gradients, hparams.max_gradient_norm)
        self.update = tf.train.AdamOptimizer(hparams.learning_rate).apply_gradients(zip(clipped, params))

    def infer(self, scope):
        start, end = tf.fill([self.batch_size], hparams.tgt_sos_id), 2
        if self.mode == "beam":
            tiled = [tf.contrib.seq2seq.tile_batch(t, multiplier=BEAM) for t in (self.memory, self.source_length, self.state)]
            cell, initial = self.attend(tiled[0], tiled[1], tiled[2], self.batch_size * BEAM)
            decoder = tf.contrib.seq2seq.BeamSearchDecoder(
                cell=cell, embedding=self.embedding, start_tokens=start, end_token=end, initial_state=initial,
                beam_width=BEAM, output_layer=self.output_layer, length_penalty_weight=0.5)
        else:
            cell, initial = self.attend(self.memory, self.source_length, self.state, self.batch_size)
            helper = tf.contrib.seq2seq.GreedyEmbeddingHelper(self.embedding, start, end)
            decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, initial, self.output_layer)
        self.outputs, _, self.lengths = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=6, scope=scope)
        if self.mode == "greedy":
            table = lookup_ops.index_to_string_table_from_tensor(tf.constant(VOCAB), default_value="<unk>")
            self.words = table.lookup(tf.to_int64(self.outputs.sample_id))


models, checkpoint = {}, os.path.join(tempfile.mkdtemp(), "nmt.ckpt")
for mode in ("train", "greedy", "beam"):
    graph = tf.Graph()
    with graph.as_default():
        models[mode] = model = Model(mode)
    with tf.Session(graph=graph) as sess:
        with graph.as_default():
            sess.run([tf.global_variables_initializer(), tf.tables_initializer(), model.iterator.initializer])
        if mode == "train":
            for v in graph.get_collection("trainable_variables"):
                print(v.name, v.shape)
            for step in range(40):
                value, grad_norm, _ = sess.run([model.loss, model.norm, model.update])
                if step % 8 == 0:
                    print("step %d loss %.4f norm %.4f" % (step, value, grad_norm))
            history = sess.run(model.alignments)
            print(history.shape, "%.4f" % history[0, 0].sum())
            model.saver.save(sess, checkpoint)
            continue
        model.saver.restore(sess, checkpoint)
        if mode == "greedy":
            for row, n in zip(*sess.run([model.words, model.lengths])):
                print(b" ".join(row[:n]).decode())
        else:
            ids, scores, lengths = sess.run([model.outputs.predicted_ids,
                                             model.outputs.beam_search_decoder_output.scores, model.lengths])
            print(ids[:, :, 0].tolist())
            print(ids.shape, hparams.learning_rate, lengths[:, 0].tolist(), " ".join("%.3f" % s for s in scores[:, -1, 0]))
