"""The language model of the recurrent tutorial: producer queue, shared variables of three graphs, perplexities."""
from __future__ import absolute_import, division, print_function

import collections
import inspect
import time

import numpy as np
import tensorflow as tf

flags = tf.flags
logging = tf.logging
flags.DEFINE_string("model", "small", "A type of model. Possible options are: small, medium, large.")
flags.DEFINE_bool("use_fp16", False, "Train using 16-bit floats instead of 32bit floats")
FLAGS = flags.FLAGS
TEXT = ("the cat sat on the mat <eos> the dog sat on the cat <eos> a cat saw a dog <eos> " * 6).split()


class SmallConfig(object):
    init_scale, learning_rate, max_grad_norm, num_layers, num_steps, hidden_size = 0.1, 1.0, 5, 2, 5, 10
    max_epoch, max_max_epoch, keep_prob, lr_decay, batch_size, vocab_size = 2, 4, 1.0, 0.5, 4, 9


def build_vocab(words):
    counter = collections.Counter(words)
    count_pairs = sorted(counter.items(), key=lambda x: (-x[1], x[0]))
    words, _ = list(zip(*count_pairs))
    return dict(zip(words, range(len(words))))


def ptb_producer(raw_data, batch_size, num_steps, name=None):
    with tf.name_scope(name, "PTBProducer", [raw_data, batch_size, num_steps]):
        raw_data = tf.convert_to_tensor(raw_data, name="raw_data", dtype=tf.int32)
        data_len = tf.size(raw_data)
        batch_len = data_len // batch_size
        data = tf.reshape(raw_data[0:batch_size * batch_len], [batch_size, batch_len])
        epoch_size = (batch_len - 1) // num_steps
        assertion = tf.assert_positive(epoch_size, message="epoch_size == 0, decrease batch_size or num_steps")
        with tf.control_dependencies([assertion]):
            epoch_size = tf.identity(epoch_size, name="epoch_size")
        i = tf.train.range_input_producer(epoch_size, shuffle=False).dequeue()
        x = tf.strided_slice(data, [0, i * num_steps], [batch_size, (i + 1) * num_steps])
        x.set_shape([batch_size, num_steps])
        y = tf.strided_slice(data, [0, i * num_steps + 1], [batch_size, (i + 1) * num_steps + 1])
        y.set_shape([batch_size, num_steps])
        return x, y


class PTBInput(object):
    def __init__(self, config, data, name=None):
        self.batch_size, self.num_steps = config.batch_size, config.num_steps
        self.epoch_size = ((len(data) // self.batch_size) - 1) // self.num_steps
        self.input_data, self.targets = ptb_producer(data, self.batch_size, self.num_steps, name=name)


def data_type():
    return tf.float16 if FLAGS.use_fp16 else tf.float32


class PTBModel(object):
    def __init__(self, is_training, config, input_):
        self._input = input_
        size, vocab_size = config.hidden_size, config.vocab_size

        def lstm_cell():
            if 'reuse' in inspect.getargspec(tf.contrib.rnn.BasicLSTMCell.__init__).args:
                return tf.contrib.rnn.BasicLSTMCell(size, forget_bias=0.0, state_is_tuple=True,
                                                    reuse=tf.get_variable_scope().reuse)
            return tf.contrib.rnn.BasicLSTMCell(size, forget_bias=0.0, state_is_tuple=True)
        attn_cell = lstm_cell
        if is_training and config.keep_prob < 1:
            def attn_cell():
                return tf.contrib.rnn.DropoutWrapper(lstm_cell(), output_keep_prob=config.keep_prob)
        cell = tf.contrib.rnn.MultiRNNCell([attn_cell() for _ in range(config.num_layers)], state_is_tuple=True)
        self._initial_state = cell.zero_state(config.batch_size, data_type())
        with tf.device("/cpu:0"):
            embedding = tf.get_variable("embedding", [vocab_size, size], dtype=data_type())
            inputs = tf.nn.embedding_lookup(embedding, input_.input_data)
        outputs, state = [], self._initial_state
        with tf.variable_scope("RNN"):
            for time_step in range(input_.num_steps):
                if time_step > 0:
                    tf.get_variable_scope().reuse_variables()
                (cell_output, state) = cell(inputs[:, time_step, :], state)
                outputs.append(cell_output)
        output = tf.reshape(tf.stack(axis=1, values=outputs), [-1, size])
        softmax_w = tf.get_variable("softmax_w", [size, vocab_size], dtype=data_type())
        softmax_b = tf.get_variable("softmax_b", [vocab_size], dtype=data_type())
        logits = tf.reshape(tf.nn.xw_plus_b(output, softmax_w, softmax_b), [input_.batch_size, input_.num_steps, vocab_size])
        loss = tf.contrib.seq2seq.sequence_loss(logits, input_.targets,
                                                tf.ones([input_.batch_size, input_.num_steps], dtype=data_type()),
                                                average_across_timesteps=False, average_across_batch=True)
        self._cost = cost = tf.reduce_sum(loss)
        self._final_state = state
        self.train_op = None
        if not is_training:
            return
        self._lr = tf.Variable(0.0, trainable=False)
        tvars = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(cost, tvars), config.max_grad_norm)
        optimizer = tf.train.GradientDescentOptimizer(self._lr)
        self.train_op = optimizer.apply_gradients(zip(grads, tvars), global_step=tf.contrib.framework.get_or_create_global_step())
        self._new_lr = tf.placeholder(tf.float32, shape=[], name="new_learning_rate")
        self._lr_update = tf.assign(self._lr, self._new_lr)

    def assign_lr(self, session, lr_value):
        session.run(self._lr_update, feed_dict={self._new_lr: lr_value})


def run_epoch(session, model, eval_op=None):
    start_time, costs, iters = time.time(), 0.0, 0
    state = session.run(model._initial_state)
    fetches = {"cost": model._cost, "final_state": model._final_state}
    if eval_op is not None:
        fetches["eval_op"] = eval_op
    for step in range(model._input.epoch_size):
        feed_dict = {}
        for i, (c, h) in enumerate(model._initial_state):
            feed_dict[c] = state[i].c
            feed_dict[h] = state[i].h
        vals = session.run(fetches, feed_dict)
        state = vals["final_state"]
        costs += vals["cost"]
        iters += model._input.num_steps
    assert time.time() >= start_time
    return np.exp(costs / iters)


def main(_):
    word_to_id = build_vocab(TEXT)
    train_data = [word_to_id[word] for word in TEXT]
    config, eval_config = SmallConfig(), SmallConfig()
    eval_config.batch_size, eval_config.num_steps = 1, 1
    config.vocab_size = eval_config.vocab_size = len(word_to_id)
    with tf.Graph().as_default():
        def initializer(shape, dtype=None, partition_info=None):
            return tf.constant(np.random.RandomState(shape[-1]).uniform(-.3, .3, shape), dtype)
        with tf.name_scope("Train"):
            train_input = PTBInput(config=config, data=train_data, name="TrainInput")
            with tf.variable_scope("Model", reuse=None, initializer=initializer):
                m = PTBModel(is_training=True, config=config, input_=train_input)
            tf.summary.scalar("Training Loss", m._cost)
            tf.summary.scalar("Learning Rate", m._lr)
        with tf.name_scope("Test"):
            test_input = PTBInput(config=eval_config, data=train_data[:30], name="TestInput")
            with tf.variable_scope("Model", reuse=True, initializer=initializer):
                mtest = PTBModel(is_training=False, config=eval_config, input_=test_input)
        sv = tf.train.Supervisor(logdir=None)
        with sv.managed_session() as session:
            for i in range(config.max_max_epoch):
                lr_decay = config.lr_decay ** max(i + 1 - config.max_epoch, 0.0)
                m.assign_lr(session, config.learning_rate * lr_decay)
                print("Epoch: %d Learning rate: %.3f" % (i + 1, session.run(m._lr)))
                print("Epoch: %d Train Perplexity: %.3f" % (i + 1, run_epoch(session, m, eval_op=m.train_op)))
            print("Test Perplexity: %.3f" % run_epoch(session, mtest))
        print([v.name for v in tf.trainable_variables()])
        print([op.name for op in tf.get_default_graph().get_operations() if op.type == "ScalarSummary"])


if __name__ == "__main__":
    tf.app.run()
