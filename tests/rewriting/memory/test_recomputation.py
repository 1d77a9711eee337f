"""Recomputed activations: graph text before and after, what is never computed again, equal results."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.analyses.memory_estimate import peak_memory
from flowstone.rewriting.analyses.stashes import Stashes
from flowstone.rewriting.invariants import check
from flowstone.rewriting.memory import memory_schedule, recomputation
from flowstone.rewriting.memory.memory_schedule import lower_peak
from flowstone.rewriting.memory.recomputation import recompute_activations, recompute_hinted
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune

NO, MANUAL, HEURISTICS, RECOMPUTATION, SCHEDULING = 1, 2, 3, 5, 6


@pytest.fixture(autouse=True)
def settings(monkeypatch) -> None:
    monkeypatch.setattr(recomputation, "WORTHWHILE", 0)
    monkeypatch.setattr(memory_schedule, "WORTHWHILE", 0)


def chain(length, rows=64, columns=32, layer=None):
    """A fed matrix, `length` layers with weights of their own, the mean of squares."""
    x = tf.placeholder(tf.float32, [rows, columns], name="x")
    y = x
    for i in range(length):
        w = tf.get_variable(f"w{i}", [columns, columns], initializer=tf.zeros_initializer())
        y = (layer or tf.tanh)(tf.matmul(y, w, name=f"product{i}"), name=f"layer{i}")
    return x, tf.reduce_mean(tf.square(y), name="loss")


def passed(fetches, feeds, targets=(), passes=("fold_constants", "apply_identities", "remove_unneeded")):
    subgraph = prune(fetches, list(targets), feeds)
    run_passes(subgraph, EVERY, {p.name for p in EVERY} - set(passes))
    lower_peak(subgraph)
    return subgraph


def session(memory_optimization):
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.memory_optimization = memory_optimization
    return tf.Session(config=config)


def test_text_before_and_after():
    x = tf.placeholder(tf.float32, [8, 4], name="x")
    y = x
    for i in range(4):
        y = tf.exp(tf.add(y, 1.0, name=f"sum{i}"), name=f"exp{i}")
    z = tf.reduce_sum(tf.reshape(y, [-1], name="flat"), name="z")
    subgraph = passed(tf.gradients(z, x), [x])
    before = str(subgraph).splitlines()
    peak = peak_memory(subgraph)
    recompute_activations(subgraph)
    check(subgraph)
    after = str(subgraph).splitlines()
    assert after[:-4] == before[:-2]
    assert after[-4:] == [
        "%15 = Add(%0, %1) : float32[8,4]  # sum0/recomputed",
        "%16 = Exp(%15) : float32[8,4]  # exp0/recomputed",
        "%17 = Mul(%14, %16) : float32[8,4]  # gradients/exp0_grad/mul",
        "return %17",
    ]
    assert before[-2:] == ["%15 = Mul(%14, %3) : float32[8,4]  # gradients/exp0_grad/mul", "return %15"]
    assert peak_memory(subgraph) < peak


def test_deep_chains_need_about_the_square_root():
    """Memory of 36 layers: with one level of checkpoints about 2 x 6 activations instead of 36."""
    x, loss = chain(36, rows=400)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    subgraph = passed([], [x], [train.op if hasattr(train, "op") else train])
    one = 400 * 32 * 4
    before = peak_memory(subgraph)
    assert before > 36 * one
    recompute_activations(subgraph)
    check(subgraph)
    assert peak_memory(subgraph) < 16 * one
    products = [node.name for node in subgraph.nodes if node.type == "MatMul" and "recomputed" in node.name]
    assert 20 < len(products) < 36 and len(set(products)) == len(products)
    (reason,) = [entry[2] for entry in subgraph.log if entry[0] == "recompute_activations"]
    assert "nodes recomputed in" in reason and f"instead of {before:,}" in reason


def test_clones_run_before_the_first_gradient_that_takes_them():
    x, loss = chain(16)
    subgraph = passed(tf.gradients(loss, tf.trainable_variables()), [x])
    recompute_activations(subgraph)
    place = {node.name: i for i, node in enumerate(subgraph.nodes)}
    assert [node.order for node in subgraph.nodes] == list(range(len(subgraph.nodes)))
    consumers = {}
    for node in subgraph.nodes:
        for taken in node.inputs:
            consumers.setdefault(taken.op.name, []).append(node.name)
    clones = [name for name in place if name.endswith("/recomputed")]
    assert clones
    for name in clones:
        original = name.removesuffix("/recomputed")
        assert place[original] < place[consumers[name][0]]
        assert all(
            "gradients/" in consumer or consumer.endswith("/recomputed") for consumer in consumers[name]
        )
        assert not any("gradients/" in consumer for consumer in consumers.get(original, ()))


@pytest.mark.parametrize("kind", [RECOMPUTATION, HEURISTICS])
def test_training_steps_are_equal_bit_for_bit(kind):
    """Convolutions, pooling, normalisation over the batch, dropout, momentum."""
    x = tf.placeholder(tf.float32, [8, 24, 24, 3])
    y = x
    for i in range(6):
        w = tf.get_variable(f"w{i}", [3, 3, int(y.shape[3]), 8])
        y = tf.nn.conv2d(y, w, [1, 1, 1, 1], "SAME")
        mean, variance = tf.nn.moments(y, [0, 1, 2])
        y = tf.nn.relu(tf.nn.batch_normalization(y, mean, variance, None, None, 1e-3))
        y = tf.nn.dropout(y, 0.8, seed=i)
        if i % 2:
            y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
    loss = tf.reduce_mean(tf.square(y - 0.3))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    variables = tf.global_variables()
    random = np.random.default_rng(0)
    initial = [random.normal(size=v.shape).astype(np.float32) / 5 for v in variables]
    values = random.random((8, 24, 24, 3), np.float32)
    results = []
    for option in (NO, kind):
        with session(option) as sess:
            for v, value in zip(variables, initial):
                v.load(value, sess)
            losses = [sess.run([train, loss], {x: values})[1] for _ in range(3)]
            results.append([*losses, *sess.run(variables)])
            text = sess.explain([train, loss], [x])
    assert "recompute_activations: the step" in text and "/recomputed" in text
    assert "RandomUniform/recomputed" not in text
    for without, with_it in zip(*results):
        np.testing.assert_array_equal(without, with_it)


def test_recurrent_steps_are_equal_bit_for_bit():
    x = tf.placeholder(tf.float32, [4, 20, 16])
    cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(16) for _ in range(2)])
    outputs, _ = tf.nn.static_rnn(cells, tf.unstack(x, axis=1), dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.stack(outputs)))
    variables = tf.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.01)
    train = tf.train.AdamOptimizer().apply_gradients(zip(gradients, variables))
    random = np.random.default_rng(0)
    initial = [random.normal(size=v.shape).astype(np.float32) / 5 for v in variables]
    values = random.random((4, 20, 16), np.float32)
    results = []
    for option in (NO, RECOMPUTATION):
        with session(option) as sess:
            sess.run(tf.global_variables_initializer())
            for v, value in zip(variables, initial):
                v.load(value, sess)
            found = [sess.run([loss, norm, train], {x: values})[:2] for _ in range(3)]
            results.append([*np.ravel(found), *sess.run(variables)])
            text = sess.explain([loss, norm, train], [x])
    assert "recompute_activations: the step" in text
    for without, with_it in zip(*results):
        np.testing.assert_array_equal(without, with_it)


@pytest.mark.needs_onednn
def test_layers_of_cells_whose_activations_are_to_be_computed_again_stay_cells():
    x = tf.placeholder(tf.float32, [4, 20, 16])
    outputs, _ = tf.nn.static_rnn(tf.nn.rnn_cell.BasicLSTMCell(16), tf.unstack(x, axis=1), dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.stack(outputs)))
    fetches = [loss, *tf.gradients(loss, tf.trainable_variables())]
    values = np.random.default_rng(0).random((4, 20, 16), np.float32)
    found = []
    for option in (NO, RECOMPUTATION, HEURISTICS):
        with session(option) as sess:
            for v in tf.trainable_variables():
                v.load(np.linspace(-1, 1, v.shape.num_elements(), dtype="f").reshape(v.shape), sess)
            found.append(sess.run(fetches, {x: values}))
            text = sess.explain(fetches, [x])
            assert ("join_lstm_layers:" in text) == (option == NO)
    for each in found[1:]:
        for a, b in zip(each, found[0]):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("use_resource", [False, True])
def test_what_reads_a_state_that_changes_in_between_is_kept(use_resource):
    """The scale of each layer changes after the forward part: the old activations are those that count."""
    x = tf.placeholder(tf.float32, [50, 20])
    scales, y = [], x
    for i in range(12):
        scale = tf.get_variable(f"scale{i}", initializer=1.0, use_resource=use_resource, trainable=False)
        scales.append(scale)
        y = tf.sin(y * scale.read_value() if use_resource else y * scale)
    loss = tf.reduce_sum(y)
    with tf.control_dependencies([loss]):
        changes = [scale.assign(5.0) for scale in scales]
    with tf.control_dependencies([c if isinstance(c, tf.Operation) else c.op for c in changes]):
        seed = tf.identity(1.0)
    gradient = tf.gradients(loss, x, grad_ys=seed)[0]
    values = np.linspace(0, 1, 1000, dtype=np.float32).reshape(50, 20)
    results = []
    for option in (NO, RECOMPUTATION):
        with session(option) as sess:
            sess.run(tf.global_variables_initializer())
            results.append(sess.run([gradient, loss], {x: values}))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]


def test_random_numbers_and_prints_run_once(capfd):
    x = tf.placeholder(tf.float32, [100, 20])
    y = x
    for i in range(24):
        y = tf.sin(tf.tanh(y) * 2.0)
        if i % 8 == 3:
            y = tf.Print(y + tf.random_normal([100, 20], seed=i), [tf.constant(i)], "layer ")
    gradient = tf.gradients(tf.reduce_sum(y), x)
    subgraph = passed(gradient, [x])
    recompute_activations(subgraph)
    check(subgraph)
    again = {node.type for node in subgraph.nodes if node.name.endswith("/recomputed")}
    assert {"Tanh", "Mul"} <= again and not again & {"RandomStandardNormal", "Print"}
    results = []
    for option in (NO, RECOMPUTATION):
        with session(option) as sess:
            results.append(sess.run(gradient, {x: np.ones((100, 20), np.float32) / 7}))
    np.testing.assert_array_equal(*results)
    assert capfd.readouterr().err.count("layer") == 6


def test_loops_and_conditionals_are_left_alone():
    x, loss = chain(8)
    branch = tf.cond(loss > 0, lambda: loss, lambda: -loss)
    looped = tf.while_loop(lambda i, t: i < 2, lambda i, t: (i + 1, t * 2.0), (0, loss))[1]
    for total in (branch, looped):
        subgraph = passed(tf.gradients(total, tf.trainable_variables()), [x])
        before = str(subgraph)
        recompute_activations(subgraph)
        assert str(subgraph) == before


def test_steps_without_gradients_are_left_alone():
    x, loss = chain(8)
    subgraph = passed([loss], [x])
    before = str(subgraph)
    recompute_activations(subgraph)
    assert str(subgraph) == before and Stashes(subgraph).found == []


def test_only_hinted_nodes_are_computed_again():
    def layer(y, name):
        y = tf.tanh(y, name=name)
        if not name.endswith("3"):
            y.op._set_attr("_recompute_hint", 1)
        return y

    x, loss = chain(12, layer=layer)
    gradients = tf.gradients(loss, tf.trainable_variables())
    subgraph = passed(gradients, [x])
    recompute_hinted(subgraph)
    check(subgraph)
    again = {node.name for node in subgraph.nodes if node.name.endswith("/recomputed")}
    assert all(name.startswith("layer") and "layer3" not in name for name in again)
    plain = passed(gradients, [x])
    for node in plain.nodes:
        node.attributes = {k: v for k, v in node.attributes.items() if k != "_recompute_hint"}
    before = str(plain)
    recompute_hinted(plain)
    assert str(plain) == before


def test_configuration_and_flag_choose_the_passes():
    x, loss = chain(12)
    gradients = tf.gradients(loss, tf.trainable_variables())
    wanted = {0: False, NO: False, MANUAL: False, HEURISTICS: True, RECOMPUTATION: True, SCHEDULING: False}
    for option, expected in wanted.items():
        with session(option) as sess:
            assert ("/recomputed" in sess.explain(gradients, [x])) is expected, option
    with session(NO) as sess:
        assert "schedule_memory" in sess.planner.options.disabled_passes
    assert flags.OPTIONAL_PASSES <= flags.DISABLED_PASSES


@pytest.mark.parametrize("much_else", [False, True])
def test_products_are_computed_again_only_where_the_step_does_much_else(much_else, monkeypatch):
    def layer(y, name):
        return tf.exp(tf.sin(tf.tanh(y)), name=name)

    monkeypatch.setattr(recomputation, "_LEAST_GAIN", 2.0)  # alone, these products give 1.5
    x, loss = chain(24, layer=layer)
    a, b = tf.placeholder(tf.float32, [32, 20_000]), tf.placeholder(tf.float32, [20_000, 32])
    if much_else:
        loss += tf.reduce_sum(tf.matmul(a, b))
    subgraph = passed([loss, tf.gradients(loss, x)[0]], [x, a, b])
    recompute_activations(subgraph)
    again = {node.type for node in subgraph.nodes if node.name.endswith("/recomputed")}
    assert "Exp" in again and ("MatMul" in again) is much_else


def test_products_of_few_rows_count_their_weights_way_from_memory():
    few, many = (tf.matmul(tf.placeholder(tf.float32, [n, 64]), tf.ones([64, 64])) for n in (1, 6400))
    of_few, of_many = recomputation._operations(few.op), recomputation._operations(many.op)
    assert of_many < 2 * 2 * 6400 * 64 * 64 and of_few > 15 * 2 * 64 * 64


def test_a_convolution_counts_its_channels_wherever_its_filter_has_them():
    x = tf.placeholder(tf.float32, [2, 8, 8, 3])
    y = tf.nn.conv2d(x, tf.Variable(tf.zeros([5, 5, 3, 16])), [1, 1, 1, 1], "SAME")
    z = tf.nn.depthwise_conv2d(y, tf.Variable(tf.zeros([3, 3, 16, 2])), [1, 1, 1, 1], "SAME")
    subgraph = prune([z], [], [x])
    counted = {node.type: recomputation._operations(node) for node in subgraph.nodes}
    assert counted["Conv2D"] == 2 * (2 * 8 * 8 * 16) * 5 * 5 * 3
    assert counted["DepthwiseConv2dNative"] == 2 * (2 * 8 * 8 * 32) * 3 * 3
    (node,) = [node for node in subgraph.nodes if node.type == "Conv2D"]
    node.inputs[1].dims = (16, 3, 5, 5)  # as `lay_out_filters` leaves it
    assert recomputation._operations(node) == counted["Conv2D"]
