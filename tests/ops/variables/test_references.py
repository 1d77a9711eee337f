"""References that are handed on: what is assigned through them reaches the variable."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("is_fed", [False, True])
def test_assigning_to_the_chosen_variable(place: int, is_fed: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one, two = tf.Variable([1.0, 2.0], use_resource=False), tf.Variable([3.0, 4.0], use_resource=False)
        session.run(tf.global_variables_initializer())
        index = tf.placeholder_with_default(place, []) if is_fed else place
        chosen = F.RefSelect(index, [one._ref(), two._ref()])
        assert chosen.dtype.is_ref
        before = two + 1.0
        with tf.control_dependencies([before]):
            update = tf.assign(chosen, [7.0, 8.0])
        with tf.control_dependencies([update]):
            after = [one.read_value(), two.read_value()]
        first, found = session.run([before, after])
        expected = [[1, 2], [3, 4]]
        assert first.tolist() == [4, 5]
        expected[place] = [7, 8]
        assert [value.tolist() for value in found] == expected
        assert [value.tolist() for value in session.run([one, two])] == expected


def test_other_shapes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        one, two = tf.Variable([1.0], use_resource=False), tf.Variable([3.0, 4.0], use_resource=False)
        session.run(tf.global_variables_initializer())
        chosen = F.RefSelect(1, [one._ref(), two._ref()])
        assert chosen.shape.ndims is None
        assert session.run(chosen + 1.0).tolist() == [4, 5]


def test_identity_of_a_reference() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable([1.0, 2.0], use_resource=False)
        same = F.RefIdentity(variable._ref())
        assert not session.run(tf.is_variable_initialized(same))
        session.run(variable.initializer)
        session.run(tf.assign_add(same, [1.0, 1.0]))
        assert session.run(variable).tolist() == [2, 3]
        gradient = tf.gradients(same, variable)
        assert session.run(gradient)[0].tolist() == [1, 1]
