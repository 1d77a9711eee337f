"""Joined products: graph text before and after, equal results without the pass."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, entries, ops, text
from flowstone.framework import flags
from flowstone.lowering.products import joined_products

RNG = np.random.default_rng(7)
NAME = "join_products"
BEFORE = ("fold_constants", "apply_identities", "merge_common_subexpressions", "remove_unneeded")


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def steps(count: int = 4, *dims: int) -> list[Any]:
    return [tf.placeholder(tf.float32, list(dims or (2, 3)), name=f"x{i}") for i in range(count)]


def fed(placeholders: list[Any]) -> Any:
    return {x: values(*x.shape.as_list()) for x in placeholders}


def test_independent_products_by_one_matrix_are_one_product(monkeypatch) -> None:
    x, w = steps(), tf.placeholder(tf.float32, [3, 5], name="w")
    products = [tf.matmul(each, w, name=f"y{i}") for i, each in enumerate(x)]
    assert ops(text(products[1:], [*x, w], NAME)).count("MatMul") == 3
    lines = text([tf.tanh(products[1]), *products], [*x, w], NAME)
    assert [line.split("  #")[0] for line in lines[5:]] == [
        "%5 = Const() value=0 : int32[]",
        "%6 = Const() value=0 : int32[]",
        "%7 = ConcatV2(%0, %1, %2, %3, %6) : float32[8,3]",
        "%8 = MatMul(%7, %4) : float32[8,5]",
        "%9 = Split(%5, %8) num_split=4 : float32[2,5], float32[2,5], float32[2,5], float32[2,5]",
        "%10 = Tanh(%9:1) : float32[2,5]",
        "return %10, %9, %9:1, %9:2, %9:3",
    ]
    agree(monkeypatch, products, {**fed(x), w: values(3, 5)}, NAME, fires=4)


def recurrence(count: int, labels: Any) -> tuple[Any, list[Any], list[Any]]:
    """An unrolled network: its loss, inputs and gradients."""
    x = steps(count, 2, 4)
    weights = [tf.Variable(values(*dims)) for dims in ((4, 6), (6, 6), (6,), (6, 5), (5,))]
    wx, wh, b, wy, c = weights
    h: Any = tf.zeros([2, 6])
    losses = []
    for i, each in enumerate(x):
        h = tf.tanh(tf.matmul(each, wx) + tf.matmul(h, wh) + b)
        logits = tf.nn.relu(tf.matmul(h, wy) + c)
        losses.append(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels[:, i], logits=logits))
    return losses, x, weights


@pytest.mark.parametrize("total", ["pack", "add", "concatenate"])
def test_all_of_a_recurrent_network_that_does_not_recur(monkeypatch, total) -> None:
    labels = tf.constant(RNG.integers(0, 5, (2, 6)))
    losses, x, weights = recurrence(6, labels)
    if total == "pack":
        loss = tf.reduce_mean(losses)
    elif total == "add":
        loss = tf.reduce_mean(tf.add_n(losses))
    else:
        loss = tf.reduce_mean(tf.concat(losses, 0))
    fetches = [loss, *tf.gradients(loss, weights)]
    kinds = ops(text(fetches, x, *BEFORE, "drop_waits", "stack_products", NAME))
    # by wx, wh and wy; gradients: by logits, by states but for the first, by the three weights
    assert kinds.count("MatMul") == 1 + 6 + 1 + 1 + 5 + 3
    assert kinds.count("SparseSoftmaxCrossEntropyWithLogits") == kinds.count("Relu") == 1
    assert kinds.count("ReluGrad") == 1 and kinds.count("Tanh") == kinds.count("TanhGrad") == 6
    assert kinds.count("Split") == 2  # of the inputs' products, and of the gradients by the states
    assert NAME in agree(
        monkeypatch, fetches, fed(x), NAME, fires=48, setup=tf.global_variables_initializer()
    )


def test_products_that_wait_for_one_another_stay() -> None:
    w = tf.placeholder(tf.float32, [3, 3])
    x = tf.placeholder(tf.float32, [2, 3])
    for _ in range(5):
        x = tf.matmul(tf.tanh(x), w)
    assert ops(text([x], [], NAME)).count("MatMul") == 5


def test_of_joins_that_would_wait_for_one_another_one_is_made(monkeypatch) -> None:
    x, (v, w) = steps(), steps(2, 3, 3)
    by_w = [tf.matmul(each, w) for each in x[:2]]
    by_both = [tf.matmul(each, v) for each in (*by_w, *x[2:])]
    by_w += [tf.matmul(each, w) for each in by_both[2:]]
    lines = text([*by_w, *by_both], [*x, v, w], NAME)
    assert ops(lines).count("MatMul") == 5
    agree(monkeypatch, [*by_w, *by_both], fed([*x, v, w]), NAME, fires=4)


def test_no_product_moves_across_a_change_of_its_matrix(monkeypatch) -> None:
    x, w = steps(), tf.Variable(values(3, 3))
    before = [tf.matmul(each, w) for each in x[:2]]
    with tf.control_dependencies(before):
        change = tf.assign_add(w, tf.ones([3, 3]))
    with tf.control_dependencies([change]):
        after = [tf.matmul(each, w) for each in x[2:]]
    assert ops(text([*before, *after], x, NAME)).count("MatMul") == 4
    agree(monkeypatch, [*before, *after], fed(x), NAME, fires=0, setup=tf.global_variables_initializer())


def test_unordered_change_comes_where_it_was(monkeypatch) -> None:
    x, w = steps(), tf.Variable(values(3, 3))
    products = [tf.matmul(each, w) for each in x]
    with tf.control_dependencies([products[0]]):
        change = tf.assign_add(w, tf.ones([3, 3]))
    lines = text([*products, change], x, NAME)
    assert ops(lines).count("MatMul") in (1, 4)
    agree(monkeypatch, products, fed(x), NAME, fires=4, setup=tf.global_variables_initializer())


def test_a_concatenation_that_is_there_gives_the_order(monkeypatch) -> None:
    x, w = steps(), tf.placeholder(tf.float32, [3, 5])
    joined = tf.concat(x[::-1], 0)
    products = [tf.matmul(each, w) for each in x]
    lines = text([joined, tf.concat(products[::-1], 0)], [*x, w], NAME)
    assert ops(lines).count("ConcatV2") == 1 and "Split" not in ops(lines)
    agree(monkeypatch, [joined, tf.stack(products), tf.stack(products[::-1])], fed([*x, w]), NAME, fires=4)


def test_operands_that_differ_from_row_to_row_are_not_shared(monkeypatch) -> None:
    x, w = steps(), tf.placeholder(tf.float32, [3, 5])
    products = [tf.matmul(each, w) for each in x]
    for factor, joined in (
        (np.float32(3), True),
        (values(5), True),
        (values(1, 5), True),
        (np.full((2, 1), 3, "f"), True),
        (np.full((2, 5), 3, "f"), True),
        (values(2, 1), False),
        (values(2, 5), False),
    ):
        results = [factor * each for each in products]
        kinds = ops(text(results, [*x, w], *BEFORE, NAME))
        assert kinds.count("Mul") == (1 if joined else 4), factor
        agree(monkeypatch, results, fed([*x, w]), NAME, fires=8 if joined else 4)


def test_what_goes_by_rows_follows(monkeypatch) -> None:
    x, w, p = steps(), tf.placeholder(tf.float32, [3, 5]), steps(4, 2, 5)
    products = [tf.matmul(each, w) for each in x]
    for kind, follow in {
        "Softmax": lambda i, y: tf.nn.softmax(y),
        "BiasAdd": lambda i, y: tf.nn.bias_add(y, tf.range(5.0)),
        "Sum": lambda i, y: tf.reduce_sum(y * p[i], 1),
        "Max": lambda i, y: tf.reduce_max(y, -1, keepdims=True),
        "ArgMax": lambda i, y: tf.argmax(y, 1),
        "SquaredDifference": lambda i, y: tf.math.squared_difference(p[i], y),
        "SoftmaxCrossEntropyWithLogits": lambda i, y: tf.nn.softmax_cross_entropy_with_logits_v2(
            labels=p[i], logits=y
        ),
    }.items():
        results = [follow(i, y) for i, y in enumerate(products)]
        assert ops(text(results, [*x, *p, w], *BEFORE, NAME)).count(kind) == 1, kind
        agree(monkeypatch, results, fed([*x, *p, w]), NAME, fires=12 if kind == "Sum" else 8)
    for kind, follow in {
        "Sum": lambda i, y: tf.reduce_sum(y, 0),
        "Cumsum": lambda i, y: tf.cumsum(y),
        "Mean": lambda i, y: tf.reduce_mean(y),
    }.items():
        results = [follow(i, y) for i, y in enumerate(products)]
        assert ops(text(results, [*x, *p, w], *BEFORE, NAME)).count(kind) == 4, kind
        agree(monkeypatch, results, fed([*x, *p, w]), NAME, fires=4)


def test_large_products_and_those_among_conditionals_stay(monkeypatch) -> None:
    x, w = steps(), tf.placeholder(tf.float32, [3, 5])
    products = [tf.matmul(each, w) for each in x]
    wanted = [*products, tf.cond(products[0][0, 0] > 0, lambda: products[0], lambda: -products[0])]
    assert ops(text(wanted, [*x, w], NAME)).count("MatMul") == 4
    monkeypatch.setattr(joined_products, "_LARGEST", 39)
    assert ops(text(products, [*x, w], NAME)).count("MatMul") == 4
    monkeypatch.setattr(joined_products, "_LARGEST", 40)
    assert ops(text(products, [*x, w], NAME)).count("MatMul") == 1


class _Unrolled:
    """A random network of as many time steps, whose layers share their variables."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.count = int(self.rng.integers(4, 7))
        self.x = [tf.placeholder(tf.float64, [2, 3]) for _ in range(self.count)]
        resources = bool(self.rng.integers(2))
        numbers = [self.rng.standard_normal((3, 3)) / 2 for _ in range(3)]
        self.variables = [tf.Variable(each, use_resource=resources) for each in numbers]
        self.wanted: list[Any] = []
        self.values = [self.x]
        for _ in range(int(self.rng.integers(3, 12))):
            self.values.append(self.layer())
        loss = tf.add_n([tf.reduce_sum(tf.square(each)) for each in self.values[-1]])
        self.wanted += [loss, *self.pick(*self.values[1:]), *self.gradients(loss)]

    def pick(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def gradients(self, loss: Any) -> list[Any]:
        return [each for each in tf.gradients(loss, [*self.variables, *self.x]) if each is not None]

    def layer(self) -> list[Any]:
        x, w = self.pick(*self.values[-3:]), self.pick(*self.variables)
        kind = self.pick(
            "product", "product", "product", "bias", "rows", "two", "chain", "one", "change", "order"
        )
        if kind == "product":
            transposed = bool(self.rng.integers(2))
            return [tf.matmul(each, w, transpose_b=transposed) for each in x]
        if kind == "bias":
            return [tf.tanh(each + w[0]) * self.pick(2.0, np.ones((2, 1))) for each in x]
        if kind == "rows":
            function = self.pick(tf.nn.softmax, tf.nn.relu, tf.nn.log_softmax, tf.sigmoid)
            return [function(each) for each in x]
        if kind == "two":
            return [a - b * b for a, b in zip(x, self.pick(*self.values))]
        if kind == "chain":
            result = [x[0]]
            for each in x[1:]:
                result.append(each + tf.matmul(result[-1], w))
            return result
        if kind == "one":
            i = int(self.rng.integers(self.count))
            return [*x[:i], tf.reverse(x[i], [0]), *x[i + 1 :]]
        if kind == "order":
            return [x[i] for i in self.rng.permutation(self.count)]
        with tf.control_dependencies([self.pick(*x)]):
            change = tf.assign_add(w, tf.ones([3, 3], tf.float64) / 8)
        with tf.control_dependencies([change]):
            return [tf.identity(each) for each in x]


# How much is joined in the network of each seed.
JOINED = (24, 0, 0, 42, 48, 36, 0, 18, 12, 40, 12, 16, 0, 12, 8, 0, 0, 84, 0, 15, 12, 0, 24, 36, 0)


def joined(network: _Unrolled, feed: Any) -> int:
    """How much is joined in a network beyond the table, as its plan says."""
    with tf.Session() as s:
        return entries(s.explain(network.wanted, feed), NAME)


@pytest.mark.parametrize("seed", range(int(os.environ.get("EXTRA_SEEDS", "0")) + 25))
def test_random_unrolled_networks(monkeypatch, seed: int) -> None:
    network = _Unrolled(seed)
    feed = {x: network.rng.standard_normal((2, 3)) for x in network.x}
    monkeypatch.setattr(flags, "CHECK", 1)
    setup = tf.global_variables_initializer()
    fires = (JOINED[seed] if seed < len(JOINED) else joined(network, feed), 0)
    agree(monkeypatch, network.wanted, feed, NAME, "stack_products", fires=fires, setup=setup, tolerance=1e-7)
