"""gru_language_model: a training step of one layer of gated recurrent units, unrolled over its time steps."""

from tf1 import tf  # isort: skip
from words import GRULanguageModel, parameters

from measuring import median_seconds, report

model = GRULanguageModel()
words, next_words = model.words()
p = {name: tf.Variable(value) for name, value in parameters(model.shapes()).items()}


def cell(x, h):
    joined = tf.concat([x, h], 1)
    r, u = tf.split(tf.sigmoid(tf.matmul(joined, p["gates"]) + p["gates_bias"]), 2, 1)
    candidate = tf.tanh(tf.matmul(tf.concat([x, r * h], 1), p["candidate"]) + p["candidate_bias"])
    return u * h + (1 - u) * candidate


x = tf.placeholder(tf.int64, [model.batch, model.steps])
y = tf.placeholder(tf.int64, [model.batch, model.steps])
embedded = tf.nn.embedding_lookup(p["embedding"], x)
h = tf.zeros([model.batch, model.units])
outputs = []
for t in range(model.steps):
    h = cell(embedded[:, t, :], h)
    outputs.append(h)
logits = tf.matmul(tf.reshape(tf.concat(outputs, 1), [-1, model.units]), p["softmax"]) + p["softmax_bias"]
loss = tf.reduce_mean(
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits)
)
variables = tf.trainable_variables()
gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), model.norm)
train = tf.train.GradientDescentOptimizer(model.rate).apply_gradients(zip(gradients, variables))
session = tf.Session()
session.run(tf.global_variables_initializer())


def step():
    return session.run([train, loss], {x: words, y: next_words})[1]


print("losses", *[step() for _ in range(3)])
report("step", median_seconds(step, 3) * 1e3, "ms")
