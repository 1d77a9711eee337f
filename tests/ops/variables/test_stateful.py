"""State whose life no op table case shows: temporaries, destroyed resources, sharing, old graphs."""

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

pytestmark = pytest.mark.usefixtures("graph")


def test_a_temporary_variable_lives_in_one_step() -> None:
    temporary = F.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="t")
    total = F.AssignAdd(F.Assign(temporary, [1.0, 2.0]), [1.0, 1.0])
    value = F.DestroyTemporaryVariable(total, var_name="t")
    with tf.Session() as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run(value), [2.0, 3.0])


def test_a_destroyed_resource_is_uninitialised() -> None:
    variable = tf.Variable(1.0, use_resource=True)
    destroy, strict = (
        F.DestroyResourceOp(variable.handle, ignore_lookup_error=ignore) for ignore in (True, False)
    )
    with tf.Session() as session:
        session.run(variable.initializer)
        session.run(destroy)
        assert not session.run(variable.is_initialized())
        session.run(destroy)
        with pytest.raises(tf.errors.NotFoundError):
            session.run(strict)


def test_one_shared_name_is_one_variable() -> None:
    first, second = (F.VarHandleOp(shape=[], dtype=tf.float32, shared_name="w", name=name) for name in "ab")
    assign, read = F.AssignVariableOp(first, 3.0), F.ReadVariableOp(second, dtype=tf.float32)
    with tf.Session() as session:
        session.run(assign)
        assert session.run(read) == 3.0


def test_a_scalar_shape_of_an_old_variable_says_nothing() -> None:
    assert F.Variable(shape=[], dtype=tf.float32).shape.ndims is None
    assert F.Variable(shape=[2], dtype=tf.float32).shape.as_list() == [2]
    assert F.VariableV2(shape=[], dtype=tf.float32).shape.as_list() == []


def test_the_shape_of_a_handle_is_seen_through_identities() -> None:
    variable = tf.Variable([1.0, 2.0], use_resource=True)
    handle = F.Identity(variable.handle)
    assert F.ReadVariableOp(handle, dtype=tf.float32).shape.as_list() == [2]
    with pytest.raises(ValueError, match=r"wrong dtype\. Expected float32 got int32"):
        F.ReadVariableOp(handle, dtype=tf.int32)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
def test_unsigned_integers_wrap_around(dtype: type) -> None:
    variable = tf.Variable(np.array([1, 2], dtype))
    update = variable.assign_sub(np.array([2, 1], dtype))
    rows = tf.scatter_add(variable, [0, 0], np.array([1, 1], dtype))
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(update).tolist() == [np.iinfo(dtype).max, 1]
        assert session.run(rows).tolist() == [1, 1]


def test_a_value_in_use_outlives_a_later_update() -> None:
    variable = tf.Variable([1.0, 2.0], use_resource=True)
    before = variable.read_value()
    with tf.control_dependencies([before]):
        update = variable.assign_add([1.0, 1.0], read_value=False)
    with tf.control_dependencies([update]):
        product = before * 10.0
    with tf.Session() as session:
        session.run(variable.initializer)
        np.testing.assert_array_equal(session.run(product), [10.0, 20.0])
        np.testing.assert_array_equal(session.run(variable), [2.0, 3.0])


@pytest.mark.parametrize("dtype", [tf.float32, tf.string, tf.bfloat16])
def test_a_reference_variable_without_elements_needs_no_initialisation(dtype: tf.DType) -> None:
    def none(shape: tuple[int, ...], **_: object) -> tf.Tensor:
        return tf.constant([], dtype, shape)

    variable = tf.get_variable("v", [2, 0], dtype, initializer=none)
    resource = tf.get_variable("r", [2, 0], dtype, initializer=none, use_resource=True)
    with tf.Session() as session:
        assert session.run(variable).shape == (2, 0)
        assert session.run(tf.is_variable_initialized(variable))
        assert session.run(tf.report_uninitialized_variables()).tolist() == [b"r"]
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(resource)
