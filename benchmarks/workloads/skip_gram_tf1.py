"""skip_gram: a training step with noise-contrastive estimation; sparse gradients up to the update."""

from tf1 import tf  # isort: skip
from words import SkipGram, parameters

from measuring import median_seconds, report

model = SkipGram()
words, neighbours = model.words()
embedding, weights, bias = map(tf.Variable, parameters(model.shapes()).values())
x = tf.placeholder(tf.int64, [model.batch])
y = tf.placeholder(tf.int64, [model.batch, 1])
loss = tf.reduce_mean(
    tf.nn.nce_loss(
        weights=weights,
        biases=bias,
        labels=y,
        inputs=tf.nn.embedding_lookup(embedding, x),
        num_sampled=model.negatives,
        num_classes=model.vocabulary,
    )
)
train = tf.train.GradientDescentOptimizer(model.rate).minimize(loss)
session = tf.Session()
session.run(tf.global_variables_initializer())
feeds = {x: words, y: neighbours[:, None]}


def step():
    return session.run([train, loss], feeds)[1]


print("losses", *[step() for _ in range(5)])
report("step", median_seconds(step, 20) * 1e3, "ms")
