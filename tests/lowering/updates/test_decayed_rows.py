"""Adam's step with a sparse gradient as one pass over all rows: which programs have it, and their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())
ROWS, COUNT = 30, 24


class LikeNadam(tf.train.Optimizer):
    """A rule that a program wrote itself, in which the average of squares alone decays."""

    def __init__(self) -> None:
        super().__init__(False, "LikeNadam")

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._zeros_slot(v, "s", "s")

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        s = self.get_slot(var, "s")
        decayed = tf.assign(s, 0.5 * s)
        with tf.control_dependencies([decayed]):
            after = tf.scatter_add(s, grad.indices, tf.square(grad.values))
        return tf.assign_sub(var, 0.1 * after / (tf.sqrt(after) + 1e-3)).op


def trained(
    monkeypatch: pytest.MonkeyPatch,
    native: int,
    row: tuple[int, ...] = (16,),
    optimizer: Any = lambda: tf.train.AdamOptimizer(0.05),
    dtype: str = "float32",
    indices: str = "int64",
    resource: bool = False,
    before: Any = lambda g: g * 2.0,
) -> tuple[list[Any], str]:
    """The variable and its slots after steps with and without rows, and what the plan says."""
    monkeypatch.setattr(flags, "NATIVE", native)
    monkeypatch.setattr(flags, "CHECK", 1)  # that every state still depends on what it did
    random = np.random.RandomState(1)
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(random.randn(ROWS, *row).astype(dtype), use_resource=resource)
        x, ids = tf.placeholder(dtype, [None, *row]), tf.placeholder(indices, [None])
        gradient = tf.IndexedSlices(before(x), ids, tf.shape(v))
        step = optimizer().apply_gradients([(gradient, v)])
        session.run(tf.global_variables_initializer())
        for count in (COUNT, COUNT, 0, 1):
            rows = random.randn(count, *row)
            session.run(step, {x: rows, ids: random.randint(0, ROWS, count)})
        feed = {x: np.zeros([2, *row]), ids: [3, ROWS]}
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(step, feed)
        return session.run([v]), str(session.explain(step, {**feed, ids: [3, 4]}))


def assert_agree(monkeypatch: pytest.MonkeyPatch, fires: bool = True, **more: Any) -> None:
    wanted, plain = trained(monkeypatch, 0, **more)
    tolerance = 64 * np.finfo(more.get("dtype", "float32")).eps
    for native in (1, 2):  # by ATen until the code is there, and by the code
        found, plan = trained(monkeypatch, native, **more)
        assert ("_DecayedR" in plan) is fires and "_DecayedR" not in plain
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", [(), (1,), (3,), (16,), (2, 9), (40,)], ids=str)
@pytest.mark.parametrize("resource", [False, True])
def test_widths(row: tuple[int, ...], resource: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_agree(monkeypatch, row=row, resource=resource)


@pytest.mark.parametrize(("dtype", "indices"), [("float64", "int64"), ("float32", "int32")])
def test_types(dtype: str, indices: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_agree(monkeypatch, dtype=dtype, indices=indices)


def test_a_rule_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_distinct_rows(grad: Any) -> Any:
        return grad + 1.0

    assert_agree(monkeypatch, optimizer=LikeNadam, before=of_distinct_rows)


def test_sums_that_others_take_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def clipped() -> Any:
        class Clipped(tf.train.AdamOptimizer):
            def _apply_sparse(self, grad: Any, var: Any) -> Any:
                largest = tf.reduce_max(tf.concat([tf.abs(grad.values), tf.ones([1, 16])], 0))
                values = grad.values / largest
                return super()._apply_sparse(tf.IndexedSlices(values, grad.indices, grad.dense_shape), var)

        return Clipped(0.05)

    assert_agree(monkeypatch, optimizer=clipped)


def test_slots_that_others_take_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(tf.ones([ROWS, 4]))
        optimizer = tf.train.AdamOptimizer(0.05)
        ids = tf.placeholder(tf.int32, [2])
        gradient = tf.IndexedSlices(tf.ones([2, 4]), ids, tf.constant([ROWS, 4]))
        step = optimizer.apply_gradients([(gradient, v)])
        m = optimizer.get_slot(v, "m")
        session.run(tf.global_variables_initializer())
        assert "_DecayedR" not in str(session.explain([step, tf.reduce_sum(m)], {ids: [1, 2]}))
        _, after = session.run([step, m], {ids: [1, 2]})  # as it is in the end
        np.testing.assert_array_equal(after, session.run(m))
