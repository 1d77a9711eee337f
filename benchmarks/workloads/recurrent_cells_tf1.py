"""Cells other than the plain LSTM's: a training step and a forward pass by dynamic_rnn."""

from tf1 import tf  # isort: skip
from families import recurrence_cases, values
from families_tf1 import optimiser, variables

from measuring import report, settled_seconds


class Cell(tf.nn.rnn_cell.RNNCell):
    """Over given variables; the state is h, or (c, h)."""

    def __init__(self, model, p):
        super().__init__()
        self.model, self.p = model, p
        self.own = {"gru": self.gru, "basic": self.basic}.get(model.cell, self.lstm)

    @property
    def output_size(self):
        return self.model.state

    @property
    def state_size(self):
        if self.model.cell in ("gru", "basic"):
            return self.model.state
        return tf.nn.rnn_cell.LSTMStateTuple(self.model.units, self.model.state)

    def __call__(self, x, state, scope=None):
        return self.own(x, state)

    def basic(self, x, h):
        h = tf.tanh(tf.matmul(tf.concat([x, h], 1), self.p["kernel"]) + self.p["bias"])
        return h, h

    def gru(self, x, h):
        p = self.p
        gates = tf.sigmoid(tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), p["gates"]), p["gates_bias"]))
        r, u = tf.split(gates, 2, 1)
        candidate = tf.matmul(tf.concat([x, r * h], 1), p["candidate"])
        h = u * h + (1 - u) * tf.tanh(tf.nn.bias_add(candidate, p["candidate_bias"]))
        return h, h

    def lstm(self, x, state):
        p, (c, h) = self.p, state
        product = tf.matmul(tf.concat([x, h], 1), p["kernel"])
        if "bias" in p:
            product = tf.nn.bias_add(product, p["bias"])
        i, j, f, o = tf.split(product, 4, 1)
        if self.model.cell == "normalised":
            i, j, f, o = (self.normalised(gate, name) for gate, name in zip((i, j, f, o), "ijfo"))
        if self.model.cell == "peephole":
            i, f = i + p["w_i_diag"] * c, f + p["w_f_diag"] * c
        c = c * tf.sigmoid(f + 1) + tf.sigmoid(i) * tf.tanh(j)
        if self.model.cell == "peephole":
            o += p["w_o_diag"] * c
        if self.model.cell == "normalised":
            c = self.normalised(c, "c")
        h = tf.sigmoid(o) * tf.tanh(c)
        if self.model.cell == "projected":
            h = tf.matmul(h, p["projection"])
        return h, tf.nn.rnn_cell.LSTMStateTuple(c, h)

    def normalised(self, x, name):
        mean, variance = tf.nn.moments(x, [1], keep_dims=True)
        offset, scale = self.p[f"{name}_offset_bias"], self.p[f"{name}_scale"]
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-5)


def measure(label, model):
    p = variables(values(model.shapes(), model.dtype))
    fed = model.sequences()
    x, y, lengths = feeds = [tf.placeholder(value.dtype, value.shape) for value in fed]
    cell, known = Cell(model, p), lengths if model.lengths else None
    _, state = tf.nn.dynamic_rnn(cell, x, known, dtype=model.dtype)
    h = state if model.cell in ("gru", "basic") else state.h
    logits = tf.matmul(h, p["classes0"]) + p["classes0_bias"]
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = optimiser(model.optimiser, model.rate).minimize(loss)
    values_fed = dict(list(zip(feeds, fed))[: 3 if model.lengths else 2])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def step():
            return session.run([train, loss], values_fed)[1]

        def forward():
            return session.run(loss, values_fed)

        print("losses" + label, *[step() for _ in range(3)])
        report("step" + label, settled_seconds(step) * 1e3, "ms")
        report("forward" + label, settled_seconds(forward) * 1e3, "ms")


for label, model in recurrence_cases():
    with tf.Graph().as_default():
        measure(label, model)
