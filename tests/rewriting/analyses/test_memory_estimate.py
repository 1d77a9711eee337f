"""Estimated memory: buffers, views, results in place, state, loops."""

from __future__ import annotations

import flowstone as tf
from flowstone.lowering.recurrences.lstm_kernels import layer_op
from flowstone.rewriting.analyses.memory_estimate import blocks_of, memory_profile, peak_memory, size_of
from flowstone.rewriting.simplification.partial_execution import prune

KB = 1000


def fed(name):
    """A fed matrix of 10 x 100; it counts for nothing."""
    return tf.placeholder(tf.float32, [10, 100], name=name)


def test_a_value_lives_from_its_node_to_its_last_use():
    x = fed("x")
    a = tf.matmul(x, x, transpose_b=True, name="a")  # 400 bytes
    b = tf.matmul(a, x, name="b")  # 4 kB
    c = tf.reduce_sum(b)  # 4 bytes
    assert memory_profile(prune([c], [], [x])) == [0, 400, 4400, 4 * KB, 4004]


def test_what_is_fetched_is_held_to_the_end():
    x = fed("x")
    a = tf.matmul(x, x, transpose_b=True)
    total = tf.reduce_sum(tf.matmul(a, a))
    profile = memory_profile(prune([a, total], [], [x]))
    assert profile[-1] == 400 + 400 + 4


def test_a_view_keeps_its_buffer_and_needs_none():
    x = fed("x")
    a = tf.matmul(x, x, transpose_a=True)  # 40 kB
    view = tf.reshape(a, [-1])[:5]
    total = tf.matmul(x, x, transpose_b=True)
    subgraph = prune([total, view], [], [x])
    assert peak_memory(subgraph) == 40 * KB + 400
    assert memory_profile(subgraph)[-1] == 40 * KB + 400


def test_an_elementwise_result_takes_over_a_dying_buffer():
    x = fed("x")
    a = tf.matmul(x, x, transpose_a=True)
    b = tf.tanh(a)
    assert peak_memory(prune([b], [], [x])) == 40 * KB
    assert peak_memory(prune([b, a], [], [x])) == 80 * KB
    assert peak_memory(prune([tf.cumsum(a)], [], [x])) == 80 * KB


def test_one_of_several_results_takes_over_a_dying_buffer(set_profile):
    set_profile(core_cache=100 * 100)
    logits = tf.matmul(fed("x"), fed("y"), transpose_a=True)  # 100 x 100: 40 kB
    labels = tf.placeholder(tf.int32, [100])
    loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    gradient = loss.op.inputs[0].op.outputs[1]
    feeds = [x.op.outputs[0] for x in (labels, *logits.op.inputs)]
    assert peak_memory(prune([loss, gradient], [], feeds)) == 40 * KB + 404
    assert peak_memory(prune([loss, gradient, logits], [], feeds)) == 80 * KB + 404


def test_state_constants_and_handles_need_none():
    v = tf.Variable(tf.zeros([100, 100]), name="v")
    w = tf.get_variable("w", [100, 100], use_resource=True)
    big = tf.constant(1.0, shape=[100, 100])
    assert [size_of(x) for x in (v._ref(), w.handle, big)] == [0, 0, 0]
    assert peak_memory(prune([tf.reduce_sum(v.value() + w + big)], [], [])) == 40 * KB + 4


def test_unknown_dimensions_are_assumed():
    x = tf.placeholder(tf.float32, [None, 10])
    assert size_of(x + 1) == 32 * 10 * 4
    assert size_of(tf.placeholder(tf.int64) + 1) == 1024 * 8
    assert size_of(tf.constant(["a", "b"])) == 0


def test_a_loop_is_one_block_that_holds_what_comes_in():
    x = fed("x")
    big = tf.matmul(x, x, transpose_a=True, name="big")
    _, last = tf.while_loop(
        lambda i, t: i < 3, lambda i, t: (i + 1, tf.reduce_sum(big) + t), (tf.constant(0), tf.constant(0.0))
    )
    after = tf.matmul(x, x, transpose_a=True)
    subgraph = prune([tf.reduce_sum(after) + last], [], [x])
    blocks = blocks_of(subgraph)
    loops = [block for block in blocks if len(block) > 1]
    assert len(loops) == 1 and {"Enter", "Merge", "Exit"} <= {node.type for node in loops[0]}
    assert sum(len(block) for block in blocks) == len(subgraph.nodes)
    profile = dict(zip(blocks, memory_profile(subgraph, blocks)))
    assert profile[loops[0]] >= 40 * KB
    assert 40 * KB <= peak_memory(subgraph) < 90 * KB


def test_what_a_layer_of_cells_saves_is_counted():
    x, h, c = (tf.placeholder(tf.float32, [2, 3]) for _ in range(3))
    weights, bias = tf.placeholder(tf.float32, [6, 12]), tf.placeholder(tf.float32, [12])
    for training, expected in ((True, 4 * (5 * 2 * (3 + 15 * 3) + 6 * 12)), (False, 0)):
        *outputs, _, saved = layer_op(
            [x] * 5, h, c, weights, bias, gates=[0, 1, 2, 3], training=training, name="layer"
        )
        assert size_of(saved) == expected and size_of(outputs[0][0]) == 2 * 3 * 4
