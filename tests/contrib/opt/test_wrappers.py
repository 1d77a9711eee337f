"""Wrappers of `tf.contrib.opt`: averages that are saved, variables that are clipped, SciPy's optimisers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flowstone as tf


def test_averages_are_saved_under_the_variables_names(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.get_variable("x", initializer=[1.0, 2.0])
        optimizer = tf.contrib.opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), 0.5)
        with pytest.raises(RuntimeError, match="before creating the swapping_saver"):
            optimizer.swapping_saver()
        train = optimizer.minimize(tf.reduce_sum(x))
        saver = optimizer.swapping_saver()
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = saver.save(session, str(tmp_path / "model"))
        assert session.run(x).tolist() == [0.0, 1.0]
    saved = {name: tf.train.load_variable(path, name).tolist() for name, _ in tf.train.list_variables(path)}
    assert saved == {"x": [0.5, 1.5], "x/ExponentialMovingAverage": [0.0, 1.0]}


@pytest.mark.parametrize("resource", [False, True])
def test_variables_are_clipped_after_a_step(resource: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.get_variable("x", initializer=[[3.0, 4.0], [0.3, 0.4]], use_resource=resource)
        y = tf.get_variable("y", initializer=[[3.0, 4.0], [6.0, 8.0]], use_resource=resource)
        descent = tf.train.GradientDescentOptimizer(1.0)
        optimizer = tf.contrib.opt.VariableClippingOptimizer(descent, {x: [1], y: [1]}, 1.0)
        rows = tf.IndexedSlices(tf.zeros([1, 2]), tf.constant([1]), tf.constant([2, 2]))
        train = optimizer.apply_gradients([(tf.zeros([2, 2]), x), (rows, y)])
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(x), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
        np.testing.assert_allclose(session.run(y), [[3.0, 4.0], [0.6, 0.8]], rtol=1e-6)
        along_rows = tf.contrib.opt.VariableClippingOptimizer(descent, {y: [0]}, 1.0)
        session.run(along_rows.apply_gradients([(rows, y)]))  # all rows are clipped, whichever were updated
        np.testing.assert_allclose(
            session.run(y), np.array([[3.0, 4.0], [0.6, 0.8]]) / [3.0594117, 4.0792156], rtol=1e-6
        )


def test_gradients_of_several_tasks() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        pairs = [(tf.constant([30.0, 40.0]), "a"), (None, "b"), (tf.zeros([2]), "c")]
        clipped = tf.contrib.opt.clip_gradients_by_global_norm(pairs, 5.0)
        assert [name for _, name in clipped] == ["a", "b", "c"] and clipped[1][0] is None
        np.testing.assert_allclose(session.run(clipped[0][0]), [3.0, 4.0], rtol=1e-6)
    with pytest.raises(TypeError, match="must be an instance"):
        tf.contrib.opt.MultitaskOptimizerWrapper(3)
    wrapped = tf.contrib.opt.MultitaskOptimizerWrapper(tf.train.AdamOptimizer())
    assert wrapped.get_name() == "Adam"


def test_sign_decays() -> None:
    from_module = tf.contrib.opt
    with pytest.raises(ValueError, match="without a global_step"), tf.Graph().as_default():
        x = tf.Variable(1.0)
        from_module.AddSignOptimizer(sign_decay_fn=lambda step: step).apply_gradients([(tf.constant(1.0), x)])
    from flowstone.contrib.opt import sign_decay

    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.placeholder(tf.int64)
        linear = sign_decay.get_linear_decay_fn(10)(step)
        cosine = sign_decay.get_cosine_decay_fn(10, num_periods=1.0, zero_after=0.75)(step)
        restart = sign_decay.get_restart_decay_fn(10, num_periods=2)(step)
        values = [session.run([linear, cosine, restart], {step: i}) for i in (0, 5, 8, 20)]
    expected = [[1, 1, 1], [0.5, 0, 1], [0.2, 0, 0.5 + 0.5 * np.cos(0.6 * np.pi)], [0, 0, 1]]
    np.testing.assert_allclose(values, expected, atol=1e-6)


def test_scipy_finds_the_minimum() -> None:
    pytest.importorskip("scipy", reason="SciPy is optional")
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.Variable([7.0, 7.0]), tf.Variable(3.0, dtype=tf.float64)
        loss = tf.reduce_sum(tf.square(x - [1.0, 2.0])) + tf.cast(tf.square(y), tf.float32)
        seen: list[float] = []
        optimizer = tf.contrib.opt.ScipyOptimizerInterface(
            loss, equalities=[x[0] - 3.0], inequalities=[x[1] - 4.0], var_to_bounds={y: (1.0, np.inf)}
        )
        session.run(tf.global_variables_initializer())
        optimizer.minimize(session, fetches=[loss], loss_callback=seen.append)
        np.testing.assert_allclose(session.run(x), [3.0, 4.0], atol=1e-3)
        np.testing.assert_allclose(session.run(y), 1.0, atol=1e-3)
        assert len(seen) > 1 and seen[-1] < seen[0]
        plain = tf.contrib.opt.ScipyOptimizerInterface(loss, options={"maxiter": 100})
        plain.minimize(session)
        np.testing.assert_allclose(session.run(x), [1.0, 2.0], atol=1e-2)


def test_an_interface_alone_minimises_nothing() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.Variable(1.0)
        optimizer = tf.contrib.opt.ExternalOptimizerInterface(x * x)
        session.run(tf.global_variables_initializer())
        with pytest.raises(NotImplementedError, match="implement _minimize"):
            optimizer.minimize(session)


def test_accumulators_that_stay() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.Variable([1.0])
        optimizer = tf.contrib.opt.RegAdagradOptimizer(1.0)
        train = optimizer.apply_gradients([(tf.constant([2.0]), x)])
        with optimizer.avoid_updating_slots():
            other = optimizer.apply_gradients([(tf.constant([2.0]), x)])
        session.run(tf.global_variables_initializer())
        slot = optimizer.get_slot(x, "accumulator")
        session.run(other)
        assert session.run(slot).tolist() == [np.float32(0.1)]
        session.run(train)
        assert session.run(slot).tolist() == [np.float32(4.1)]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("resource", [False, True])
def test_adam_by_the_global_step(lazy: bool, resource: bool) -> None:
    """The expected values were printed by TensorFlow 1.15.5 for this program."""
    opt = tf.contrib.opt
    with tf.Graph().as_default(), tf.Session() as session:
        start = (np.arange(12).reshape(4, 3) / 6 - 0.7).astype(np.float32)
        x = tf.get_variable("x", initializer=start, use_resource=resource)
        b = tf.get_variable("b", initializer=[0.5, -0.5], use_resource=resource)
        step = tf.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.square(tf.gather(x, [0, 2]))) + tf.reduce_sum(b * b * b * b)
        optimizer = (opt.LazyAdamGSOptimizer if lazy else opt.AdamGSOptimizer)(step, 0.1)
        train = optimizer.minimize(loss, global_step=step)
        names = {v.op.name for v in tf.global_variables()}
        assert names == {"x", "b", "global_step", "x/Adam", "x/Adam_1", "b/Adam", "b/Adam_1"}
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        np.testing.assert_allclose(session.run(b), [0.22275263, -0.22275263], rtol=1e-5)
        rows = [[-0.40274358, -0.23767537, -0.07544516], start[1]]
        np.testing.assert_allclose(session.run(x)[:2], rows, rtol=1e-5)


def test_stale_gradients_are_dropped() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        x = tf.get_variable("x", initializer=[1.0, 2.0])
        others = tf.placeholder(tf.int64, [])
        momentum = tf.train.MomentumOptimizer(0.5, 0.1)
        optimizer = tf.contrib.opt.DropStaleGradientOptimizer(momentum, 2)
        pairs = optimizer.compute_gradients(tf.reduce_sum(x * x))
        with tf.control_dependencies([pairs[0][0]]), tf.control_dependencies([tf.assign_add(step, others)]):
            late = [(tf.identity(grad), var) for grad, var in pairs]
        train = optimizer.apply_gradients(late, step)
        session.run(tf.global_variables_initializer())
        counter = next(v for v in tf.global_variables() if v.op.name == "stale_counter")
        session.run(train, {others: 3})
        assert session.run([x, counter, step])[0].tolist() == [1.0, 2.0]
        assert session.run([counter, step]) == [1.0, 3]
        session.run(train, {others: 2})
        assert session.run(x).tolist() == [0.0, 0.0]
        assert session.run([counter, step]) == [1.0, 6]
        assert optimizer.get_slot_names() == ["momentum"]
        assert optimizer.get_slot(x, "momentum") in optimizer.variables()
        (summary,) = tf.get_collection(tf.GraphKeys.SUMMARIES)
        assert summary.op.name == "Gradient_staleness_percentage"
        with pytest.raises(ValueError, match="Global step is required"):
            optimizer.apply_gradients(pairs)
