"""`tf.contrib.eager` in graphs: what it shares with the public names, and what it refuses."""

from __future__ import annotations

import pytest

import flowstone as tf

tfe = tf.contrib.eager


def test_functions_of_graphs() -> None:
    assert not tfe.executing_eagerly()
    assert tfe.py_func is tf.py_function
    assert tfe.num_gpus() == sum("GPU:" in name for name in tfe.list_devices())
    assert any("CPU:0" in name for name in tfe.list_devices())
    with tf.Graph().as_default():
        variable = tfe.Variable(1.0, name="v")
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer.minimize(variable * 2.0)
        assert [each.op.name for each in tfe.get_optimizer_variables(optimizer)] == ["v/Momentum"]


def test_tests_run_in_the_graph() -> None:
    ran = []

    @tfe.run_all_tests_in_graph_and_eager_modes
    class Case(tf.test.TestCase):
        @tfe.run_test_in_graph_and_eager_modes
        def test_sum(self) -> None:
            ran.append(self.evaluate(tf.constant(1) + 1))

    Case("test_sum").debug()
    assert ran == [2]


def test_the_program_ends_as_with_app_run() -> None:
    with pytest.raises(SystemExit):
        tfe.run(lambda argv: 0, ["x"])


@pytest.mark.parametrize(
    "name",
    [
        "EagerVariableStore", "Iterator", "Network", "Sequential", "add_execution_callback",
        "async_wait", "clear_execution_callbacks", "connect_to_remote_host", "enable_remote_eager_execution",
        "gradients_function", "implicit_gradients", "implicit_value_and_gradients", "set_execution_mode",
        "value_and_gradients_function",
    ],
)  # fmt: skip
def test_eager_values_are_refused(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"{name}: use "):
        getattr(tfe, name)()


def test_the_import_of_programs() -> None:
    assert tfe.python.tfe.defun is tfe.defun
