"""The session of Keras, its graph's learning phase and names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import flowstone as tf
from flowstone.keras import sessions, variables


@pytest.fixture(autouse=True)
def _unchanged(graph: tf.Graph) -> Iterator[None]:
    yield
    sessions.set_session(None)
    sessions.manual_variable_initialization(False)


def test_the_session_is_the_default_or_the_chosen_or_one_of_the_graph() -> None:
    own = sessions.get_session()
    assert own.graph is tf.get_default_graph() is sessions.get_graph()
    assert sessions.get_session() is own
    chosen = tf.Session()
    sessions.set_session(chosen)
    assert sessions.get_session() is chosen
    with tf.Session() as default:
        assert sessions.get_session() is default


def test_variables_are_initialised_once_unless_it_is_manual() -> None:
    first = variables.variable([1.0, 2.0])
    np.testing.assert_array_equal(variables.get_value(first), [1, 2])
    variables.set_value(first, [3.0, 4.0])
    variables.variable(5.0)
    np.testing.assert_array_equal(variables.get_value(first), [3, 4])
    sessions.manual_variable_initialization(True)
    late = variables.variable(6.0)
    with pytest.raises(tf.errors.FailedPreconditionError):
        variables.get_value(late)


def test_names_are_counted_by_graph() -> None:
    with tf.Graph().as_default():
        assert sessions.get_uid("dense") == 1
    assert [sessions.get_uid("dense") for _ in range(3)] == [1, 2, 3]
    assert sessions.get_uid("conv") == 1
    sessions.reset_uids()
    assert sessions.get_uid("dense") == 1


def test_the_learning_phase_is_a_placeholder_or_chosen() -> None:
    phase = sessions.learning_phase()
    assert phase is sessions.symbolic_learning_phase()
    assert (phase.name, phase.dtype) == ("keras_learning_phase:0", tf.bool)
    with tf.Session() as session:
        assert not session.run(phase)
        assert session.run(phase, {phase: True})
    with sessions.learning_phase_scope(1):
        assert sessions.learning_phase() == 1
    assert sessions.learning_phase() is phase
    sessions.set_learning_phase(0)
    assert sessions.learning_phase() == 0
    with pytest.raises(ValueError, match="0 or 1"):
        sessions.set_learning_phase(2)


def test_checkpoints_of_objects_are_made_in_keras_session(tmp_path: Path) -> None:
    variable = tf.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(variable=variable)
    path = checkpoint.save(str(tmp_path / "c"))
    session = sessions.get_session()
    session.run(tf.assign(variable, [0.0, 0.0]))
    checkpoint.restore(path).assert_consumed().run_restore_ops()
    np.testing.assert_array_equal(session.run(variable), [1.0, 2.0])
