"""Updates beyond the op table: hyper-parameters known and not known before the step, and locks."""

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.variables import optimizer_steps

pytestmark = pytest.mark.usefixtures("graph")


def expected_adam(steps: int, gradient: np.ndarray) -> np.ndarray:
    """Adam from zero, in float64, as published (D. Kingma and J. Ba, 2015) with epsilon as TensorFlow
    places it.
    """
    value, m, v = np.zeros(3), np.zeros(3), np.zeros(3)
    for step in range(1, steps + 1):
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        value -= 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step) * m / (np.sqrt(v) + 1e-3)
    return value


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_adam_over_several_steps(resource: bool, dtype: type) -> None:
    zeros, gradient = np.zeros(3, dtype), np.array([1.0, -0.5, 1e-3])
    value, m, v = (tf.Variable(zeros, use_resource=resource) for _ in range(3))
    powers = [tf.placeholder(dtype, []) for _ in range(2)]
    name, handles = ("ApplyAdam", [x._ref() for x in (value, m, v)]) if not resource else (
        "ResourceApplyAdam", [x.handle for x in (value, m, v)]
    )  # fmt: skip
    rates = [tf.constant(x, dtype) for x in (0.1, 0.9, 0.999, 1e-3)]
    update = getattr(F, name)(*handles, *powers, *rates, tf.constant(gradient, dtype))
    update = getattr(update, "op", update)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(1, 6):
            session.run(update, dict(zip(powers, (0.9**step, 0.999**step))))
        tolerance = 2e-2 if dtype is np.float16 else 1e-5 if dtype is np.float32 else 1e-6
        np.testing.assert_allclose(
            session.run(value), expected_adam(5, gradient), rtol=tolerance, atol=tolerance
        )


def test_rates_may_be_fed() -> None:
    value = tf.Variable([1.0, 2.0])
    rate = tf.placeholder(tf.float32, [])
    update = F.ApplyGradientDescent(value._ref(), rate, [1.0, 10.0], use_locking=True)
    with tf.Session() as session:
        session.run(value.initializer)
        np.testing.assert_allclose(session.run(update, {rate: 0.5}), [0.5, -3.0])
        np.testing.assert_allclose(session.run(update, {rate: 0.1}), [0.4, -4.0])


def test_a_gradient_is_not_broadcast() -> None:
    value = tf.Variable([[1.0, 2.0]])
    gradient = tf.placeholder(tf.float32)
    update = F.ApplyGradientDescent(value._ref(), 0.5, gradient)
    with tf.Session() as session:
        session.run(value.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="do not have the same shape"):
            session.run(update, {gradient: 1.0})
        np.testing.assert_array_equal(session.run(value), [[1.0, 2.0]])


def test_an_uninitialised_slot_is_named() -> None:
    value, slot = tf.Variable([1.0]), tf.Variable([0.0], name="slot")
    update = F.ApplyMomentum(value._ref(), slot._ref(), 0.1, [1.0], 0.9)
    with tf.Session() as session:
        session.run(value.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value slot"):
            session.run(update)


def test_rows_that_repeat_are_applied_one_after_the_other() -> None:
    value, accum = tf.Variable([1.0, 1.0]), tf.Variable([0.0, 0.0])
    update = F.SparseApplyAdagrad(value._ref(), accum._ref(), 1.0, [3.0, 4.0], [1, 1])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(update), [1.0, 1.0 - 3.0 / 3.0 - 4.0 / 5.0], rtol=1e-6)
        np.testing.assert_allclose(session.run(accum), [0.0, 25.0])


def test_updates_stand_where_the_variable_stands() -> None:
    with tf.device("/cpu:0"):
        value = tf.Variable([1.0])
    update = F.ApplyGradientDescent(value._ref(), 0.5, [1.0])
    assert update.op.device == "/device:CPU:0" and update.op.colocation_groups() == [b"loc:@Variable"]


@pytest.mark.parametrize("turned", [(0,), (3,), (0, 1, 2), (1, 3)])
def test_an_adam_step_in_any_order_in_memory(turned: tuple[int, ...]) -> None:
    """The variable, its slots and the gradient may lie in memory by rows or by columns, each as it likes."""
    random = torch.Generator().manual_seed(5)
    rows = [torch.rand(4, 3, generator=random) for _ in range(4)]
    any_order = [x.t().contiguous().t() if i in turned else x.clone() for i, x in enumerate(rows)]
    numbers = (0.9, 0.999, 0.1, 0.9, 0.999, 1e-3)
    for var, m, v, grad in (rows, any_order):
        optimizer_steps.adam(var, m, v, *numbers, grad)
    for expected, found in zip(rows, any_order):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


def test_ftrl_of_what_never_had_a_gradient_is_zero() -> None:
    """Its divisor is zero then, if there is no l2."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.Variable([1.0, 1.0])
        optimizer = tf.train.FtrlOptimizer(0.1, initial_accumulator_value=0.0)
        step = optimizer.apply_gradients([(tf.constant([0.0, 0.5]), x)])
        session.run(tf.global_variables_initializer())
        session.run(step)
        first, second = session.run(x)
        assert first == 0.0
        assert np.isfinite(second) and second != 0.0


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_rmsprop_in_another_order_in_memory(momentum: float) -> None:
    """Weights that are kept column by column step as others do."""
    rng = np.random.default_rng(3)
    var, grad = (torch.tensor(rng.standard_normal((6, 4)).astype("f")) for _ in range(2))
    ms, mom = torch.ones(6, 4), torch.zeros(6, 4)
    expected_ms = 0.9 * ms + 0.1 * grad**2
    expected_mom = 0.1 * grad / torch.sqrt(expected_ms + 1e-3)
    columns = [x.t().contiguous().t() for x in (var, ms, mom)]
    for tensors in (columns, [var.clone(), ms, mom]):
        optimizer_steps.rms_prop(*tensors, 0.1, 0.9, momentum, 1e-3, grad)
        torch.testing.assert_close(tensors[1], expected_ms)
        torch.testing.assert_close(tensors[2], expected_mom)
        torch.testing.assert_close(tensors[0], var - expected_mom)


def test_rows_of_a_variable_of_strings():
    with tf.Graph().as_default(), tf.Session() as session:
        words = tf.Variable(["a", "b", "c"], use_resource=True)
        rows = tf.gather(words, [[2, 0]])
        session.run(tf.global_variables_initializer())
        assert session.run(rows).tolist() == [[b"c", b"a"]]
        assert session.run(words.sparse_read([1])).tolist() == [b"b"]
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.gather(words, [3]))


@pytest.mark.parametrize("resource", [False, True])
def test_an_index_out_of_range_changes_no_row(resource: bool) -> None:
    """The gather whose gradient it is is left out, but would fail before the update."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable("table", initializer=np.ones([3, 2], np.float32), use_resource=resource)
        ids = tf.placeholder(tf.int32, [None])
        step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.gather(table, ids)))
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"= 5 is not in \[0, 3\)"):
                session.run(step, {ids: [0, 5]})
        np.testing.assert_array_equal(session.run(table), np.ones([3, 2]))
