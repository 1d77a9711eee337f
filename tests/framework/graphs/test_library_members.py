"""Members that libraries use, and a part of a graph copied operation by operation as Edward copies it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import flowstone as tf


def copied(op: tf.Operation, name: str, inputs: list[Any]) -> tf.Operation:
    node_def = copy.deepcopy(op.node_def)
    node_def.name = name
    new = tf.Operation(node_def, op.graph, [], op._output_types[:], [], [], op, copy.deepcopy(op.op_def))
    op.graph._add_op(new)
    for tensor in inputs:
        new._add_input(tensor)
    op.graph._record_op_seen_by_control_dependencies(new)
    return new


def test_a_copied_part_computes_with_other_inputs() -> None:
    with tf.Graph().as_default() as graph:
        x, y = tf.constant([1.0, 2.0]), tf.constant([[3.0, 4.0]])
        total = tf.add_n([tf.tanh(x), x])
        tanh = copied(total.op.inputs[0].op, "copied/Tanh", [y])
        other = copied(total.op, "copied/AddN", [tanh.outputs[0], y])
        assert other.outputs[0].shape == [1, 2] and other._original_op is total.op
        assert graph.get_operation_by_name("copied/AddN") is other is graph._nodes_by_name["copied/AddN"]
        assert graph._nodes_by_id[other._id] is other and tanh.outputs[0].consumers() == [other]
        (slope,) = tf.gradients(other.outputs[0], y)
        with tf.Session() as session:
            np.testing.assert_allclose(session.run(other.outputs[0]), np.tanh([[3, 4]]) + [[3, 4]], rtol=1e-6)
            np.testing.assert_allclose(session.run(slope), 2 - np.tanh([[3.0, 4.0]]) ** 2, rtol=1e-5)


def test_what_does_not_fit() -> None:
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        negative = tf.negative(x).op
        with pytest.raises(ValueError, match="The name 'Neg' is taken"):
            copied(negative, "Neg", [x])
        with pytest.raises(TypeError, match="takes no more than 1 inputs"):
            copied(negative, "twice", [x, x])
        message = tf.NodeDef(name="unknown", op="NoSuchType")
        with pytest.raises(tf.errors.NotFoundError, match="NoSuchType"):
            tf.Operation(message, tf.get_default_graph())
        with tf.Graph().as_default():
            elsewhere = tf.constant(1.0)
        with pytest.raises(ValueError, match="must be from the same graph"):
            copied(negative, "elsewhere", [elsewhere])


def test_members_of_operations_and_graphs() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.constant(2, name="x")
        with tf.control_dependencies([x]), graph.colocate_with(x.op):
            assert list(graph._colocation_stack) == [x.op]
            y = tf.Variable(1.0, name="y").op
        negative = tf.negative(x).op
        assert negative._inputs == [x] and negative._outputs == negative.outputs
        assert (negative._input_types, negative._input_dtypes) == ([tf.int32], [tf.int32])
        assert negative._graph is graph and negative._id_value == negative._id
        assert negative._node_def.op == "Neg" == negative._op_def.name
        assert y._is_stateful and not negative._is_stateful and negative._original_op is None
        waiting = tf.no_op("waiting")
        waiting._add_control_input(x.op)
        assert waiting in x.op._control_outputs and waiting._control_inputs == [x.op]
        waiting._remove_all_control_inputs()
        assert waiting.control_inputs == []
        assert "Neg" in graph._registered_ops and graph._next_id() == graph._version + 1
        assert graph._get_control_flow_context() is None


def test_layers_take_what_becomes_a_tensor() -> None:
    class Drawn:
        """Stands for a random variable of a library."""

        dtype, shape = tf.float32, tf.TensorShape([2, 3])

    tf.register_tensor_conversion_function(
        Drawn, lambda value, dtype=None, name=None, as_ref=False: tf.ones([2, 3])
    )
    with tf.Graph().as_default(), tf.Session() as session:
        outputs = tf.layers.dense(Drawn(), 2, kernel_initializer=tf.ones_initializer())
        session.run(tf.global_variables_initializer())
        assert session.run(outputs).tolist() == [[3, 3], [3, 3]]
