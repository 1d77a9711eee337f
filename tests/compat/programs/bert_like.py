"""Modelling and optimisation of the kind of BERT: TPUEstimator on a CPU, weight decay, warm start by a map of names."""
from __future__ import absolute_import, division, print_function
import collections
import copy
import json
import math
import os
import re
import tempfile

import numpy as np
import six
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
flags = tf.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("init_checkpoint", None, "Initial checkpoint (usually from a pre-trained model).")
flags.DEFINE_integer("train_batch_size", 4, "Total batch size for training.")
flags.DEFINE_bool("use_tpu", False, "Whether to use TPU or GPU/CPU.")
tf.flags.DEFINE_string("master", None, "[Optional] TensorFlow master URL.")


class BertConfig(object):
    def __init__(self, vocab_size, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
                 hidden_act="gelu", max_position_embeddings=16, type_vocab_size=2, initializer_range=0.02):
        self.__dict__.update(locals())
        del self.__dict__["self"]

    @classmethod
    def from_dict(cls, json_object):
        config = BertConfig(vocab_size=None)
        for (key, value) in six.iteritems(json_object):
            config.__dict__[key] = value
        return config

    def to_json_string(self):
        return json.dumps(copy.deepcopy(self.__dict__), indent=2, sort_keys=True) + "\n"


def gelu(input_tensor):
    cdf = 0.5 * (1.0 + tf.erf(input_tensor / tf.sqrt(2.0)))
    return input_tensor * cdf


def get_activation(activation_string):
    if not isinstance(activation_string, six.string_types):
        return activation_string
    return {"linear": None, "relu": tf.nn.relu, "gelu": gelu, "tanh": tf.tanh}[activation_string.lower()]


def get_shape_list(tensor, expected_rank=None):
    shape = tensor.shape.as_list()
    non_static_indexes = [index for (index, dim) in enumerate(shape) if dim is None]
    if not non_static_indexes:
        return shape
    dyn_shape = tf.shape(tensor)
    for index in non_static_indexes:
        shape[index] = dyn_shape[index]
    return shape


def create_initializer(initializer_range=0.02):
    return tf.truncated_normal_initializer(stddev=initializer_range)


def layer_norm(input_tensor, name=None):
    return tf.contrib.layers.layer_norm(inputs=input_tensor, begin_norm_axis=-1, begin_params_axis=-1, scope=name)


def embedding_postprocessor(input_tensor, token_type_ids, config):
    batch_size, seq_length, width = get_shape_list(input_tensor, expected_rank=3)
    token_type_table = tf.get_variable("token_type_embeddings", [config.type_vocab_size, width],
                                       initializer=create_initializer(config.initializer_range))
    one_hot_ids = tf.one_hot(tf.reshape(token_type_ids, [-1]), depth=config.type_vocab_size)
    output = input_tensor + tf.reshape(tf.matmul(one_hot_ids, token_type_table), [batch_size, seq_length, width])
    assert_op = tf.assert_less_equal(seq_length, config.max_position_embeddings)
    with tf.control_dependencies([assert_op]):
        full_position_embeddings = tf.get_variable("position_embeddings", [config.max_position_embeddings, width],
                                                   initializer=create_initializer(config.initializer_range))
        position_embeddings = tf.slice(full_position_embeddings, [0, 0], [seq_length, -1])
        output += tf.reshape(position_embeddings, [1] * (len(output.shape.as_list()) - 2) + [seq_length, width])
    return tf.nn.dropout(layer_norm(output), 1.0)


def attention_layer(tensor, mask, config, batch_size, seq_length):
    size = config.hidden_size // config.num_attention_heads

    def project(name):
        out = tf.layers.dense(tensor, config.hidden_size, name=name, kernel_initializer=create_initializer())
        return tf.transpose(tf.reshape(out, [batch_size, seq_length, config.num_attention_heads, size]), [0, 2, 1, 3])
    query, key, value = project("query"), project("key"), project("value")
    scores = tf.multiply(tf.matmul(query, key, transpose_b=True), 1.0 / math.sqrt(float(size)))
    scores += (1.0 - tf.cast(tf.expand_dims(mask, axis=[1]), tf.float32)) * -10000.0
    context = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    return tf.reshape(context, [batch_size * seq_length, config.hidden_size])


class BertModel(object):
    def __init__(self, config, is_training, input_ids, input_mask, token_type_ids, scope=None):
        batch_size, seq_length = get_shape_list(input_ids, expected_rank=2)
        with tf.variable_scope(scope, default_name="bert"):
            with tf.variable_scope("embeddings"):
                self.embedding_table = tf.get_variable("word_embeddings", [config.vocab_size, config.hidden_size],
                                                       initializer=create_initializer(config.initializer_range))
                embedded = tf.gather(self.embedding_table, tf.reshape(tf.expand_dims(input_ids, axis=[-1]), [-1]))
                embedded = tf.reshape(embedded, [batch_size, seq_length, config.hidden_size])
                output = embedding_postprocessor(embedded, token_type_ids, config)
            with tf.variable_scope("encoder"):
                to_mask = tf.cast(tf.reshape(input_mask, [batch_size, 1, seq_length]), tf.float32)
                mask = tf.ones(shape=[batch_size, seq_length, 1], dtype=tf.float32) * to_mask
                prev_output = tf.reshape(output, [-1, config.hidden_size])
                for layer_idx in range(config.num_hidden_layers):
                    with tf.variable_scope("layer_%d" % layer_idx):
                        with tf.variable_scope("attention"):
                            with tf.variable_scope("self"):
                                head = attention_layer(prev_output, mask, config, batch_size, seq_length)
                            with tf.variable_scope("output"):
                                head = tf.layers.dense(head, config.hidden_size, kernel_initializer=create_initializer())
                                head = layer_norm(head + prev_output)
                        with tf.variable_scope("intermediate"):
                            intermediate = tf.layers.dense(head, config.intermediate_size, get_activation(config.hidden_act),
                                                           kernel_initializer=create_initializer())
                        with tf.variable_scope("output"):
                            out = tf.layers.dense(intermediate, config.hidden_size, kernel_initializer=create_initializer())
                            prev_output = layer_norm(out + head)
                self.sequence_output = tf.reshape(prev_output, [batch_size, seq_length, config.hidden_size])
            with tf.variable_scope("pooler"):
                first = tf.squeeze(self.sequence_output[:, 0:1, :], axis=1)
                self.pooled_output = tf.layers.dense(first, config.hidden_size, activation=tf.tanh,
                                                     kernel_initializer=create_initializer(config.initializer_range))


def get_assignment_map_from_checkpoint(tvars, init_checkpoint):
    name_to_variable = collections.OrderedDict()
    for var in tvars:
        m = re.match("^(.*):\\d+$", var.name)
        name_to_variable[m.group(1) if m is not None else var.name] = var
    assignment_map = collections.OrderedDict()
    initialized_variable_names = {}
    for name, _ in tf.train.list_variables(init_checkpoint):
        if name not in name_to_variable:
            continue
        assignment_map[name] = name
        initialized_variable_names[name] = 1
        initialized_variable_names[name + ":0"] = 1
    return assignment_map, initialized_variable_names


class AdamWeightDecayOptimizer(tf.train.Optimizer):
    def __init__(self, learning_rate, weight_decay_rate=0.0, beta_1=0.9, beta_2=0.999, epsilon=1e-6,
                 exclude_from_weight_decay=None, name="AdamWeightDecayOptimizer"):
        super(AdamWeightDecayOptimizer, self).__init__(False, name)
        self.learning_rate, self.weight_decay_rate = learning_rate, weight_decay_rate
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self.exclude_from_weight_decay = exclude_from_weight_decay

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        assignments = []
        for (grad, param) in grads_and_vars:
            if grad is None or param is None:
                continue
            param_name = re.match("^(.*):\\d+$", param.name).group(1)
            m = tf.get_variable(name=param_name + "/adam_m", shape=param.shape.as_list(), dtype=tf.float32,
                                trainable=False, initializer=tf.zeros_initializer())
            v = tf.get_variable(name=param_name + "/adam_v", shape=param.shape.as_list(), dtype=tf.float32,
                                trainable=False, initializer=tf.zeros_initializer())
            next_m = tf.multiply(self.beta_1, m) + tf.multiply(1.0 - self.beta_1, grad)
            next_v = tf.multiply(self.beta_2, v) + tf.multiply(1.0 - self.beta_2, tf.square(grad))
            update = next_m / (tf.sqrt(next_v) + self.epsilon)
            if self.weight_decay_rate and not any(re.search(r, param_name) for r in self.exclude_from_weight_decay or []):
                update += self.weight_decay_rate * param
            next_param = param - self.learning_rate * update
            assignments.extend([param.assign(next_param), m.assign(next_m), v.assign(next_v)])
        return tf.group(*assignments, name=name)


def create_optimizer(loss, init_lr, num_train_steps, num_warmup_steps, use_tpu):
    global_step = tf.train.get_or_create_global_step()
    learning_rate = tf.constant(value=init_lr, shape=[], dtype=tf.float32)
    learning_rate = tf.train.polynomial_decay(learning_rate, global_step, num_train_steps, end_learning_rate=0.0,
                                              power=1.0, cycle=False)
    if num_warmup_steps:
        global_steps_int = tf.cast(global_step, tf.int32)
        warmup_steps_int = tf.constant(num_warmup_steps, dtype=tf.int32)
        warmup_percent_done = tf.cast(global_steps_int, tf.float32) / tf.cast(warmup_steps_int, tf.float32)
        is_warmup = tf.cast(global_steps_int < warmup_steps_int, tf.float32)
        learning_rate = ((1.0 - is_warmup) * learning_rate + is_warmup * init_lr * warmup_percent_done)
    optimizer = AdamWeightDecayOptimizer(learning_rate, 0.01, exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"])
    if use_tpu:
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    tvars = tf.trainable_variables()
    grads, _ = tf.clip_by_global_norm(tf.gradients(loss, tvars), clip_norm=1.0)
    train_op = optimizer.apply_gradients(zip(grads, tvars), global_step=global_step)
    with tf.control_dependencies([train_op]):
        return tf.group(train_op, [global_step.assign(global_step + 1)])


def model_fn_builder(bert_config, num_labels, init_checkpoint):
    def model_fn(features, labels, mode, params):  # pylint: disable=unused-argument
        is_training = (mode == tf.estimator.ModeKeys.TRAIN)
        model = BertModel(bert_config, is_training, features["input_ids"], features["input_mask"], features["segment_ids"])
        label_ids = features["label_ids"]
        output_weights = tf.get_variable("output_weights", [num_labels, bert_config.hidden_size],
                                         initializer=tf.constant_initializer(.05))
        output_bias = tf.get_variable("output_bias", [num_labels], initializer=tf.zeros_initializer())
        with tf.variable_scope("loss"):
            logits = tf.nn.bias_add(tf.matmul(model.pooled_output, output_weights, transpose_b=True), output_bias)
            log_probs = tf.nn.log_softmax(logits, axis=-1)
            per_example_loss = -tf.reduce_sum(tf.one_hot(label_ids, depth=num_labels) * log_probs, axis=-1)
            loss = tf.reduce_mean(per_example_loss)
        tvars = tf.trainable_variables()
        scaffold_fn = None
        if init_checkpoint:
            assignment_map, names = get_assignment_map_from_checkpoint(tvars, init_checkpoint)
            tf.train.init_from_checkpoint(init_checkpoint, assignment_map)
            if is_training:
                print("from the checkpoint:", len(assignment_map), "of", len(tvars))
        if mode == tf.estimator.ModeKeys.TRAIN:
            train_op = create_optimizer(loss, 2e-3, 10, 2, FLAGS.use_tpu)
            return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op, scaffold_fn=scaffold_fn)
        if mode == tf.estimator.ModeKeys.EVAL:
            def metric_fn(per_example_loss, label_ids, logits):
                predictions = tf.argmax(logits, axis=-1, output_type=tf.int32)
                return {"eval_accuracy": tf.metrics.accuracy(label_ids, predictions),
                        "eval_loss": tf.metrics.mean(per_example_loss)}
            return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, loss=loss, scaffold_fn=scaffold_fn,
                                                   eval_metrics=(metric_fn, [per_example_loss, label_ids, logits]))
        return tf.contrib.tpu.TPUEstimatorSpec(mode=mode, predictions={"log_probs": log_probs}, scaffold_fn=scaffold_fn)
    return model_fn


def file_based_input_fn_builder(input_file, seq_length, is_training, drop_remainder):
    name_to_features = {"input_ids": tf.FixedLenFeature([seq_length], tf.int64),
                        "input_mask": tf.FixedLenFeature([seq_length], tf.int64),
                        "segment_ids": tf.FixedLenFeature([seq_length], tf.int64), "label_ids": tf.FixedLenFeature([], tf.int64)}

    def _decode_record(record, name_to_features):
        example = tf.parse_single_example(record, name_to_features)
        for name in list(example.keys()):
            t = example[name]
            if t.dtype == tf.int64:
                t = tf.to_int32(t)
            example[name] = t
        return example

    def input_fn(params):
        d = tf.data.TFRecordDataset(input_file)
        if is_training:
            d = d.repeat()
        return d.apply(tf.contrib.data.map_and_batch(lambda record: _decode_record(record, name_to_features),
                                                     batch_size=params["batch_size"], drop_remainder=drop_remainder))
    return input_fn


def main(_):
    folder = tempfile.mkdtemp()
    config = BertConfig.from_dict(json.loads(BertConfig(20).to_json_string()))
    rng = np.random.RandomState(0)
    with tf.Graph().as_default(), tf.Session() as sess:
        ids = tf.zeros([1, 6], tf.int32)
        BertModel(config, False, ids, ids, ids)
        sess.run(tf.global_variables_initializer())
        for v in tf.global_variables():
            if "LayerNorm" not in v.name:
                v.load(rng.normal(0, .2, v.shape.as_list()), sess)
        init_checkpoint = tf.train.Saver().save(sess, os.path.join(folder, "bert_model.ckpt"))
    print([name for name, _ in tf.train.list_variables(init_checkpoint)][:5])
    record = os.path.join(folder, "train.tf_record")
    with tf.python_io.TFRecordWriter(record) as writer:
        for i in range(12):
            values = rng.randint(3, 20, 6) * (np.arange(6) < 4 + i % 3)
            feature = collections.OrderedDict()
            create = lambda x: tf.train.Feature(int64_list=tf.train.Int64List(value=list(x)))
            feature["input_ids"], feature["input_mask"] = create(values), create((values > 0).astype(int))
            feature["segment_ids"], feature["label_ids"] = create(np.arange(6) // 3), create([int(values[0] > 10)])
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    run_config = tf.contrib.tpu.RunConfig(
        cluster=None, master=FLAGS.master, model_dir=os.path.join(folder, "out"), save_checkpoints_steps=100,
        tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=100, num_shards=8,
                                            per_host_input_for_training=tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2))
    estimator = tf.contrib.tpu.TPUEstimator(
        use_tpu=FLAGS.use_tpu, model_fn=model_fn_builder(config, 2, init_checkpoint), config=run_config,
        train_batch_size=FLAGS.train_batch_size, eval_batch_size=4, predict_batch_size=4)
    estimator.train(input_fn=file_based_input_fn_builder(record, 6, True, True), max_steps=10)
    result = estimator.evaluate(input_fn=file_based_input_fn_builder(record, 6, False, False), steps=3)
    for key in sorted(result.keys()):
        print("%s = %.4f" % (key, result[key]))
    rows = [p["log_probs"] for p in estimator.predict(file_based_input_fn_builder(record, 6, False, False))]
    print(len(rows), " ".join("%.4f" % v for v in rows[0]))


if __name__ == "__main__":
    tf.app.run()
