"""no_op, group, tuple, Switch and Merge as nodes."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.control.control_flow import merge, switch, with_dependencies

pytestmark = pytest.mark.usefixtures("graph")


def controls(op):
    return [control.name for control in op.control_inputs]


def test_no_op_and_group_names(graph):
    c = tf.constant(1)
    assert tf.no_op().name == "NoOp" and tf.group().name == "group_deps"
    grouped = tf.group(c, [tf.no_op(), {"a": c}])
    assert grouped.name == "group_deps_1" and controls(grouped) == ["Const", "NoOp_1"]
    assert tf.group(c, name="z").name == "z"
    assert tf.Session().run(grouped) is None


def test_group_goes_by_device():
    with tf.device("/cpu:0"):
        a = tf.constant(1)
    with tf.device("/cpu:1"):
        b = tf.constant(1)
    grouped = tf.group(a, b)
    assert grouped.name == "group_deps" and controls(grouped) == ["group_deps/NoOp", "group_deps/NoOp_1"]
    assert [op.device for op in grouped.control_inputs] == ["/device:CPU:0", "/device:CPU:1"]


def test_group_refuses_other_things():
    with pytest.raises(TypeError, match="Received '3'"):
        tf.group(3)
    with pytest.raises(ValueError, match="Unknown keyword arguments: foo"):
        tf.group(tf.constant(1), foo=3)


def test_tuple_waits_for_all():
    runs = []
    noted = tf.py_func(lambda: runs.append(1), [], [])
    a, b = tf.constant(1), tf.constant(2)
    first, none, second = tf.tuple([a, None, b], control_inputs=[noted])
    assert (
        none is None
        and first.name == "tuple/control_dependency:0"
        and second.name == "tuple/control_dependency_1:0"
    )
    assert controls(first.op) == ["tuple/group_deps"]
    assert controls(first.op.control_inputs[0]) == ["PyFunc", "Const", "Const_1"]
    assert tf.Session().run(second) == 2 and runs == [1]


def test_tuple_of_operations_and_misuse():
    gate, one = tf.tuple([tf.no_op(), tf.constant(1)])
    assert gate.name == "tuple/group_deps_1" and controls(gate) == ["tuple/group_deps", "NoOp"]
    with pytest.raises(ValueError, match="must have at least one Tensor"):
        tf.tuple([None])
    with pytest.raises(TypeError, match="must only contain Operation or Tensor"):
        tf.tuple([one], control_inputs=[3])


def test_with_dependencies_of_slices():
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]), tf.constant([3, 2]))
    late = with_dependencies([tf.no_op()], slices)
    assert isinstance(late, tf.IndexedSlices) and controls(late.values.op) == ["NoOp"]


def test_static_shapes():
    p = tf.placeholder(tf.bool, [])
    on_false, on_true = switch(tf.placeholder(tf.float32, [2, 3]), p)
    assert on_false.shape.as_list() == on_true.shape.as_list() == [2, 3]
    output, index = merge([on_true, tf.placeholder(tf.float32, [2, 4])])
    assert output.shape.as_list() == [2, None] and index.shape.as_list() == [] and index.dtype == tf.int32
    assert merge([on_true, tf.placeholder(tf.float32, [2])])[0].shape.ndims is None
    assert merge([on_true, tf.placeholder(tf.float32)])[0].shape.ndims is None


def test_misuse_of_switch_and_merge():
    x = tf.placeholder(tf.float32, [])
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        switch(x, tf.placeholder(tf.bool, [2]))
    with pytest.raises(TypeError, match="does not match expected type of bool"):
        switch(x, x)
    with pytest.raises(ValueError, match="inputs is None"):
        merge([x, None])
    with pytest.raises(TypeError):
        merge([x, tf.constant(1)])


def test_references_stay_references():
    v = tf.Variable([1.0, 2.0], use_resource=False)
    p = tf.placeholder(tf.bool, [])
    on_false, on_true = switch(v._ref(), p)
    assert on_true.op.type == "RefSwitch" and on_true.dtype.is_ref
    both, _ = merge([on_false, on_true])
    assert both.op.type == "RefMerge" and both.dtype.is_ref
    session = tf.Session()
    session.run(v.initializer)
    np.testing.assert_array_equal(session.run(both, {p: True}), [1, 2])


def test_gradient_of_a_hand_built_branch():
    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [2])
    on_false, on_true = switch(x, p)
    output, _ = merge([on_true * 2.0, on_false])
    (dx,) = tf.gradients(output, x)
    session = tf.Session()
    np.testing.assert_array_equal(session.run(dx, {p: True, x: [1, 2]}), [2, 2])
    np.testing.assert_array_equal(session.run(dx, {p: False, x: [1, 2]}), [1, 1])
