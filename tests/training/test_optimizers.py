"""Every optimiser follows TensorFlow's trajectory, with the same names of variables, slots and nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.training import trajectories

import flowstone as tf
import flowstone.train

GOLDEN = Path(__file__).parents[1] / "golden" / "training"
VALUES = np.load(GOLDEN / "optimizers.npz")
TOLERANCE = {"float32": 3e-6, "float64": 1e-13}


def golden_nodes(name: str) -> dict[str, list[str]]:
    """Lines by case of a text file of nodes."""
    text = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    sections = [section.strip().split("\n") for section in text.split("# ")[1:]]
    return {lines[0]: lines[1:] for lines in sections}


NODES = golden_nodes("optimizers")


def golden_trajectory(case: str) -> dict[str, np.ndarray]:
    """The values by variable, step by step."""
    prefix = case.replace("/", "\\") + "|"
    return {
        key.removeprefix(prefix).replace("\\", "/"): VALUES[key]
        for key in VALUES.files
        if key.startswith(prefix)
    }


@pytest.mark.parametrize("case", trajectories.cases(), ids="/".join)
def test_trajectory(case: tuple[str, str, str, str]) -> None:
    expected = golden_trajectory("/".join(case))
    found = trajectories.run(tf, case)
    tolerance = TOLERANCE[case[-1]]
    assert set(found[0]) == set(expected)
    for name, golden in expected.items():
        values = np.stack([step[name] for step in found])
        assert values.dtype == golden.dtype
        np.testing.assert_allclose(values, golden, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("case", sorted(NODES))
def test_nodes(case: str) -> None:
    found, expected = trajectories.node_lines(tf, tuple(case.split("/"))), NODES[case]
    if "/resource/" in case:  # where reads of resources are colocated is free
        found, expected = [[line.partition(" loc:@")[0] for line in lines] for lines in (found, expected)]
    assert found == expected


def error_of(build: Any) -> tuple[type, str]:
    with tf.Graph().as_default(), pytest.raises(Exception) as caught:
        build()
    return caught.type, str(caught.value)


def test_errors() -> None:
    train = tf.train

    def loss_and_variables() -> tuple[Any, Any, Any]:
        w, c = tf.get_variable("w", [2]), tf.get_variable("c", [2])
        return tf.reduce_sum(w * w), w, c

    def minimize_unconnected() -> None:
        loss, _, c = loss_and_variables()
        train.GradientDescentOptimizer(0.1).minimize(loss, var_list=[c])

    def apply_none() -> None:
        _, w, c = loss_and_variables()
        train.GradientDescentOptimizer(0.1).apply_gradients([(None, w), (None, c)])

    kind, text = error_of(minimize_unconnected)
    assert kind is ValueError and text.startswith(
        "No gradients provided for any variable, check your graph for ops"
    )
    kind, text = error_of(apply_none)
    assert kind is ValueError and text.startswith(
        "No gradients provided for any variable: [\"<tf.Variable 'w:0'"
    )
    optimizer = train.GradientDescentOptimizer(0.1)
    loss = tf.constant(1.0)
    assert error_of(lambda: optimizer.compute_gradients(tf.constant(1.0), var_list=[])) == (
        ValueError, "No variables to optimize."
    )  # fmt: skip
    assert error_of(lambda: optimizer.apply_gradients([])) == (ValueError, "No variables provided.")
    assert error_of(lambda: optimizer.compute_gradients(loss, gate_gradients=7))[0] is ValueError
    kind, text = error_of(lambda: optimizer.compute_gradients(tf.constant(1), var_list=[loss]))
    assert kind is ValueError and text.startswith("Invalid type tf.int32 for Const:0, expected: [tf.float32")
    kind, _ = error_of(lambda: optimizer.apply_gradients([(tf.zeros([2]), tf.constant(2.0))]))
    assert kind is NotImplementedError
    assert error_of(lambda: train.Optimizer(False, "")) == (ValueError, "Must specify the optimizer name")
    assert error_of(lambda: train.FtrlOptimizer(0.1, learning_rate_power=1.0)) == (
        ValueError, "learning_rate_power 1.000000 needs to be negative or zero"
    )  # fmt: skip
    assert error_of(lambda: train.AdagradOptimizer(0.1, initial_accumulator_value=0.0))[0] is ValueError


def test_a_step_that_is_no_variable_cannot_be_counted_up() -> None:
    def minimize() -> None:
        w = tf.get_variable("w", [])
        tf.train.GradientDescentOptimizer(0.1).minimize(w * w, global_step=tf.constant(43))

    assert error_of(minimize) == (AttributeError, "'Tensor' object has no attribute 'assign_add'")


@pytest.mark.parametrize("gate", [tf.train.Optimizer.GATE_NONE, 1, 2])
def test_gates_give_the_same_gradients(gate: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=tf.constant([1.0, 2.0]))
        b = tf.get_variable("b", initializer=tf.constant([3.0, 4.0]))
        pairs = tf.train.GradientDescentOptimizer(0.1).compute_gradients(
            tf.reduce_sum(w * b), gate_gradients=gate
        )
        session.run(tf.global_variables_initializer())
        values = session.run([gradient for gradient, _ in pairs])
        assert [variable for _, variable in pairs] == [w, b]
        np.testing.assert_array_equal(values, [[3.0, 4.0], [1.0, 2.0]])


def test_slots_and_variables() -> None:
    with tf.Graph().as_default() as graph:
        w = tf.get_variable("w", [2])
        optimizer = tf.train.AdamOptimizer()
        with tf.name_scope("outer"), tf.variable_scope("inner"):
            train = optimizer.apply_gradients([(tf.ones([2]), w)])
        assert train.name == "outer/inner/Adam"
        assert graph.get_collection(tf.GraphKeys.TRAIN_OP) == [train]
        assert optimizer.get_slot_names() == ["m", "v"]
        assert optimizer.get_slot(w, "m").op.name == "inner/w/Adam"
        assert optimizer.get_slot(w, "none") is None
        names = [variable.op.name for variable in optimizer.variables()]
        assert names == [
            "inner/w/Adam",
            "inner/w/Adam_1",
            "outer/inner/beta1_power",
            "outer/inner/beta2_power",
        ]
        assert tf.trainable_variables() == [w]


def test_a_constraint_follows_the_update() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable(
            "w", initializer=tf.constant([1.0, -1.0]), constraint=lambda value: tf.maximum(value, 0.0)
        )
        train = tf.train.GradientDescentOptimizer(0.5).apply_gradients([(tf.constant([1.0, 1.0]), w)])
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_array_equal(session.run(w), [0.5, 0.0])


def test_an_optimizer_of_ones_own() -> None:
    class SignDescent(tf.train.Optimizer):
        def __init__(self) -> None:
            super().__init__(False, "SignDescent")

        def _create_slots(self, var_list: Any) -> None:
            for var in var_list:
                self._zeros_slot(var, "count", self._name)

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            counted = self.get_slot(var, "count").assign_add(tf.ones_like(grad))
            with tf.control_dependencies([counted]):
                return var.assign_sub(tf.sign(grad))

    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=tf.constant([3.0, -3.0]))
        optimizer = SignDescent()
        train = optimizer.minimize(tf.reduce_sum(w * w))
        session.run(tf.global_variables_initializer())
        session.run(train)
        session.run(train)
        np.testing.assert_array_equal(session.run(w), [1.0, -1.0])
        np.testing.assert_array_equal(session.run(optimizer.get_slot(w, "count")), [2.0, 2.0])


@pytest.mark.parametrize("use_resource", [False, True])
def test_ftrl_divides_by_a_rate_of_zero_as_tensors_do(use_resource: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        rate = tf.placeholder(tf.float32, [])
        variable = tf.Variable(np.ones((2, 2), "f"), use_resource=use_resource)
        train = tf.train.FtrlOptimizer(rate).minimize(tf.reduce_sum(variable * variable))
        session.run(tf.global_variables_initializer())
        session.run(train, {rate: 0.0})
        assert np.isnan(session.run(variable)).all()


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_momentum_of_nothing(nesterov: bool, count: int) -> None:
    """A momentum of 0 is a descent whose sum is the last gradient, for one variable and for several."""
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [tf.get_variable(f"x{i}", initializer=[1.0, 2.0]) for i in range(count)]
        optimizer = tf.train.MomentumOptimizer(0.25, 0.0, use_nesterov=nesterov)
        train = optimizer.minimize(tf.add_n([tf.reduce_sum(x * x) for x in variables]))
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(train)
        for x in variables:
            np.testing.assert_allclose(session.run(x), [0.25, 0.5])
            np.testing.assert_allclose(session.run(optimizer.get_slot(x, "momentum")), [1.0, 2.0])
