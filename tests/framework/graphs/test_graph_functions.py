"""The functions of the default graph: scopes, collections, conversions."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def entered(*arguments, **keywords) -> str:
    with tf.name_scope(*arguments, **keywords) as prefix:
        return prefix


def test_name_scopes_take_the_default_name_where_there_is_no_name() -> None:
    assert entered("a") == "a/"
    assert entered("a") == "a_1/"
    assert entered("a/") == "a/"
    assert entered(None, "d") == "d/"
    assert entered(None) == entered("") == ""
    assert entered("x", "y", []) == "x/"
    assert tf.name_scope(None, "q").name == "q"


def test_name_scopes_refuse_what_is_no_name() -> None:
    with pytest.raises(ValueError, match="At least one of name"):
        entered(None, None, [1])
    with pytest.raises(TypeError, match="not a string type"):
        entered(None, 3)
    with pytest.raises(ValueError, match="not a valid"):
        entered("a b")


def test_name_scopes_are_entered_in_the_graph_of_their_values(graph) -> None:
    other = tf.Graph()
    with other.as_default():
        theirs = tf.constant(1)
    with tf.name_scope("n", values=[theirs]):
        assert tf.constant(2).graph is other
    assert tf.constant(1).graph is graph
    with pytest.raises(ValueError, match="must be from the same graph as"):
        entered("n", values=[theirs, tf.constant(1)])


def test_operations_go_to_the_graph_of_what_they_take(graph) -> None:
    other = tf.Graph()
    with other.as_default():
        x, v = tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])
    made = [
        tf.exp(x),
        x + 1.0,
        x[0],
        x[:, None],
        tf.concat([x, x], 0),
        tf.concat([v, [3.0]], 0),
        tf.matmul(x[None], x[:, None]),
        tf.assign(v, x),
        tf.cond(x[0] > 0.0, lambda: x, lambda: x),
        tf.map_fn(lambda y: y * 2.0, x),
        tf.gradients(x * x, x)[0],
    ]
    assert {each.graph for each in made} == {other}
    assert graph.get_operations() == []
    with tf.Session(graph=other) as session:
        np.testing.assert_allclose(session.run(made[0]), np.exp([1.0, 2.0]), rtol=1e-6)
        np.testing.assert_array_equal(session.run(made[-2]), [2.0, 4.0])


def test_a_name_scope_can_be_entered_again() -> None:
    scope = tf.name_scope("a")
    with scope as outer, scope as inner:
        assert (outer, inner) == ("a/", "a/a/")
    assert tf.constant(1, name="x").name == "x:0"


def test_op_scope_takes_values_first() -> None:
    with tf.op_scope([], "given", "default") as prefix:
        assert prefix == "given/"
    with tf.op_scope([], None, "default") as prefix:
        assert prefix == "default/"


def test_collections_are_the_default_graphs(graph) -> None:
    tf.add_to_collections(["a", "b", "a"], 3)
    tf.add_to_collection("a", 4)
    assert tf.get_collection("a") == [3, 4]
    tf.get_collection_ref("a").append(5)
    assert graph.get_collection("a") == [3, 4, 5]
    assert graph.get_collection("b") == [3]


def test_scopes_set_devices_containers_and_colocation() -> None:
    with tf.device("/job:a"), tf.device(tf.DeviceSpec(device_type="GPU", device_index=1)):
        x = tf.constant(1, name="x")
    assert x.device == "/job:a/device:GPU:1"
    with tf.colocate_with(x):
        assert tf.constant(4).op.colocation_groups() == [b"loc:@x"]
    with tf.control_dependencies([x]):
        assert tf.no_op().control_inputs == [x.op]
    with tf.container("c"):
        assert tf.Variable(1, use_resource=True).op.get_attr("container") == b"c"


def test_slices_and_sparse_tensors_pass_conversion_unchanged() -> None:
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    assert tf.convert_to_tensor_or_indexed_slices(slices, tf.float32) is slices
    assert tf.convert_to_tensor_or_indexed_slices([1.0, 2.0]).shape.as_list() == [2]
    with pytest.raises(ValueError, match="Incompatible tensor conversion requested"):
        tf.convert_to_tensor_or_indexed_slices(slices, tf.int32)

    value = tf.SparseTensorValue([[0]], [1.0], [3])
    sparse = tf.convert_to_tensor_or_sparse_tensor(value)
    assert isinstance(sparse, tf.SparseTensor)
    assert tf.convert_to_tensor_or_sparse_tensor(sparse) is sparse
    with pytest.raises(RuntimeError, match=r"Sparse dtype mismatch\. Requested: int32,  Actual: float32"):
        tf.convert_to_tensor_or_sparse_tensor(value, tf.int32)


def test_static_values_are_arrays_or_none(graph) -> None:
    constant = tf.constant([1, 2])
    assert tf.get_static_value(3) == 3
    np.testing.assert_array_equal(tf.get_static_value(constant), [1, 2])
    tf.get_static_value(constant)[0] = 5  # one's own
    np.testing.assert_array_equal(tf.get_static_value(constant), [1, 2])
    assert not graph.is_feedable(constant)
    sizes = tf.stack([tf.shape(tf.placeholder(tf.float32, [None, 3]))[0], 2])
    assert tf.get_static_value(sizes) is None
    assert list(tf.get_static_value(sizes, partial=True)) == [None, 2]


def test_tensors_and_variables_are_tensors() -> None:
    assert tf.is_tensor(tf.constant(1))
    assert tf.is_tensor(tf.Variable(1))
    assert not tf.is_tensor(3)
    assert not tf.is_tensor(tf.no_op())
