"""Calls of the functions of `tf.nn` that run cells over time, and of those that draw candidates."""

from class_calls import ClassCalls

CELLS = """
steps = tf.reshape(tf.cos(tf.range(24.0)), [2, 4, 3])
lengths = tf.constant([4, 2])
first = tf.constant([[0.5, -0.5], [0.25, 0.0]])
ones = tf.ones_initializer()
def cell():
    return tf.nn.rnn_cell.BasicRNNCell(2, tf.nn.softsign)
def build(make):
    with tf.variable_scope(None, "built", initializer=tf.constant_initializer(0.25)):
        return make()
def fed(time, output, state, loop_state):
    after = first if state is None else state
    done = time >= lengths
    return done, steps[:, tf.minimum(time, 3)], after, output, loop_state
class Saver:
    def state(self, name):
        return first
    def save_state(self, name, value):
        return tf.reduce_sum(value, name=name)
"""
RUNS = {
    "rnn_cell": "[tf.nn.rnn_cell.BasicRNNCell(3).output_size]",
    "bidirectional_dynamic_rnn": (
        "build(lambda: tf.nn.bidirectional_dynamic_rnn(cell(), cell(), steps, lengths, first, None,"
        " tf.float32,"
        " 4, False, False, 'a'))"
    ),
    "dynamic_rnn": (
        "[build(lambda: tf.nn.dynamic_rnn(cell(), steps, lengths, first, tf.float32, 4, False, False, 'a')),"
        " build(lambda: tf.nn.dynamic_rnn(cell(), steps, dtype=tf.float32, time_major=True))]"
    ),
    "raw_rnn": "build(lambda: [[a.stack(), s] for a, s, _ in [tf.nn.raw_rnn(cell(), fed, 4, False, 'a')]])",
    "static_bidirectional_rnn": (
        "build(lambda: tf.nn.static_bidirectional_rnn(cell(), cell(), tf.unstack(steps, axis=1), first, None,"
        " tf.float32, lengths, 'a'))"
    ),
    "static_rnn": (
        "[build(lambda: tf.nn.static_rnn(cell(), tf.unstack(steps, axis=1), first, tf.float32, lengths,"
        " 'a')),"
        " build(lambda: tf.nn.static_rnn(cell(), tf.unstack(steps), dtype=tf.float32))[1]]"
    ),
    "static_state_saving_rnn": (
        "build(lambda: tf.nn.static_state_saving_rnn(cell(), tf.unstack(steps, axis=1), Saver(), 's',"
        " lengths, 'a'))"
    ),
}
DRAWS = """
labels = tf.constant([[1, 2], [5, 0]], tf.int64)
matrix = tf.reshape(tf.cos(tf.range(24.0)), [8, 3])
bias = tf.range(8.0) / 8.0
inputs = tf.constant([[1.0, 0.5, -1.0], [0.0, 2.0, 0.25]])
chosen = tf.constant([7, 1, 3], tf.int64), tf.fill([2, 2], 0.5), tf.constant([0.25, 0.5, 0.75])
def drawn(sampled, below):
    found = run(sampled[0])
    within = bool((found >= 0).all() and (found < below).all())
    once = len(set(found.tolist())) == found.size
    return [found.dtype.name, list(found.shape), within, sampled[1], sampled[2].shape, once]
"""
CANDIDATES = {
    "all_candidate_sampler": (
        "[tf.sort(tf.nn.all_candidate_sampler(labels, 2, 8, True, 3, 'a')[0]),"
        " list(tf.nn.all_candidate_sampler(labels, 2, 8, True)[1:])]"
    ),
    "compute_accidental_hits": "list(tf.nn.compute_accidental_hits(labels, [5, 2, 7, 1], 2, 3, 'a'))",
    "fixed_unigram_candidate_sampler": (
        "drawn(tf.nn.fixed_unigram_candidate_sampler("
        "labels, 2, 50, False, 6, '', 0.5, 0, 1, 0, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, 'a'), 6)"
    ),
    "learned_unigram_candidate_sampler": (
        "[each for each in drawn(tf.nn.learned_unigram_candidate_sampler(labels, 2, 5, True, 8, 3, 'a'), 8)"
        " if not isinstance(each, tf.Tensor)]"
    ),
    "log_uniform_candidate_sampler": (
        "drawn(tf.nn.log_uniform_candidate_sampler(labels, 2, 50, False, 8, 3, 'a'), 8)"
    ),
    "nce_loss": (
        "[tf.nn.nce_loss(matrix, bias, labels, inputs, 3, 8, 2, chosen, False, 'mod', 'a'),"
        " tf.nn.nce_loss([matrix[:4], matrix[4:]], bias, labels, inputs, 3, 8, 2, chosen, True, 'div')]"
    ),
    "sampled_softmax_loss": (
        "[tf.nn.sampled_softmax_loss(matrix, bias, labels, inputs, 3, 8, 2, chosen, False, 'mod', 'a'),"
        " tf.nn.sampled_softmax_loss(matrix, bias, labels, inputs, 3, 8, 2, chosen)]"
    ),
    "uniform_candidate_sampler": (
        "[drawn(tf.nn.uniform_candidate_sampler(labels, 2, 50, False, 8, 3, 'a'), 8)]"
    ),
}
TABLES = [ClassCalls("tf.nn", CELLS, RUNS), ClassCalls("tf.nn", DRAWS, CANDIDATES)]
