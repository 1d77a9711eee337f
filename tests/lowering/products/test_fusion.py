"""Fusions and grouped updates: graph text before and after, and equal results without them."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from agreement import agree
from flowstone.framework import flags
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.invariants import check
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune

RNG = np.random.default_rng(3)


def types(fetches, feeds, *names, targets=()):
    """The ops' types before and after only the passes of these names."""
    subgraph = prune(fetches, list(targets), feeds)
    before = [node.type for node in subgraph.nodes]
    run_passes(subgraph, EVERY, {p.name for p in EVERY} - set(names))
    check(subgraph)
    return before, [node.type for node in subgraph.nodes]


def text(fetches, feeds, *names):
    subgraph = prune(fetches, [], feeds)
    run_passes(subgraph, EVERY, {p.name for p in EVERY} - set(names))
    return str(subgraph).splitlines()


@pytest.mark.parametrize("add", [tf.add, tf.nn.bias_add, lambda x, b: b + x])
def test_a_product_takes_its_bias_and_rectifier(add):
    x, w, b = (
        tf.placeholder(tf.float32, dims, name=n) for n, dims in (("x", [4, 3]), ("w", [3, 2]), ("b", [2]))
    )
    y = tf.nn.relu(add(tf.matmul(x, w, name="xw"), b), name="y")
    assert text([y], [x, w, b], "fuse_biases") == [
        "%0 = _Arg() index=0 : float32[4,3]  # x",
        "%1 = _Arg() index=1 : float32[3,2]  # w",
        "%2 = _Arg() index=2 : float32[2]  # b",
        "%3 = _FusedMatMul(%0, %1, %2) activation='Relu' : float32[4,2]  # y",
        "return %3",
    ]


@pytest.mark.parametrize("add", [tf.add, tf.nn.bias_add, lambda x, b: b + x])
def test_a_product_of_sequences_takes_its_bias_and_rectifier(add):
    x, w, b = (
        tf.placeholder(tf.float32, dims, name=n) for n, dims in (("x", [6, 3]), ("w", [3, 2]), ("b", [2]))
    )
    y = tf.nn.relu(add(tf.reshape(tf.matmul(x, w), [2, 3, 2], name="rows"), b), name="y")
    lines = text([y], [x, w, b], "fuse_biases")
    assert "%4 = _FusedMatMul(%0, %1, %2) activation='Relu' : float32[6,2]  # y" in lines
    assert "%5 = Reshape(%4, %3) : float32[2,3,2]  # rows" in lines
    assert lines[-1] == "return %5"


def test_a_product_whose_columns_are_split_keeps_its_bias_apart():
    x, w = (tf.placeholder(tf.float32, dims) for dims in ([4, 3], [3, 6]))
    for shape, size, layout in (([4, 3, 2], 2, None), ([4, 6, 1], 6, "NCHW"), ([24], 24, None)):
        b = tf.placeholder(tf.float32, [size])
        view = tf.reshape(tf.matmul(x, w), shape)
        y = tf.nn.bias_add(view, b, layout) if layout else view + b
        before, after = types([y], [x, w, b], "fuse_biases")
        assert after == before


def test_a_view_that_others_take_stays():
    x, w, b = (tf.placeholder(tf.float32, dims) for dims in ([6, 3], [3, 2], [2]))
    view = tf.reshape(tf.matmul(x, w), [2, 3, 2])
    before, after = types([view + b, view], [x, w, b], "fuse_biases")
    assert after == before


def test_dense_layers_of_sequences_are_fused_and_agree(monkeypatch):
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [None, 5, 8])
    y = tf.layers.dense(tf.layers.dense(x, 16, tf.nn.relu), 3, tf.tanh)
    gradients = tf.gradients(y * y, [x, *tf.trainable_variables()])
    feed = {x: RNG.normal(size=[4, 5, 8]).astype("f")}
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [y, *gradients], feed, "fuse_biases", fires=4, setup=setup)


def test_a_product_or_a_sum_that_others_take_stays():
    x, w, b = (
        tf.placeholder(tf.float32, [4, 3]),
        tf.placeholder(tf.float32, [3, 2]),
        tf.placeholder(tf.float32, [2]),
    )
    product = tf.matmul(x, w)
    total = product + b
    rectified = tf.nn.relu(total)
    before, after = types([rectified, product], [x, w, b], "fuse_biases")
    assert after == before
    _, after = types([rectified, total], [x, w, b], "fuse_biases")
    assert after[3:] == ["_FusedMatMul", "Relu"]
    of_rows = types(
        [product + tf.placeholder_with_default(np.ones([4, 1], "f"), [4, 1])], [x, w], "fuse_biases"
    )
    assert of_rows[0] == of_rows[1]


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.01),
    "momentum": lambda: tf.train.MomentumOptimizer(0.01, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.05),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0, epsilon=1e-3),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.003, momentum=0.5),
    "centered rmsprop": lambda: tf.train.RMSPropOptimizer(0.003, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.05, l1_regularization_strength=1e-3),
    "proximal adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.05, l2_regularization_strength=1e-3),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.by_aten
def test_a_model_trains_the_same_without_the_passes(name, use_resource, dtype):
    inputs = RNG.normal(size=[16, 40]).astype(dtype.as_numpy_dtype)
    labels = np.eye(4, dtype=inputs.dtype)[RNG.integers(0, 4, 16)]
    trained = {}
    for disabled in ((), ("fuse_biases", "fuse_losses", "fuse_updates", "group_updates")):
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            x, y = tf.placeholder(dtype, [None, 40]), tf.placeholder(dtype, [None, 4])
            h = x
            for i, (rows, columns) in enumerate(((40, 30), (30, 20), (20, 4))):
                start = np.random.default_rng(i).normal(size=[rows, columns], scale=0.1)
                w = tf.get_variable(f"w{i}", initializer=tf.constant(start, dtype), use_resource=use_resource)
                b = tf.get_variable(
                    f"b{i}", initializer=tf.zeros([columns], dtype), use_resource=use_resource
                )
                h = tf.matmul(h, w) + b
                h = tf.nn.relu(h) if i < 2 else h
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=h))
            train = OPTIMIZERS[name]().minimize(loss)
            with tf.Session() as session:
                without = flags.ROUNDING_PASSES.union(disabled)
                session.planner.options = session.planner.options._replace(disabled_passes=without)
                session.run(tf.global_variables_initializer())
                losses = [session.run([train, loss], {x: inputs, y: labels})[1] for _ in range(12)]
                used = session.explain([train, loss], {x: inputs, y: labels})
                updates = "ApplyProduct" if name == "sgd" else "_Grouped"
                assert (updates in used) == (not disabled) and ("_FusedMatMul" in used) == (not disabled)
                trained[bool(disabled)] = losses, session.run(tf.global_variables())
    tolerance = 1e-5 if dtype is tf.float32 else 1e-12
    for fused, plain in zip((trained[False][0], *trained[False][1]), (trained[True][0], *trained[True][1])):
        np.testing.assert_allclose(fused, plain, rtol=tolerance, atol=tolerance)
    if name != "ftrl":  # whose first steps forget where the weights started
        assert trained[False][0][-1] < trained[False][0][0]


@pytest.mark.parametrize("activation", [tf.tanh, tf.sigmoid])
def test_a_product_takes_its_activation(activation):
    x, w = tf.placeholder(tf.float32, [64, 128]), tf.placeholder(tf.float32, [128, 96])
    b = tf.placeholder(tf.float32, [96])
    y = activation(tf.matmul(x, w) + b)
    assert "_FusedMatMul" in text([y], [x, w, b], "fuse_biases")[3]
    feed = {p: RNG.standard_normal(p.shape.as_list()) * 0.1 for p in (x, w, b)}
    with tf.Session() as s:
        plain = s.run([y, y.op.inputs[0]], feed)[0]
        np.testing.assert_allclose(s.run(y, feed), plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("add", [tf.add, lambda a, b: tf.add(b, a), lambda a, b: tf.add_n([a, b])])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
@pytest.mark.by_aten
def test_a_product_is_added_to_a_matrix(monkeypatch, add, transposed):
    shapes = [[7, 70] if transposed[0] else [70, 7], [36, 7] if transposed[1] else [7, 36], [70, 36]]
    x, w, y = (tf.placeholder(tf.float32, dims) for dims in shapes)
    total = add(tf.matmul(x, w, *transposed), tf.square(y))
    assert types([total], [x, w, y], "fuse_biases")[1].count("_AddedMatMul") == 1
    both = add(tf.matmul(x, tf.abs(w), *transposed), y)  # which is fed, and stays as it is
    feed = {z: RNG.normal(size=dims) for z, dims in zip((x, w, y), shapes)}
    active = [tf.tanh(add(tf.matmul(x, f(w), *transposed), g)) for f, g in ((tf.exp, y), (tf.sin, tf.cos(y)))]
    fetches = [total, both, *active, y + 0.0]
    log = agree(monkeypatch, fetches, feed, "fuse_biases", fires=4, tolerance=1e-5)
    assert log.count("adds a product to a matrix") == 4 and "addmm_" in log


def test_narrow_and_low_products_are_not_added_to_matrices():
    narrow = tf.matmul(tf.placeholder(tf.float32, [64, 7]), tf.placeholder(tf.float32, [7, 3]))
    low = tf.matmul(tf.placeholder(tf.float32, [8, 7]), tf.placeholder(tf.float32, [7, 50]))
    added = [narrow + tf.placeholder(tf.float32, [64, 3]), low + tf.placeholder(tf.float32, [8, 50])]
    feeds = [op.outputs[0] for op in tf.get_default_graph().get_operations() if op.type == "Placeholder"]
    assert "_AddedMatMul" not in types(added, feeds, "fuse_biases")[1]
