"""Tensors that stay in a session: handles, their lives, feeds of them, and what is refused."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.control.session_tensors import TensorHandle

VALUES = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def held(session: tf.Session, value: object) -> TensorHandle:
    return session.run(tf.get_session_handle(tf.constant(value)))


def test_fetched_handle(session: tf.Session) -> None:
    node = tf.get_session_handle(tf.constant(VALUES))
    assert (node.op.name, node.dtype, node.shape.as_list()) == ("GetSessionHandle", tf.string, [])
    handle = session.run(node)
    assert type(handle) is TensorHandle
    assert handle.handle == str(handle) == "GetSessionHandle;0;/job:localhost/replica:0/task:0/device:CPU:0"
    np.testing.assert_array_equal(handle.eval(), VALUES)
    np.testing.assert_array_equal(handle.to_numpy_array(), VALUES)
    first, inner = session.run([node, {"k": node}])
    assert first is inner["k"]
    assert session.run(node) is not first


@pytest.mark.parametrize(
    "value", [np.int32(5), np.array([b"a", b"b"], object), np.zeros((0, 2)), np.array([True]), VALUES * 1j]
)
def test_values_of_all_kinds(session: tf.Session, value: object) -> None:
    found = held(session, value).eval()
    np.testing.assert_array_equal(found, value)
    assert found.dtype == value.dtype


def test_reading_by_handle(session: tf.Session) -> None:
    handle = held(session, VALUES)
    holder, value = tf.get_session_tensor(handle.handle, tf.float32)
    assert (value.op.type, value.shape.ndims, holder.dtype) == ("GetSessionTensor", None, tf.string)
    result = session.run(value, {holder: handle.handle})
    result[0] = 99
    np.testing.assert_array_equal(session.run(-value, {holder: handle.handle}), -VALUES)
    np.testing.assert_array_equal(handle.eval(), VALUES)


def test_fed_in_place_of_a_value(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32)
    fixed = tf.placeholder(tf.float32, [3])
    handle = held(session, VALUES)
    for _ in range(2):  # planned, and by the runner
        np.testing.assert_array_equal(session.run(x + 1, {x: handle}), VALUES + 1)
        np.testing.assert_array_equal(session.run([fixed * 2], {fixed: handle}), [VALUES * 2])
    np.testing.assert_array_equal(handle.eval(), VALUES)
    whole = tf.placeholder(tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="tensor of int32"):
        session.run(whole + 1, {whole: handle})
    handle.get_raw_handle()
    holder, deleter = tf.delete_session_tensor(handle.handle)
    session.run(deleter, {holder: handle.handle})
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in the session store"):
        session.run(x + 1, {x: handle})


def test_state_is_kept_as_it_was(session: tf.Session) -> None:
    variable = tf.Variable([1.0, 2.0])
    fed = tf.placeholder(tf.float32, [2])
    session.run(variable.initializer)
    array = np.array([3.0, 4.0], np.float32)
    of_variable = session.run(tf.get_session_handle(variable))
    of_feed = session.run(tf.get_session_handle(fed), {fed: array})
    session.run(variable.assign([7.0, 7.0]))
    array[:] = 9
    np.testing.assert_array_equal(of_variable.eval(), [1, 2])
    np.testing.assert_array_equal(of_feed.eval(), [3, 4])


def test_equal_tensors_have_handles_of_their_own(session: tf.Session) -> None:
    x = tf.placeholder_with_default(VALUES, [3])
    one, two = session.run([tf.get_session_handle(x + 1.0), tf.get_session_handle(x + 1.0)])
    assert one.handle != two.handle
    one.delete()
    np.testing.assert_array_equal(two.eval(), VALUES + 1)


def test_freed_with_the_python_object(session: tf.Session) -> None:
    handle = held(session, VALUES)
    text = handle.handle
    holder, value = tf.get_session_tensor(text, tf.float32)
    session.run(value, {holder: text})
    del handle
    gc.collect()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in the session store"):
        session.run(value, {holder: text})


def test_deleted_by_a_node(session: tf.Session) -> None:
    text = held(session, VALUES).get_raw_handle()
    gc.collect()
    holder, value = tf.get_session_tensor(text, tf.float32)
    np.testing.assert_array_equal(session.run(value, {holder: text}), VALUES)
    deleted, deleter = tf.delete_session_tensor(text)
    assert deleter.type == "DeleteSessionTensor"
    session.run(deleter, {deleted: text})
    with pytest.raises(tf.errors.InvalidArgumentError, match="Failed to delete a tensor"):
        session.run(deleter, {deleted: text})


def test_deleted_by_the_handle(session: tf.Session) -> None:
    handle = held(session, VALUES)
    handle.delete()
    for again in (handle.delete, handle.eval):
        with pytest.raises(TypeError, match="may have already been deleted"):
            again()
    with pytest.raises(RuntimeError, match="closed Session"):
        handle = held(session, VALUES)
        session.close()
        handle.eval()


def test_wrong_handles(session: tf.Session) -> None:
    handle = held(session, VALUES)
    holder, value = tf.get_session_tensor(handle.handle, tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="handle 'zz' is not in the session store"):
        session.run(value, {holder: "zz"})
    with pytest.raises(tf.errors.InternalError, match="does not match declared output type int32"):
        session.run(value, {holder: handle.handle})
    with pytest.raises(ValueError):
        tf.get_session_tensor("zz", tf.float32)
    with tf.Session() as other, pytest.raises(tf.errors.InvalidArgumentError, match="session store"):
        other.run(value, {holder: handle.handle})


def test_resource_handles(session: tf.Session) -> None:
    handle = session.run(F.GetSessionHandleV2(tf.constant(VALUES)))
    np.testing.assert_array_equal(handle.eval(), VALUES)


def test_gradients_do_not_flow(session: tf.Session) -> None:
    x = tf.constant(VALUES)
    holder, value = tf.get_session_tensor(held(session, VALUES).handle, tf.float32)
    assert tf.gradients(value, holder) == [None]
    assert tf.get_session_handle(x).op.declaration.name == "GetSessionHandle"
