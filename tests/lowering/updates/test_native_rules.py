"""Updates by machine code: ATen's values for every optimiser, in any layout, for one variable or many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.updates import native_rules
from flowstone.lowering.updates.grouped_updates import GROUPED
from flowstone.lowering.updates.native_rules import rule_of, rule_of_program
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())

OPTIMIZERS = {
    "ApplyGradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "ApplyMomentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "ApplyMomentum nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "ApplyAdam": lambda: tf.train.AdamOptimizer(0.1),
    "ApplyAdagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "ApplyAdagradDA": lambda: tf.train.AdagradDAOptimizer(
        0.1, tf.constant(3, tf.int64), l1_regularization_strength=0.1, l2_regularization_strength=0.2
    ),
    "ApplyAdagradDA counted": lambda: tf.train.AdagradDAOptimizer(
        0.1, tf.train.get_or_create_global_step(), l2_regularization_strength=0.2
    ),
    "ApplyRMSProp": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "ApplyCenteredRMSProp": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "ApplyAdadelta": lambda: tf.train.AdadeltaOptimizer(1.0, epsilon=1e-3),
    "ApplyFtrl": lambda: tf.train.FtrlOptimizer(0.05, l1_regularization_strength=1e-2),
    "ApplyFtrlV2": lambda: tf.train.FtrlOptimizer(
        0.05, l2_regularization_strength=0.1, l2_shrinkage_regularization_strength=0.2
    ),
    "ApplyProximalGradientDescent": lambda: tf.train.ProximalGradientDescentOptimizer(
        0.1, l1_regularization_strength=0.1
    ),
    "ApplyProximalAdagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, l2_regularization_strength=0.1),
    "ApplyAddSign": lambda: tf.contrib.opt.AddSignOptimizer(0.1),
    "ApplyPowerSign": lambda: tf.contrib.opt.PowerSignOptimizer(0.1),
    "ApplyAdaMax": lambda: tf.contrib.opt.AdaMaxOptimizer(0.1),
}
SHAPES = [(3, 2), (5,), (), (40, 17)]


def trained(
    monkeypatch: pytest.MonkeyPatch,
    native: int,
    optimizer: Any,
    dtype: str,
    shapes: Any,
    turned: bool = False,
) -> tuple[list[Any], str]:
    """The variables after three steps with gradients of their own, and what the plan says."""
    monkeypatch.setattr(flags, "NATIVE", native)
    random = np.random.RandomState(1)
    with tf.Graph().as_default(), tf.Session() as session:
        values = [np.asarray(random.randn(*dims), dtype) for dims in shapes]
        variables = [tf.Variable(each) for each in values]
        feeds = [tf.placeholder(dtype, dims[::-1] if turned else dims) for dims in shapes]
        gradients = [tf.transpose(x) * 2.0 if turned else x * 2.0 for x in feeds]
        step = optimizer().apply_gradients(zip(gradients, variables))
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            given = {x: np.asarray(random.randn(*x.shape.as_list()), dtype) for x in feeds}
            session.run(step, given)
        return session.run(variables), session.explain(step, given)


def close(a: list[Any], b: list[Any], dtype: str) -> None:
    unit = np.finfo(dtype).eps
    for x, y in zip(a, b):
        np.testing.assert_allclose(x, y, rtol=64 * unit, atol=64 * unit)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_values_are_those_of_atens_steps(monkeypatch: pytest.MonkeyPatch, name: str, dtype: str) -> None:
    expected, plain = trained(monkeypatch, 0, OPTIMIZERS[name], dtype, SHAPES)
    actual, compiled = trained(monkeypatch, 2, OPTIMIZERS[name], dtype, SHAPES)
    assert "compile_updates" in compiled and "compile_updates" not in plain
    assert compiled.count(f"update='{name.split()[0]}'") == 1 and "\n update(" in compiled
    close(actual, expected, dtype)


def test_every_update_has_a_rule() -> None:
    assert all(rule_of(name, False, [-0.5] * 9) for name in GROUPED)
    assert rule_of("ApplyFtrl", False, [0.1, 0.0, 0.0, -0.7]) is None
    assert rule_of("ApplyFtrl", False, [0.1, 0.0, 0.0, None]) is None


@pytest.mark.parametrize("name", ["ApplyAdam", "ApplyRMSProp"])
def test_transposed_gradients_are_laid_out_first(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    runs: list[Any] = []
    original = native_rules._Otherwise._views

    def views(self: Any, held: Any, given: Any) -> Any:
        runs.append(original(self, held, given))
        return runs[-1]

    monkeypatch.setattr(native_rules._Otherwise, "_views", views)
    expected, _ = trained(monkeypatch, 0, OPTIMIZERS[name], "float32", [(3, 2), (40, 17)], True)
    actual, _ = trained(monkeypatch, 2, OPTIMIZERS[name], "float32", [(3, 2), (40, 17)], True)
    close(actual, expected, "float32")
    assert all(each is not None for each in runs)


def test_a_narrow_layers_gradient_needs_no_views(monkeypatch: pytest.MonkeyPatch, set_profile: Any) -> None:
    """Its product may come column by column: it alone is copied."""
    set_profile(narrow_columns=16)
    monkeypatch.setattr(flags, "NATIVE", 2)
    asked: list[Any] = []
    views = native_rules._Otherwise._views
    monkeypatch.setattr(
        native_rules._Otherwise, "_views", lambda self, *both: asked.append(both) or views(self, *both)
    )
    results = []
    for native in (2, 0):
        monkeypatch.setattr(flags, "NATIVE", native)
        random = np.random.RandomState(1)
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [32, 64])
            v, w = (tf.Variable(random.randn(*dims).astype("f")) for dims in ((64, 64), (64, 2)))
            loss = tf.reduce_sum(tf.square(tf.matmul(tf.tanh(tf.matmul(x, v)), w)))
            train = tf.train.AdamOptimizer(0.01).minimize(loss)
            session.run(tf.global_variables_initializer())
            feed = {x: random.randn(32, 64)}
            if native:
                assert "t(mm(" in (code := session.explain(train, feed)) and "contiguous(" in code
            for _ in range(3):
                session.run(train, feed)
            results.append(session.run([v, w]))
    assert not asked
    for first, second in zip(*results):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)


def test_a_large_variable_is_updated_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [(300, 300), (5,), (7,)]
    expected, _ = trained(monkeypatch, 0, OPTIMIZERS["ApplyAdam"], "float32", shapes)
    actual, text = trained(monkeypatch, 2, OPTIMIZERS["ApplyAdam"], "float32", shapes)
    assert text.count("_GroupedUpdate") == 2
    close(actual, expected, "float32")


def test_an_uninitialised_variable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(tf.ones([3]))
        step = tf.train.AdamOptimizer().apply_gradients([(tf.ones([3]) * variable, variable)])
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(step)


def test_programs_have_their_instructions_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(native: int) -> list[Any]:
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            p, m = tf.Variable(tf.linspace(-1.0, 1.0, 50)), tf.Variable(tf.ones([50]))
            g, rate = tf.placeholder(tf.float32, [50]), tf.placeholder(tf.float32, [])
            mean = tf.assign(m, m * 0.75 + tf.square(g * 2.0) * rate)
            step = tf.assign_sub(p, rate * g * tf.rsqrt(mean + 0.5))
            session.run(tf.global_variables_initializer())
            feeds = {g: np.linspace(-3, 3, 50, dtype=np.float32), rate: 0.3}
            session.run(step.op, feeds)
            assert "_ProgramUpdate" in session.explain(step.op, feeds)
            return list(session.run([p, m]))

    for a, b in zip(run(0), run(2)):
        np.testing.assert_array_equal(a, b)


def test_a_program_is_a_rule() -> None:
    rule = rule_of_program("t0=mul(n0,x0);t1=sub(h0,t0);h0=t1", 1, 1, 1)
    assert rule.steps == (("Mul", ("n0", "x0")), ("Sub", ("h0", "t0"))) and rule.results == ("t1",)
