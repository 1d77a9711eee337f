"""Copies of operations and variables: names and errors are those of TensorFlow 1.15.5 for the same calls."""

import pytest

import flowstone as tf

copy_graph = tf.contrib.copy_graph


@pytest.fixture
def graphs():
    source, target = tf.Graph(), tf.Graph()
    with source.as_default(), tf.name_scope("s"):
        fed = tf.placeholder(tf.float32, [2], name="a")
        variable = tf.Variable([1.0, 2.0], name="v")
        total = tf.add(fed, variable, name="b")
        with tf.control_dependencies([fed]):
            tf.identity(total, name="c")
    source.add_to_collection("foo", variable)
    return source, target, variable


def test_a_variable_is_copied_with_its_collections(graphs):
    _, target, variable = graphs
    copy = copy_graph.copy_variable_to_graph(variable, target, "new")
    assert [op.name for op in target.get_operations()] == [
        "new/s/v/initial_value",
        "new/s/v",
        "new/s/v/Assign",
        "new/s/v/read",
    ]
    keys = target.get_all_collection_keys()
    assert sorted(keys) == ["new/foo", "trainable_variables", "variables"]
    assert all(target.get_collection(key) == [copy] for key in keys)
    assert copy_graph.copy_variable_to_graph(variable, target, "new").name == "new/s/v_1:0"


def test_an_operation_is_copied_with_its_inputs(graphs):
    source, target, variable = graphs
    copy = copy_graph.copy_variable_to_graph(variable, target, "new")
    last = source.get_tensor_by_name("s/c:0")
    found = copy_graph.copy_op_to_graph(last, target, [copy], "new")
    assert found.name == "new/s/c:0"
    assert [op.name for op in found.op.control_inputs] == ["new/s/a"]
    assert [each.name for each in found.op.inputs[0].op.inputs] == ["new/s/a:0", "new/s/v/read:0"]
    assert copy_graph.copy_op_to_graph(last, target, [copy], "new") is found
    assert copy_graph.copy_op_to_graph(last.op, target, [copy], "new") is found.op
    assert copy_graph.copy_op_to_graph(variable, target, [copy], "new").name == "new/s/v:0"
    assert copy_graph.get_copied_op(variable, target, "new").name == "new/s/v:0"
    with target.as_default(), tf.Session() as session:
        session.run(copy.initializer)
        assert session.run(found, {"new/s/a:0": [10.0, 20.0]}).tolist() == [11.0, 22.0]


def test_a_copy_continues_what_is_there(graphs):
    source, target, _ = graphs
    total = copy_graph.copy_op_to_graph(source.get_tensor_by_name("s/b:0"), target, [])
    assert [op.name for op in target.get_operations()] == ["s/a", "s/v", "s/v/read", "s/b"]
    last = copy_graph.copy_op_to_graph(source.get_operation_by_name("s/c"), target, [])
    assert (last.name, last.inputs[0], len(target.get_operations())) == ("s/c", total, 5)


def test_a_loop_is_copied_whole():
    source, target = tf.Graph(), tf.Graph()
    with source.as_default():
        result = tf.while_loop(lambda i: i < 10, lambda i: i * 2, [tf.constant(1)])
    copy = copy_graph.copy_op_to_graph(result, target, [], "copied")
    with target.as_default(), tf.Session() as session:
        assert session.run(copy) == 16


def test_what_cannot_be_copied(graphs):
    source, target, variable = graphs
    with pytest.raises(TypeError):
        copy_graph.copy_variable_to_graph(source.get_tensor_by_name("s/a:0"), target)
    with pytest.raises(TypeError):
        copy_graph.copy_op_to_graph(variable, target, [])
    with pytest.raises(TypeError):
        copy_graph.copy_op_to_graph(3, target, [])
    with pytest.raises(KeyError):
        copy_graph.get_copied_op(variable, target, "none")
