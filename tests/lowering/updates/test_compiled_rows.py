"""Updates of rows by machine code: ATen's values for every optimiser, for repeated and distinct indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())

OPTIMIZERS = {
    "ProximalGradientDescent": lambda: tf.train.ProximalGradientDescentOptimizer(
        0.1, l1_regularization_strength=0.1
    ),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Momentum, Nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "Adadelta": lambda: tf.train.AdadeltaOptimizer(1.0, epsilon=1e-3),
    "ProximalAdagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, l2_regularization_strength=0.1),
    "RMSProp": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "CenteredRMSProp": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.05, l1_regularization_strength=1e-2),
    "FtrlV2": lambda: tf.train.FtrlOptimizer(0.05, l2_shrinkage_regularization_strength=0.2),
}
WIDTHS = ((), (1,), (3,), (16,), (2, 9), (100,))


def trained(
    monkeypatch: pytest.MonkeyPatch,
    native: int,
    optimizer: Any,
    row: tuple[int, ...] = (16,),
    dtype: str = "float32",
    indices: str = "int64",
    resource: bool = False,
    turned: bool = False,
) -> tuple[list[Any], str]:
    """The variable and its slots after three steps with rows of their own, and what the plan says."""
    monkeypatch.setattr(flags, "NATIVE", native)
    random = np.random.RandomState(1)
    rows = random.randn(3, 20, *row).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(random.randn(12, *row).astype(dtype), use_resource=resource)
        x = tf.placeholder(dtype, [20, *row] if not turned else [*row, 20])
        ids = tf.placeholder(indices, [None])
        gradient = tf.IndexedSlices((tf.transpose(x) if turned else x) * 2.0, ids, tf.shape(v))
        step = optimizer().apply_gradients([(gradient, v)])
        session.run(tf.global_variables_initializer())
        feeds = [{x: each.T if turned else each, ids: random.randint(0, 12, 20)} for each in rows]
        for feed in feeds:
            session.run(step, feed)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(step, {**feeds[0], ids: [3] * 19 + [12]})
        return session.run(tf.global_variables()), str(session.explain(step, feeds[0]))


def assert_close(found: list[Any], wanted: list[Any], dtype: str = "float32") -> None:
    tolerance = 64 * np.finfo(dtype).eps
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("row", [(16,), (3,)])
def test_every_optimizer(name: str, row: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, plain = trained(monkeypatch, 0, OPTIMIZERS[name], row)
    found, compiled = trained(monkeypatch, 2, OPTIMIZERS[name], row)
    assert "_RowUpdate(" in compiled and "_RowUpdate(" not in plain
    assert_close(found, wanted)


@pytest.mark.parametrize("row", WIDTHS, ids=str)
@pytest.mark.parametrize("resource", [False, True])
def test_widths(row: tuple[int, ...], resource: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "_RowResourceUpdate(" if resource else "_RowUpdate("
    wanted, _ = trained(monkeypatch, 0, OPTIMIZERS["RMSProp"], row, resource=resource)
    found, compiled = trained(monkeypatch, 2, OPTIMIZERS["RMSProp"], row, resource=resource)
    assert name in compiled
    assert_close(found, wanted)


@pytest.mark.parametrize("indices", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_types(dtype: str, indices: str, monkeypatch: pytest.MonkeyPatch) -> None:
    more: dict[str, Any] = {"dtype": dtype, "indices": indices}
    wanted, _ = trained(monkeypatch, 0, OPTIMIZERS["Ftrl"], **more)
    found, compiled = trained(monkeypatch, 2, OPTIMIZERS["Ftrl"], **more)
    assert "_RowUpdate(" in compiled
    assert_close(found, wanted, dtype)


def test_rows_in_another_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, _ = trained(monkeypatch, 0, OPTIMIZERS["Adagrad"], turned=True)
    assert_close(trained(monkeypatch, 2, OPTIMIZERS["Adagrad"], turned=True)[0], wanted)


def test_rates_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def fed() -> Any:
        return tf.train.MomentumOptimizer(tf.placeholder_with_default(np.float32(0.1), []), 0.9)

    wanted, _ = trained(monkeypatch, 0, OPTIMIZERS["Momentum"])
    found, compiled = trained(monkeypatch, 2, fed)
    assert "_RowUpdate(" in compiled
    assert_close(found, wanted)


@pytest.mark.parametrize("resource", [False, True])
def test_rates_may_be_variables(resource: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that a program keeps in a variable of its own is no slot."""

    def held() -> Any:
        rate = tf.Variable(0.1, trainable=False, use_resource=resource)
        return tf.train.MomentumOptimizer(rate, 0.9)

    wanted, _ = trained(monkeypatch, 0, held, resource=resource)
    found, compiled = trained(monkeypatch, 2, held, resource=resource)
    assert ("_RowResourceUpdate(" if resource else "_RowUpdate(") in compiled
    assert_close(found, wanted)


@pytest.mark.parametrize("row", [(), (3,), (16,), (2, 9)], ids=str)
@pytest.mark.parametrize("rate", ["constant", "fed"])
@pytest.mark.parametrize("resource", [False, True])
def test_descent(row: tuple[int, ...], rate: str, resource: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that repeat are subtracted one after the other, with ATen's bits."""

    def descent() -> Any:
        value = 0.1 if rate == "constant" else tf.placeholder_with_default(np.float32(0.1), [])
        return tf.train.GradientDescentOptimizer(value)

    wanted, plain = trained(monkeypatch, 0, descent, row, resource=resource)
    for native in (1, 2):  # by ATen until the code is there, and by the code
        found, compiled = trained(monkeypatch, native, descent, row, resource=resource)
        name = "_RowResourceUpdate(" if resource else "_RowUpdate("
        assert name in compiled and name not in plain
        np.testing.assert_array_equal(found[0], wanted[0])


LOOKUPS = {
    "sum": lambda table, ids: tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum"),
    "mean": lambda table, ids: tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean"),
    "sqrtn": lambda table, ids: tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sqrtn"),
    "weighted": lambda table, ids: tf.nn.embedding_lookup_sparse(
        table, ids, tf.SparseTensor(ids.indices, tf.cast(ids.values, tf.float32), ids.dense_shape)
    ),
    "safe": lambda table, ids: tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean"),
}


def looked_up(
    monkeypatch: pytest.MonkeyPatch, native: int, lookup: Any, rate: str, width: int
) -> tuple[Any, str]:
    """The table after three steps of descent by lookups of sparse ids, many of them equal."""
    monkeypatch.setattr(flags, "NATIVE", native)
    random = np.random.RandomState(2)
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.Variable(random.randn(9, width).astype("f"), use_resource=False)
        ids = tf.sparse_placeholder(tf.int64, [6, None])
        loss = tf.reduce_sum(lookup(table, ids) * random.randn(6, width).astype("f"))
        value = 0.3 if rate == "constant" else tf.placeholder_with_default(np.float32(0.3), [])
        step = tf.train.GradientDescentOptimizer(value).minimize(loss)
        session.run(tf.global_variables_initializer())
        feed = {}
        for count in (17, 0, 40):
            rows = np.sort(random.randint(0, 6, count))
            if count:
                rows[-1] = 5
            places = [[row, i] for i, row in enumerate(rows)]
            values = random.randint(1, 9, count)
            feed = {ids: (np.array(places, np.int64).reshape(count, 2), values, [6, 40])}
            if count or lookup is LOOKUPS["safe"]:
                session.run(step, feed)
        return session.run(table), str(session.explain(step, feed))


@pytest.mark.parametrize("width", [1, 8, 40])
@pytest.mark.parametrize("rate", ["constant", "fed"])
@pytest.mark.parametrize("name", LOOKUPS)
def test_descent_by_lookups_of_sparse_ids(
    name: str, rate: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are summed where their indices are equal, by the update, with the bits of ATen's sums."""
    arguments = (LOOKUPS[name], rate, width)
    wanted, plain = looked_up(monkeypatch, 0, *arguments)
    for native in (1, 2):  # by ATen until the code is there, and by the code
        found, compiled = looked_up(monkeypatch, native, *arguments)
        update = next(line for line in compiled.splitlines() if "_RowUpdate(" in line)
        assert "summed=True" in update and "summed=True" not in plain
        assert "Unique" not in compiled[: compiled.index("return ^")].split("\n\n")[-1]
        np.testing.assert_array_equal(found, wanted)


def test_sums_that_others_take_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.Variable(tf.zeros([5, 4]), use_resource=False)
        ids, rows = tf.placeholder(tf.int32, [3]), tf.placeholder(tf.float32, [3, 4])
        distinct, places = tf.unique(ids)
        sums = tf.unsorted_segment_sum(rows, places, tf.size(distinct))
        step = tf.scatter_sub(table, distinct, sums * 2.0).op
        session.run(tf.global_variables_initializer())
        feed = {ids: [4, 1, 4], rows: np.arange(12).reshape(3, 4)}
        assert "summed=True" in str(session.explain(step, feed))
        assert "summed=True" not in str(session.explain([step, sums], feed))
        _, found = session.run([step, sums], feed)
        np.testing.assert_array_equal(found, [[8, 10, 12, 14], [4, 5, 6, 7]])
        session.run(step, feed)
        wanted = np.zeros([5, 4])
        wanted[4], wanted[1] = found * -4
        np.testing.assert_array_equal(session.run(table), wanted)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"= 5 is not in \[0, 5\)"):
            session.run(step, {**feed, ids: [0, 5, 0]})
        np.testing.assert_array_equal(session.run(table), wanted)


@pytest.mark.parametrize("kind", ["add", "sub"])
def test_scatters(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(tf.zeros([5, 4]), use_resource=False)
        ids, rows = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None, 4])
        changed = getattr(tf, f"scatter_{kind}")(v, ids, rows)
        session.run(tf.global_variables_initializer())
        feed = {ids: [1, 3, 1], rows: np.arange(12).reshape(3, 4)}
        taken = str(session.explain(changed, feed))  # the result is a reference, which is taken
        alone = str(session.explain(changed.op, feed))
        assert "_RowUpdate(" not in taken and "_RowUpdate(" in alone
        session.run(changed.op, feed)
        sums = np.zeros([5, 4], np.float32)
        np.add.at(sums, [1, 3, 1], np.arange(12).reshape(3, 4))
        np.testing.assert_array_equal(session.run(v), sums if kind == "add" else -sums)


def run_op(monkeypatch: pytest.MonkeyPatch, native: int, distinct: bool, **options: Any) -> tuple[Any, str]:
    """SparseApplyAdagrad on indices as they are, of which one repeats, or on distinct ones."""
    monkeypatch.setattr(flags, "NATIVE", native)
    with tf.Graph().as_default(), tf.Session() as session:
        v, slot = (
            tf.Variable(tf.ones([5, 4]), use_resource=False),
            tf.Variable(tf.ones([5, 4]), use_resource=False),
        )
        ids = tf.placeholder(tf.int32, [3])
        if distinct:
            ids = tf.unique(ids)[0]
        rows = tf.constant(np.arange(12.0, dtype="f").reshape(3, 4))
        step = tf.raw_ops.SparseApplyAdagrad(
            var=v._ref(), accum=slot._ref(), lr=0.5, grad=rows, indices=ids, **options
        ).op
        session.run(tf.global_variables_initializer())
        feed = {"Placeholder:0": [2, 4, 0] if distinct else [2, 4, 2]}
        session.run(step, feed)
        return session.run([v, slot]), str(session.explain(step, feed))


@pytest.mark.parametrize("distinct", [False, True])
def test_repeated_indices_are_applied_in_order(distinct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, _ = run_op(monkeypatch, 0, distinct)
    found, compiled = run_op(monkeypatch, 2, distinct)
    assert "_RowUpdate(" in compiled
    assert_close(found, wanted)


@pytest.mark.parametrize("options", [{"use_locking": True}, {"update_slots": False}], ids=str)
def test_what_stays(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, _ = run_op(monkeypatch, 0, False, **options)
    found, compiled = run_op(monkeypatch, 2, False, **options)
    assert "_RowUpdate(" not in compiled
    assert_close(found, wanted)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("native", [0, 2])
def test_beside_a_loop(native: int, resource: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", native)
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3), use_resource=resource)
        step = tf.train.AdagradOptimizer(0.5).minimize(2.0 * tf.reduce_sum(tf.gather(table, [1, 1, 3])))
        loop = tf.while_loop(
            lambda i: i < 3,
            lambda i: tf.reshape(tf.py_func(lambda n: np.int32(n + 1), [i], tf.int32), []),
            [tf.constant(0)],
        )
        session.run(tf.global_variables_initializer())
        session.run([step, loop])
        expected = np.arange(12, dtype=np.float32).reshape(4, 3)
        expected[1] -= 0.5 * 4 / np.sqrt(0.1 + 16)
        expected[3] -= 0.5 * 2 / np.sqrt(0.1 + 4)
        np.testing.assert_allclose(session.run(table), expected, rtol=1e-6)
