"""wide_and_deep: a training step with sparse rows, and the probabilities of a batch."""

from tf1 import tf  # isort: skip
from families import values, wide_and_deep_cases
from families_tf1 import optimiser, variables

from measuring import report, settled_seconds


def logits_of(model, p, wide, crossed, ids, numbers):
    columns = [tf.nn.embedding_lookup(p[f"table{i}"], ids[:, i]) for i in range(model.columns)]
    x = tf.concat([*columns, numbers], 1)
    for i in range(len(model.hidden) + 1):
        x = tf.matmul(tf.nn.relu(x) if i else x, p[f"deep{i}"]) + p[f"deep{i}_bias"]
    return x + tf.nn.embedding_lookup_sparse(wide, crossed, None, combiner="sum")


def measure(label, model):
    p = variables(values(model.shapes()))
    wide = tf.Variable(tf.zeros([model.buckets, 1]))
    rows, buckets, *rest = model.examples()
    crossed = tf.sparse_placeholder(tf.int64, [None, model.buckets])
    ids, numbers, labels = (tf.placeholder(value.dtype, [None, *value.shape[1:]]) for value in rest)
    logits = logits_of(model, p, wide, crossed, ids, numbers)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    linear = tf.train.FtrlOptimizer(model.rate).minimize(loss, var_list=[wide])
    deep = optimiser(model.optimiser, model.rate).minimize(loss, var_list=list(p.values()))
    train, probabilities = tf.group(linear, deep), tf.sigmoid(logits)
    ragged = tf.SparseTensorValue(model.places(rows), buckets, (model.batch, model.buckets))
    feeds = {crossed: ragged, ids: rest[0], numbers: rest[1]}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def step():
            return session.run([train, loss], {**feeds, labels: rest[2]})[1]

        def predict():
            return session.run(probabilities, feeds)

        print("losses" + label, *[step() for _ in range(3)])
        report("step" + label, settled_seconds(step) * 1e3, "ms")
        report("predict" + label, settled_seconds(predict) * 1e3, "ms")


for label, model in wide_and_deep_cases():
    with tf.Graph().as_default():
        measure(label, model)
