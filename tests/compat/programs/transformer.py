"""A transformer in the manner of the official models: layers as classes, padding masks, beam search as a loop."""
import math

import numpy as np
import tensorflow as tf

_NEG_INF = -1e9
EOS_ID = 1
PARAMS = dict(hidden_size=16, num_heads=4, filter_size=24, num_hidden_layers=2, vocab_size=12, attention_dropout=0.0,
              relu_dropout=0.0, layer_postprocess_dropout=0.0, label_smoothing=0.1, initializer_gain=1.0, beam_size=3,
              alpha=0.6, extra_decode_length=3, learning_rate=.2, learning_rate_warmup_steps=10,
              optimizer_adam_beta1=0.9, optimizer_adam_beta2=0.997, optimizer_adam_epsilon=1e-9)


def get_position_encoding(length, hidden_size, min_timescale=1.0, max_timescale=1.0e4):
    position = tf.to_float(tf.range(length))
    num_timescales = hidden_size // 2
    log_increment = math.log(float(max_timescale) / float(min_timescale)) / (tf.to_float(num_timescales) - 1)
    inv_timescales = min_timescale * tf.exp(tf.to_float(tf.range(num_timescales)) * -log_increment)
    scaled_time = tf.expand_dims(position, 1) * tf.expand_dims(inv_timescales, 0)
    return tf.concat([tf.sin(scaled_time), tf.cos(scaled_time)], axis=1)


def get_padding_bias(x):
    with tf.name_scope("attention_bias"):
        padding = tf.to_float(tf.equal(x, 0))
        return tf.expand_dims(tf.expand_dims(padding * _NEG_INF, axis=1), axis=1)


class LayerNormalization(tf.layers.Layer):
    def __init__(self, hidden_size):
        super(LayerNormalization, self).__init__()
        self.hidden_size = hidden_size

    def build(self, _):
        self.scale = tf.get_variable("layer_norm_scale", [self.hidden_size], initializer=tf.ones_initializer())
        self.bias = tf.get_variable("layer_norm_bias", [self.hidden_size], initializer=tf.zeros_initializer())
        self.built = True

    def call(self, x, epsilon=1e-6):
        mean = tf.reduce_mean(x, axis=[-1], keepdims=True)
        variance = tf.reduce_mean(tf.square(x - mean), axis=[-1], keepdims=True)
        return (x - mean) * tf.rsqrt(variance + epsilon) * self.scale + self.bias


class PrePostProcessingWrapper(object):
    def __init__(self, layer, params, train):
        self.layer, self.train = layer, train
        self.postprocess_dropout = params["layer_postprocess_dropout"]
        self.layer_norm = LayerNormalization(params["hidden_size"])

    def __call__(self, x, *args, **kwargs):
        y = self.layer(self.layer_norm(x), *args, **kwargs)
        if self.train:
            y = tf.nn.dropout(y, 1 - self.postprocess_dropout)
        return x + y


class Attention(tf.layers.Layer):
    def __init__(self, hidden_size, num_heads):
        if hidden_size % num_heads != 0:
            raise ValueError("Hidden size must be evenly divisible by the number of heads.")
        super(Attention, self).__init__()
        self.hidden_size, self.num_heads = hidden_size, num_heads
        self.q_dense_layer = tf.layers.Dense(hidden_size, use_bias=False, name="q")
        self.k_dense_layer = tf.layers.Dense(hidden_size, use_bias=False, name="k")
        self.v_dense_layer = tf.layers.Dense(hidden_size, use_bias=False, name="v")
        self.output_dense_layer = tf.layers.Dense(hidden_size, use_bias=False, name="output_transform")

    def split_heads(self, x):
        with tf.name_scope("split_heads"):
            batch_size, length = tf.shape(x)[0], tf.shape(x)[1]
            x = tf.reshape(x, [batch_size, length, self.num_heads, self.hidden_size // self.num_heads])
            return tf.transpose(x, [0, 2, 1, 3])

    def call(self, x, y, bias, cache=None):
        q, k, v = self.q_dense_layer(x), self.k_dense_layer(y), self.v_dense_layer(y)
        if cache is not None:
            k = tf.concat([cache["k"], k], axis=1)
            v = tf.concat([cache["v"], v], axis=1)
            cache["k"], cache["v"] = k, v
        q, k, v = self.split_heads(q), self.split_heads(k), self.split_heads(v)
        q *= (self.hidden_size // self.num_heads) ** -0.5
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) + bias, name="attention_weights")
        output = tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3])
        output = tf.reshape(output, [tf.shape(x)[0], tf.shape(x)[1], self.hidden_size])
        return self.output_dense_layer(output)


class FeedForwardNetwork(tf.layers.Layer):
    def __init__(self, hidden_size, filter_size):
        super(FeedForwardNetwork, self).__init__()
        self.filter_dense_layer = tf.layers.Dense(filter_size, use_bias=True, activation=tf.nn.relu, name="filter_layer")
        self.output_dense_layer = tf.layers.Dense(hidden_size, use_bias=True, name="output_layer")

    def call(self, x):
        return self.output_dense_layer(self.filter_dense_layer(x))


class Stack(tf.layers.Layer):
    def __init__(self, params, train, decoder):
        super(Stack, self).__init__()
        self._blocks, self.decoder = [], decoder
        wrap = lambda layer: PrePostProcessingWrapper(layer, params, train)
        for _ in range(params["num_hidden_layers"]):
            block = [wrap(Attention(params["hidden_size"], params["num_heads"]))]
            if decoder:
                block.append(wrap(Attention(params["hidden_size"], params["num_heads"])))
            block.append(wrap(FeedForwardNetwork(params["hidden_size"], params["filter_size"])))
            self._blocks.append(block)
        self.output_normalization = LayerNormalization(params["hidden_size"])

    def call(self, x, bias, encoder_outputs=None, encoder_bias=None, cache=None):
        for n, block in enumerate(self._blocks):
            layer_name = "layer_%d" % n
            layer_cache = cache[layer_name] if cache is not None else None
            with tf.variable_scope(layer_name):
                with tf.variable_scope("self_attention"):
                    y = x if not self.decoder else block[0].layer_norm(x)
                    x = block[0](x, block[0].layer_norm(x), bias) if False else x + block[0].layer(
                        block[0].layer_norm(x), block[0].layer_norm(x), bias, cache=layer_cache)
                if self.decoder:
                    with tf.variable_scope("encdec_attention"):
                        x = block[1](x, encoder_outputs, encoder_bias)
                with tf.variable_scope("ffn"):
                    x = block[-1](x)
        return self.output_normalization(x)


class Transformer(object):
    def __init__(self, params, train):
        self.train, self.params = train, params
        self.encoder_stack, self.decoder_stack = Stack(params, train, False), Stack(params, train, True)

    def embed(self, x, scope="embedding_shared_weights"):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            self.shared = tf.get_variable("weights", [self.params["vocab_size"], self.params["hidden_size"]])
        mask = tf.to_float(tf.not_equal(x, 0))
        return tf.gather(self.shared, x) * tf.expand_dims(mask, -1) * self.params["hidden_size"] ** 0.5

    def linear(self, x):
        batch, length = tf.shape(x)[0], tf.shape(x)[1]
        logits = tf.matmul(tf.reshape(x, [-1, self.params["hidden_size"]]), self.shared, transpose_b=True)
        return tf.reshape(logits, [batch, length, self.params["vocab_size"]])

    def __call__(self, inputs, targets=None):
        initializer = tf.variance_scaling_initializer(self.params["initializer_gain"], mode="fan_avg", distribution="uniform")
        with tf.variable_scope("Transformer", initializer=initializer, reuse=tf.AUTO_REUSE):
            attention_bias = get_padding_bias(inputs)
            with tf.variable_scope("encode"):
                embedded = self.embed(inputs)
                encoder_inputs = embedded + get_position_encoding(tf.shape(embedded)[1], self.params["hidden_size"])
                encoder_outputs = self.encoder_stack(encoder_inputs, attention_bias)
            if targets is None:
                return self.predict(encoder_outputs, attention_bias)
            with tf.variable_scope("decode"):
                decoder_inputs = tf.pad(self.embed(targets, "embedding_shared"), [[0, 0], [1, 0], [0, 0]])[:, :-1, :]
                length = tf.shape(decoder_inputs)[1]
                decoder_inputs += get_position_encoding(length, self.params["hidden_size"])
                bias = _NEG_INF * (1.0 - tf.matrix_band_part(tf.ones([1, 1, length, length]), -1, 0))
                return self.linear(self.decoder_stack(decoder_inputs, bias, encoder_outputs, attention_bias))

    def predict(self, encoder_outputs, encoder_bias):
        batch_size, beam = tf.shape(encoder_outputs)[0], self.params["beam_size"]
        max_length = tf.shape(encoder_outputs)[1] + self.params["extra_decode_length"]
        timing = get_position_encoding(max_length + 1, self.params["hidden_size"])
        tile = lambda x: tf.reshape(tf.tile(x[:, None], [1, beam] + [1] * (x.shape.ndims - 1)),
                                    tf.concat([[batch_size * beam], tf.shape(x)[1:]], 0))
        outputs, bias = tile(encoder_outputs), tile(encoder_bias)
        hidden = self.params["hidden_size"]
        cache = {"layer_%d" % layer: {"k": tf.zeros([batch_size * beam, 0, hidden]), "v": tf.zeros([batch_size * beam, 0, hidden])}
                 for layer in range(self.params["num_hidden_layers"])}

        def cond(i, alive_seq, alive_log_probs, finished, cache):
            return tf.logical_and(tf.less(i, max_length), tf.logical_not(tf.reduce_all(finished)))

        def body(i, alive_seq, alive_log_probs, finished, cache):
            ids = tf.reshape(alive_seq[:, :, -1:], [batch_size * beam, 1])
            with tf.variable_scope("decode"):
                x = self.embed(ids, "embedding_shared") * tf.to_float(i > 0) + timing[i:i + 1]
                x = self.decoder_stack(x, tf.zeros([1, 1, 1, 1]), outputs, bias, cache)
                log_probs = tf.nn.log_softmax(tf.reshape(self.linear(x), [batch_size, beam, -1]))
            vocab = self.params["vocab_size"]
            only_pad = tf.one_hot(tf.zeros_like(finished, tf.int32), vocab, 0.0, _NEG_INF)
            log_probs = tf.where(tf.tile(finished[:, :, None], [1, 1, vocab]), only_pad, log_probs)
            scores = tf.reshape(alive_log_probs[:, :, None] + log_probs, [batch_size, -1])
            top, indices = tf.nn.top_k(scores, beam)
            parents, tokens = indices // vocab, indices % vocab
            rows = tf.tile(tf.range(batch_size)[:, None], [1, beam])
            coordinates = tf.stack([rows, parents], axis=2)
            alive_seq = tf.concat([tf.gather_nd(alive_seq, coordinates), tokens[:, :, None]], axis=2)
            finished = tf.logical_or(tf.gather_nd(finished, coordinates), tf.equal(tokens, EOS_ID))
            flat = tf.reshape(rows * beam + parents, [-1])
            cache = tf.contrib.framework.nest.map_structure(lambda c: tf.gather(c, flat), cache)
            return i + 1, alive_seq, top, finished, cache

        start_log_probs = tf.tile([[0.] + [-float("inf")] * (beam - 1)], [batch_size, 1])
        state = (tf.constant(0), tf.zeros([batch_size, beam, 1], tf.int32), start_log_probs,
                 tf.zeros([batch_size, beam], tf.bool), cache)
        invariants = (tf.TensorShape([]), tf.TensorShape([None, beam, None]), tf.TensorShape([None, beam]),
                      tf.TensorShape([None, beam]),
                      tf.contrib.framework.nest.map_structure(lambda c: tf.TensorShape([None, None, hidden]), cache))
        finish = tf.while_loop(cond, body, state, shape_invariants=invariants, parallel_iterations=1, back_prop=False)
        penalty = tf.pow((5. + tf.to_float(finish[0])) / 6., self.params["alpha"])
        return {"outputs": finish[1][:, :, 1:], "scores": finish[2] / penalty}


def get_learning_rate(learning_rate, hidden_size, learning_rate_warmup_steps):
    with tf.name_scope("learning_rate"):
        warmup_steps = tf.to_float(learning_rate_warmup_steps)
        step = tf.to_float(tf.train.get_or_create_global_step())
        learning_rate *= (hidden_size ** -0.5)
        learning_rate *= tf.minimum(1.0, step / warmup_steps)
        learning_rate *= tf.rsqrt(tf.maximum(step, warmup_steps))
        return learning_rate


def padded_cross_entropy_loss(logits, labels, smoothing, vocab_size):
    confidence = 1.0 - smoothing
    low_confidence = (1.0 - confidence) / tf.to_float(vocab_size - 1)
    soft_targets = tf.one_hot(tf.cast(labels, tf.int32), depth=vocab_size, on_value=confidence, off_value=low_confidence)
    xentropy = tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=soft_targets)
    normalizing = -(confidence * tf.log(confidence) + tf.to_float(vocab_size - 1) * low_confidence * tf.log(low_confidence + 1e-20))
    weights = tf.to_float(tf.not_equal(labels, 0))
    return tf.reduce_sum((xentropy - normalizing) * weights) / tf.reduce_sum(weights)


rng = np.random.RandomState(0)
source = np.array([[2, 3, 4, 5, 1, 0], [6, 7, 8, 1, 0, 0], [9, 10, 11, 2, 3, 1]], np.int32)
target = np.array([[5, 4, 3, 2, 1, 0], [8, 7, 6, 1, 0, 0], [3, 2, 11, 10, 9, 1]], np.int32)
inputs, targets = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, None])
model = Transformer(PARAMS, True)
logits = model(inputs, targets)
logits.set_shape([None, None, PARAMS["vocab_size"]])
loss = padded_cross_entropy_loss(logits, targets, PARAMS["label_smoothing"], PARAMS["vocab_size"])
learning_rate = get_learning_rate(PARAMS["learning_rate"], PARAMS["hidden_size"], PARAMS["learning_rate_warmup_steps"])
optimizer = tf.contrib.opt.LazyAdamOptimizer(learning_rate, beta1=0.9, beta2=0.997, epsilon=1e-9)
tvars = tf.trainable_variables()
gradients = optimizer.compute_gradients(loss, tvars, colocate_gradients_with_ops=True)
train_op = optimizer.apply_gradients(gradients, global_step=tf.train.get_or_create_global_step())
decoded = model(inputs)
print(len(tvars), len(tf.trainable_variables()))
for v in tvars[:4] + tvars[-3:]:
    print(v.name, v.shape)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for v in tvars:
        if "layer_norm" not in v.name:
            v.load(rng.uniform(-.4, .4, v.shape.as_list()), sess)
    for step in range(30):
        value, rate, _ = sess.run([loss, learning_rate, train_op], {inputs: source, targets: target})
        if step % 6 == 0:
            print("step %d loss %.3f rate %.5f" % (step, value, rate))
    result = sess.run(decoded, {inputs: source})
    print(result["outputs"][:, 0].tolist(), " ".join("%.2f" % s for s in result["scores"][:, 0]))
