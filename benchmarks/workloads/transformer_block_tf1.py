"""transformer_block: the loss alone (forward) and a training step of one block."""

from tf1 import tf  # isort: skip
from words import TransformerBlock, parameters

from measuring import median_seconds, report

model = TransformerBlock()
inputs, targets = model.sequences()
p = {name: tf.Variable(value) for name, value in parameters(model.shapes()).items()}
width = model.units // model.heads


def dense(x, name):
    return tf.nn.bias_add(tf.matmul(x, p[name]), p[f"{name}_bias"])


def normalised(x, i):
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return (x - mean) * tf.rsqrt(variance + model.epsilon) * p[f"scale{i}"] + p[f"offset{i}"]


def attended(x):
    joint = tf.reshape(dense(x, "joint"), [model.batch, model.steps, 3, model.heads, width])
    queries, keys, values = tf.unstack(tf.transpose(joint, [2, 0, 3, 1, 4]))
    scores = tf.matmul(queries, keys, transpose_b=True) * width**-0.5
    found = tf.transpose(tf.matmul(tf.nn.softmax(scores), values), [0, 2, 1, 3])
    return dense(tf.reshape(found, [-1, model.units]), "projection")


x = tf.placeholder(tf.float32, [model.batch, model.steps, model.units])
y = tf.placeholder(tf.float32, [model.batch, model.steps, model.units])
rows = tf.reshape(x, [-1, model.units])
rows = normalised(rows + attended(rows), 1)
rows = normalised(rows + dense(tf.nn.relu(dense(rows, "hidden")), "output"), 2)
loss = tf.reduce_mean(tf.squared_difference(rows, tf.reshape(y, [-1, model.units])))
train = tf.train.GradientDescentOptimizer(model.rate).minimize(loss)
session = tf.Session()
session.run(tf.global_variables_initializer())


def forward():
    return session.run(loss, {x: inputs, y: targets})


def step():
    return session.run([train, loss], {x: inputs, y: targets})[1]


print("losses", forward(), *[step() for _ in range(3)])
report("forward", median_seconds(forward, 3) * 1e3, "ms")
report("step", median_seconds(step, 3) * 1e3, "ms")
