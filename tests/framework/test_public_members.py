"""Members of graphs, operations and tensors that libraries reach for besides the functions of the API."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def type_of(number: int) -> Any:
    return tf.AttrValue(type=number)


def test_an_operation_of_a_type(graph: tf.Graph) -> None:
    x = tf.constant([1.0, -2.0])
    attrs = {"T": type_of(tf.float32.as_datatype_enum), "_mark": tf.AttrValue(s=b"mine")}
    with tf.name_scope("scope"):
        op = graph.create_op("Neg", [x], [tf.float32], name="mine", attrs=attrs)
    assert (op.name, op.type, op.get_attr("_mark")) == ("scope/mine", "Neg", b"mine")
    assert op.outputs[0].shape.as_list() == [2]
    assert graph.create_op("Neg", [x], name="scope/again/").name == "scope/again"
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(op.outputs[0]), [-1, 2])


def test_operations_with_lists_of_inputs(graph: tf.Graph) -> None:
    x, y, axis = tf.constant([1.0]), tf.constant([2.0]), tf.constant(0)
    joined = graph.create_op("ConcatV2", [x, y, axis], attrs={"N": tf.AttrValue(i=2)})
    total = graph.create_op("AddN", [x, y])
    same = graph.create_op("IdentityN", [x, axis])
    with tf.Session() as session:
        assert session.run(joined.outputs[0]).tolist() == [1, 2]
        assert session.run(total.outputs[0]).tolist() == [3]
    assert [tensor.dtype for tensor in same.outputs] == [tf.float32, tf.int32]


def test_operations_obey_scopes(graph: tf.Graph) -> None:
    x = tf.constant(1.0)
    with tf.device("/cpu:0"), tf.control_dependencies([x]):
        inside = graph.create_op("NoOp", [])
        outside = graph.create_op("NoOp", [], compute_device=False)
    assert inside.control_inputs == [x.op]
    assert inside.device.lower().endswith("cpu:0")
    assert outside.device == ""


def test_operations_that_cannot_be(graph: tf.Graph) -> None:
    x = tf.constant(1.0)
    with pytest.raises(tf.errors.NotFoundError, match="Op type not registered 'Nonsense'"):
        graph.create_op("Nonsense", [x])
    with pytest.raises(TypeError, match=r"Input #1 is not a tensor: 3\.0"):
        graph.create_op("AddN", [x, 3.0])
    with pytest.raises(TypeError, match="Neg does not take 2 inputs"):
        graph.create_op("Neg", [x, x])
    with pytest.raises(TypeError, match="ConcatV2 does not take 2 inputs"):
        graph.create_op("ConcatV2", [x, x], attrs={"N": tf.AttrValue(i=2)})
    with pytest.raises(TypeError, match="float64"):
        graph.create_op("Neg", [x], attrs={"T": type_of(tf.float64.as_datatype_enum)})
    with pytest.raises(ValueError, match="'int' when"):
        graph.create_op("Neg", [x], attrs={"T": tf.AttrValue(i=1)})
    with tf.Graph().as_default() as other, pytest.raises(ValueError, match="same graph"):
        other.create_op("Neg", [x])


def test_the_seed_of_a_graph(graph: tf.Graph) -> None:
    assert graph.seed is None
    tf.set_random_seed(3)
    assert graph.seed == 3
    graph.seed = 5
    assert tf.get_seed(None) == (5, 0)
    assert isinstance(tf.Graph.seed, property)


def test_where_an_operation_was_created() -> None:
    op = tf.constant(1.0).op
    frames = op.traceback_with_start_lines
    assert [frame[:4] for frame in frames] == op.traceback
    _, line, function, _, start = next(each for each in reversed(frames) if each[0] == __file__)
    assert function == "test_where_an_operation_was_created"
    assert line == start + 1


def test_a_class_may_take_the_operators_of_tensors() -> None:
    class Wrapped:
        def __init__(self, tensor: tf.Tensor) -> None:
            self.tensor = tensor

    def forwarded(name: str) -> Any:
        return lambda self, *operands: getattr(self.tensor, name)(*operands)

    assert {"__add__", "__rmul__", "__getitem__", "__invert__"} <= tf.Tensor.OVERLOADABLE_OPERATORS
    assert "__eq__" not in tf.Tensor.OVERLOADABLE_OPERATORS
    for name in tf.Tensor.OVERLOADABLE_OPERATORS:
        setattr(Wrapped, name, forwarded(name))
    x = Wrapped(tf.constant([1.0, 2.0]))
    with tf.Session() as session:
        assert session.run([(2.0 * x - 1.0)[1], -x[0], x > 1.5])[:2] == [3, -1]


def test_a_tensor_has_no_length_to_ask_for() -> None:
    tensor = tf.placeholder(tf.float32, [2], name="of_no_length")
    assert not hasattr(tensor, "__len__")  # what libraries ask to tell a list of tensors
    with pytest.raises(TypeError, match=r"symbolic Tensor of_no_length:0; use tf\.shape"):
        len(tensor)


def test_an_object_that_knows_tensors_is_asked_for_the_operation() -> None:
    class Scaled:
        def __rmul__(self, tensor: Any) -> Any:
            return 3 * tensor

    with tf.Session() as session:
        assert session.run(tf.constant(2.0) * Scaled()) == 6  # type: ignore[operator]
    with pytest.raises(TypeError):
        tf.constant(2.0) + Scaled()  # type: ignore[operator]
    with pytest.raises(TypeError, match="Expected int32, but got a of type 'str'"):
        tf.constant(2) * "a"  # type: ignore[operator]
