"""Transposes and reshapes that meet: graph text before and after, equal results without, and where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

RNG = np.random.default_rng(17)
NAME = "cancel_transposes"
FIRST, LAST = [0, 3, 1, 2], [0, 2, 3, 1]


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def images(*dims: int | None) -> Any:
    return tf.placeholder(tf.float32, list(dims) or [2, 4, 5, 3], name="x")


def rewritten(y: Any, *x: Any) -> list[str]:
    """The ops but constants that are left after the pass."""
    kinds = ops(text([y], list(x), "fold_constants", NAME, "remove_unneeded"))
    return [kind for kind in kinds if kind not in ("_Arg", "Const")]


def test_inverse_transposes_cancel(monkeypatch) -> None:
    x = images()
    y = tf.transpose(tf.transpose(x, FIRST), LAST)
    assert ops(text([tf.exp(y)], [x])).count("Transpose") == 2
    assert rewritten(tf.exp(y), x) == ["Exp"]
    assert "cancel_transposes: " in agree(monkeypatch, [tf.exp(y), y], {x: values(2, 4, 5, 3)}, NAME, fires=1)


def test_two_transposes_are_one(monkeypatch) -> None:
    x = images(None, 4, 5, 3)
    y = tf.transpose(tf.transpose(x, [3, 1, 0, 2]), [2, 3, 0, 1])
    assert rewritten(y, x) == ["Transpose"]
    agree(monkeypatch, [y], {x: values(2, 4, 5, 3)}, NAME, fires=1)


@pytest.mark.parametrize("rank_is_known", [True, False])
def test_transposes_of_unknown_ranks_stay(monkeypatch, rank_is_known) -> None:
    x = tf.placeholder(tf.float32, [None, None] if rank_is_known else None)
    y = tf.transpose(tf.transpose(x))
    assert rewritten(y, x).count("Transpose") == (0 if rank_is_known else 2)
    agree(monkeypatch, [y], {x: values(2, 3)}, NAME, fires=1)


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_are_read_when_they_were(monkeypatch, use_resource) -> None:
    v = tf.Variable(values(2, 3, 4), use_resource=use_resource)
    twice = [
        tf.transpose(tf.transpose(v, order), other)
        for order, other in (([2, 0, 1], [1, 2, 0]), ([2, 1, 0],) * 2)
    ]
    transposed = tf.transpose(tf.transpose(v, [1, 0, 2]), [2, 0, 1])
    product = tf.matmul(tf.transpose(v[0]), tf.transpose(values(5, 3)))
    before = [*twice, transposed, product, tf.exp(twice[0])]
    with tf.control_dependencies(before):
        after = tf.assign_add(v, tf.ones([2, 3, 4]))
    assert "cancel_transposes: " in agree(
        monkeypatch,
        [*before, after],
        {},
        NAME,
        fires=4 if use_resource else 2,
        setup=tf.global_variables_initializer(),
    )


def test_an_activation_between_inverse_transposes(monkeypatch) -> None:
    x = images()
    y = tf.transpose(tf.nn.relu(tf.transpose(x, FIRST)) * 2.0, LAST)
    assert rewritten(y, x) == ["Relu", "Mul"]
    agree(monkeypatch, [y, tf.gradients(y * y, x)[0]], {x: values(2, 4, 5, 3)}, NAME, fires=4)


def test_operands_with_the_same_transpose(monkeypatch) -> None:
    a, b = images(), images()
    y = tf.add(tf.transpose(a, FIRST), tf.transpose(b, FIRST)) - 1.0
    assert rewritten(y, a, b) == ["Add", "Sub", "Transpose"]
    total = tf.add_n([tf.transpose(a, FIRST), tf.transpose(b, FIRST), tf.transpose(a + b, FIRST)])
    assert rewritten(total, a, b) == ["AddV2", "AddN", "Transpose"]
    agree(monkeypatch, [y, total], {a: values(2, 4, 5, 3), b: values(2, 4, 5, 3)}, NAME, fires=3)


def test_other_operands_keep_the_transpose_where_it_is() -> None:
    x, b = images(), tf.placeholder(tf.float32, [4, 5])
    assert rewritten(tf.transpose(x, FIRST) + b, x, b) == ["Transpose", "AddV2"]
    other = tf.transpose(x, [0, 3, 2, 1])
    assert rewritten(tf.matmul(tf.transpose(x, FIRST), other), x).count("Transpose") == 2
    y = tf.transpose(x, FIRST)
    assert rewritten(tf.exp(y) + tf.reduce_sum(tf.cumsum(y)), x).index("Transpose") == 0


def test_their_number_never_grows() -> None:
    x = images()
    y = tf.transpose(x, FIRST)
    left = rewritten(tf.stack([tf.exp(y), tf.sin(y), tf.cos(y)]), x)
    assert left.count("Transpose") == 1


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concatenations(monkeypatch, axis) -> None:
    x = images()
    y = tf.concat([tf.transpose(x, FIRST), tf.transpose(x * x, FIRST)], axis)
    assert rewritten(y, x) == ["Mul", "ConcatV2", "Transpose"]
    agree(monkeypatch, [y, tf.gradients(y * y, x)[0]], {x: values(2, 4, 5, 3)}, NAME, fires=1)


@pytest.mark.parametrize(
    "order, layout, channels", [(FIRST, "NCHW", 3), (LAST, "NHWC", 4), (FIRST, "NHWC", 5)]
)
def test_biases(monkeypatch, order, layout, channels) -> None:
    x, b = images(), tf.placeholder(tf.float32, [channels], name="b")
    y = tf.nn.relu(tf.nn.bias_add(tf.transpose(x, order), b, data_format=layout))
    moves = order[1 if layout == "NCHW" else 3] in (1, 3)
    assert rewritten(y, x, b)[0] == ("BiasAdd" if moves else "Transpose")
    gradients = tf.gradients(y * y, [x, b])
    agree(
        monkeypatch,
        [y, *gradients],
        {x: values(2, 4, 5, 3), b: values(channels)},
        NAME,
        fires=2 if moves else 0,
    )


def test_a_bias_reaches_the_convolution_through_the_transpose(monkeypatch) -> None:
    x, w, b = images(), tf.placeholder(tf.float32, [3, 3, 3, 3]), tf.placeholder(tf.float32, [3])
    y = x
    for _ in range(2):
        first = tf.nn.conv2d(tf.transpose(y, FIRST), w, [1] * 4, "SAME", data_format="NCHW")
        y = tf.nn.relu(tf.nn.bias_add(tf.transpose(first, LAST), b))
    feed = {x: values(2, 4, 5, 3), w: values(3, 3, 3, 3), b: values(3)}
    log = agree(monkeypatch, [y], feed, NAME, fires=12)
    assert log.count("_BiasedConv2D(") == 2 and log.split("\n\n")[1].count("Transpose(") == 0
    agree(monkeypatch, tf.gradients(y * y, [x, w, b]), feed, NAME, fires=24)


@pytest.mark.parametrize("dims", [[1, 3, 1, 1], [3, 1, 1], [1], [5], [2, 1, 1, 1], [1, 1, 4, 1]])
@pytest.mark.parametrize("resource", [False, True])
def test_vectors_are_seen_along_another_axis(monkeypatch, dims, resource) -> None:
    x, b = images(), tf.get_variable("b", initializer=values(*dims), use_resource=resource)
    y = tf.transpose(tf.exp(b - tf.transpose(x, FIRST)), LAST)
    assert "Transpose" not in rewritten(y, x)
    fetches = [y, *tf.gradients(y * y, [x, b])]
    agree(
        monkeypatch, fetches, {x: values(2, 4, 5, 3)}, NAME, fires=5, setup=tf.global_variables_initializer()
    )


def test_a_gradient_of_single_elements_keeps_its_shape(monkeypatch) -> None:
    x = images(1, 1, 1, 3)
    y = tf.nn.relu(tf.transpose(x, FIRST))
    agree(
        monkeypatch, [tf.transpose(y, LAST), *tf.gradients(y * y, x)], {x: values(1, 1, 1, 3)}, NAME, fires=2
    )


@pytest.mark.parametrize("axes", [[1, 2], [2, 3], [0], [0, 1, 2, 3], [1]])
@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_max])
def test_reductions(monkeypatch, axes, reduce) -> None:
    x = images()
    y = reduce(tf.transpose(x, FIRST), axes)
    agree(
        monkeypatch,
        [y, reduce(tf.transpose(x, LAST), axes, keepdims=True)],
        {x: values(2, 4, 5, 3)},
        NAME,
        fires=0 if axes == [0] else 1,  # of rows that are no vectors the transpose stays
    )
    if axes == [2, 3]:
        assert rewritten(y, x) == ["Mean" if reduce is tf.reduce_mean else "Max"]


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True)])
def test_products_transpose_themselves(monkeypatch, flags) -> None:
    a = tf.placeholder(tf.float32, [3, 4] if not flags[0] else [4, 3])
    b = tf.placeholder(tf.float32, [5, 3] if not flags[1] else [3, 5])
    y = tf.matmul(a, tf.transpose(b), transpose_a=not flags[0], transpose_b=flags[1])
    assert rewritten(y, a, b) == ["MatMul"]
    agree(monkeypatch, [y], {x: values(*x.shape.as_list()) for x in (a, b)}, NAME, fires=1)


def test_reshapes(monkeypatch) -> None:
    x = images(None, 4, 5, 3)
    y = tf.reshape(tf.reshape(x, [-1, 60]), [-1, 4, 5, 3])
    assert rewritten(tf.exp(y), x) == ["Exp"]
    z = tf.reshape(tf.expand_dims(tf.reshape(x, [-1, 60]), 1), [-1, 6, 10])
    assert rewritten(z, x) == ["Reshape"]
    w = tf.squeeze(tf.expand_dims(x, 1), [1])
    assert rewritten(tf.exp(w), x) == ["Exp"]
    agree(monkeypatch, [y, z, w, *tf.gradients([y, z, w], x)], {x: values(2, 4, 5, 3)}, NAME, fires=4)


def test_reshapes_that_may_fail_stay() -> None:
    x = tf.placeholder(tf.float32, [None, 6])
    y = tf.reshape(tf.reshape(x, [-1, 4]), [-1, 6])
    assert rewritten(y, x) == ["Reshape", "Reshape"]
    with tf.Session() as s, pytest.raises(tf.errors.InvalidArgumentError):
        s.run(y, {x: values(3, 6)})
    z = tf.reshape(tf.reshape(tf.placeholder(tf.float32, [None, None], name="z"), [-1, 4]), [-1, 6])
    assert rewritten(z, z.op.inputs[0].op.inputs[0]) == ["Reshape", "Reshape"]


def test_reshapes_to_what_the_step_computes_stay() -> None:
    """There is one size with which the step does not fail, but another may come."""
    x, y = tf.placeholder(tf.float32, [1, 3]), tf.placeholder(tf.float32, [1, None])
    z = tf.reshape(tf.squeeze(x[None], 0), tf.shape(y))
    w = tf.reshape(tf.broadcast_to(x, [2, 3])[None], tf.concat([[2], tf.shape(y)[1:]], 0))
    with tf.Session() as session:
        for n in (3, 4, 3, 5):
            for fetched in (z, w):
                if n == 3:
                    session.run(fetched, {x: values(1, 3), y: values(1, n)})
                else:
                    with pytest.raises(tf.errors.InvalidArgumentError, match="reshape"):
                        session.run(fetched, {x: values(1, 3), y: values(1, n)})


def test_a_constant_vector_in_a_loop_is_not_computed_outside(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [3, 4, 2], name="x")
    limits = tf.constant([4.0, 3.0, 2.0, 1.0])
    y = tf.map_fn(lambda row: tf.transpose(tf.minimum(tf.transpose(tf.exp(row)), limits)) * 2, x)
    feed = {x: values(3, 4, 2)}
    assert "Reshape" not in rewritten(y, x)
    agree(monkeypatch, [y], feed, NAME, fires=2)
