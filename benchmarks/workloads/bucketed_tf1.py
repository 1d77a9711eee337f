"""bucketed: a training step of the small language model, whose sentences have one of twenty lengths.

Steps of all lengths come in random order, again and again. Each is compared with the step of a program that
has this length alone: the same graph in a session of its own. The two take turns, so that whatever else the
machine does is the same to both; before a step is timed, its session runs one, of another length or of the
only one. What steps take before lengths have plans of their own is told for the first three passes over all
lengths.
"""

import os
import random
import statistics
import time

from tf1 import tf  # isort: skip
from shapes import BUCKETS, SENTENCES, VOCABULARY, bucketed_words

from measuring import SECONDS, once, report

UNITS, PASSES = 200, 500  # at most so many over all lengths before steps are timed


def variable(name, shape):
    return tf.get_variable(name, shape, initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=1))


def training_step():
    """The feeds, and [update, loss]: gradient descent, gradients clipped by their global norm."""
    words = tf.placeholder(tf.int32, [SENTENCES, None])
    targets = tf.placeholder(tf.int32, [SENTENCES, None])
    embedded = tf.nn.embedding_lookup(variable("embedding", [VOCABULARY, UNITS]), words)
    cell = tf.nn.rnn_cell.BasicLSTMCell(UNITS, forget_bias=0.0)
    outputs, _ = tf.nn.dynamic_rnn(cell, embedded, dtype=tf.float32)
    logits = tf.matmul(tf.reshape(outputs, [-1, UNITS]), variable("softmax_weights", [UNITS, VOCABULARY]))
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.reshape(targets, [-1]), logits=logits + variable("softmax_bias", [VOCABULARY])
        )
    )
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(gradients, variables))
    return (words, targets), [train, loss]


(words, targets), fetches = training_step()
initializer = tf.global_variables_initializer()
values = {length: bucketed_words(length) for length in BUCKETS}


def new_session():
    session = tf.Session()
    session.run(initializer)
    return session


def step(session, length):
    x, y = values[length]
    return lambda: session.run(fetches, {words: x, targets: y})


def is_settled(session):
    """Whether all lengths have plans of their own; waits for what is planned in the background. True of a
    session that does not tell."""
    planner = getattr(session, "planner", None)
    if planner is None:
        return True
    planner.wait()
    of_steps = [plans for plans in planner.plans_by_shape.values() if plans.is_special(shapes(BUCKETS[0]))]
    return any(all(plans.is_special(shapes(length)) for length in BUCKETS) for plans in of_steps)


def shapes(length):
    return tuple(value.shape for value in values[length])


all_lengths = new_session()
order = random.Random(0)
passes = []
while len(passes) < 4 or (len(passes) < PASSES and not is_settled(all_lengths)):
    begun = time.perf_counter()
    for length in order.sample(BUCKETS, len(BUCKETS)):
        step(all_lengths, length)()
    passes.append((time.perf_counter() - begun) / len(BUCKETS))

alone, among = {}, {}
for length in order.sample(BUCKETS, len(BUCKETS)):
    session = new_session()
    only, one_of_many = step(session, length), step(all_lengths, length)
    times = {only: [], one_of_many: []}
    for _ in range(3):
        only()
    while sum(times[only]) < SECONDS / 8 or len(times[only]) < 5:
        others = [other for other in BUCKETS if other != length]
        for timed, before in ((only, only), (one_of_many, step(all_lengths, order.choice(others)))):
            before()
            times[timed].append(once(timed))
    alone[length], among[length] = statistics.median(times[only]), statistics.median(times[one_of_many])
    session.close()

for name, seconds in zip(("first", "second", "third"), passes):
    report(f"step, {name} pass over all lengths", seconds * 1e3, "ms")
ratios = [among[length] / alone[length] for length in BUCKETS]
report("step, mean over lengths", statistics.mean(among.values()) * 1e3, "ms")
report("step of one length alone, mean", statistics.mean(alone.values()) * 1e3, "ms")
report("largest ratio of a length", max(ratios), "x")
report("median ratio of the lengths", statistics.median(ratios), "x")
if os.environ.get("VARIANT") == "each":
    for length, ratio in zip(BUCKETS, ratios):
        print(f"{length:3d} {alone[length] * 1e3:8.2f} {among[length] * 1e3:8.2f} {ratio:6.3f}")
