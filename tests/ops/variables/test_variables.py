"""Variables of both kinds: the nodes they add, their values, updates, messages and errors, as
TensorFlow's.
"""

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.variables.variable_creation import variable_creator_scope

pytestmark = pytest.mark.usefixtures("graph")

KINDS = pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])


def nodes(graph: tf.Graph) -> list[str]:
    """``name type`` of every operation."""
    return [f"{op.name} {op.type}" for op in graph.get_operations()]


def test_a_reference_variable_is_four_nodes(graph: tf.Graph) -> None:
    variable = tf.Variable([1.0, 2.0])
    assert nodes(graph) == [
        "Variable/initial_value Const",
        "Variable VariableV2",
        "Variable/Assign Assign",
        "Variable/read Identity",
    ]
    assert repr(variable) == "<tf.Variable 'Variable:0' shape=(2,) dtype=float32_ref>"
    assert variable.initializer.name == "Variable/Assign"
    assert variable.initializer.colocation_groups() == [b"loc:@Variable"]
    assert variable.value().name == "Variable/read:0"


def test_a_resource_variable_is_five_nodes(graph: tf.Graph) -> None:
    variable = tf.Variable([1.0, 2.0], use_resource=True)
    assert nodes(graph) == [
        "Variable/Initializer/initial_value Const",
        "Variable VarHandleOp",
        "Variable/IsInitialized/VarIsInitializedOp VarIsInitializedOp",
        "Variable/Assign AssignVariableOp",
        "Variable/Read/ReadVariableOp ReadVariableOp",
    ]
    assert repr(variable) == "<tf.Variable 'Variable:0' shape=(2,) dtype=float32>"
    assert variable.value().name == "ReadVariableOp:0"
    assert graph.get_operation_by_name("Variable/Initializer/initial_value").colocation_groups() == [
        b"loc:@Variable"
    ]


@KINDS
def test_a_function_makes_the_initial_value_in_a_scope_of_its_own(graph: tf.Graph, resource: bool) -> None:
    with tf.name_scope("a"):
        variable = tf.Variable(lambda: tf.ones([2, 3]), name="w", use_resource=resource)
    assert variable.initial_value.name == "a/w/Initializer/ones:0"
    assert variable.initial_value.op.colocation_groups() == [b"loc:@a/w"]
    assert variable.shape.as_list() == [2, 3]


@KINDS
def test_creation_forgets_control_dependencies(graph: tf.Graph, resource: bool) -> None:
    with tf.control_dependencies([tf.constant(1)]):
        variable = tf.Variable(2.0, use_resource=resource)
    assert variable.initializer.control_inputs == []
    assert variable.op.control_inputs == []


@KINDS
def test_updates_and_reads(resource: bool) -> None:
    variable = tf.Variable([1.0, 2.0], use_resource=resource)
    increment = variable.assign_add([1.0, 1.0])
    with tf.control_dependencies([increment.op]):
        after = variable.read_value()
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value Variable"):
            session.run(variable.read_value())
        session.run(variable.initializer)
        np.testing.assert_array_equal(session.run(after), [2.0, 3.0])
        np.testing.assert_array_equal(session.run(variable.assign_sub([1.0, 0.0])), [1.0, 3.0])
        np.testing.assert_array_equal(session.run(variable.assign([7.0, 8.0])), [7.0, 8.0])
        np.testing.assert_array_equal(session.run(variable * 2.0 - 1.0), [13.0, 15.0])
        variable.load([5.0, 6.0], session)
        np.testing.assert_array_equal(variable.eval(session), [5.0, 6.0])


def test_a_resource_read_is_a_value_and_a_reference_read_is_the_buffer() -> None:
    for resource, expected in ((False, 2.0), (True, 1.0)):
        variable = tf.Variable(1.0, use_resource=resource)
        before = variable.value()
        with tf.control_dependencies([before]):
            update = variable.assign_add(1.0)
        with tf.control_dependencies([update.op]):
            late = before + 0.0 if resource else tf.identity(before)
        with tf.Session() as session:
            session.run(variable.initializer)
            assert session.run(late) == expected


@KINDS
def test_collections(graph: tf.Graph, resource: bool) -> None:
    first = tf.Variable(1.0, use_resource=resource)
    second = tf.Variable(1.0, use_resource=resource, trainable=False, collections=["mine"])
    assert tf.global_variables() == [first] and tf.trainable_variables() == [first]
    assert graph.get_collection("mine") == [second]
    assert tf.global_variables("Var") == [first] and tf.global_variables("x") == []


def test_variables_may_depend_on_variables_in_any_order() -> None:
    first = tf.Variable(1.0)
    second = tf.Variable(first * 2.0)
    third = tf.Variable(second + 1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([first, second, third]) == [1.0, 2.0, 3.0]


def test_copied_initial_values_are_named_after_the_variable(graph: tf.Graph) -> None:
    first = tf.Variable(1.0)
    second = tf.Variable(first.value() * 2.0)
    assert second.initializer.inputs[1].name == "mul_Variable_1:0"


@KINDS
def test_uninitialised_variables_are_reported(resource: bool) -> None:
    first = tf.Variable(1.0, use_resource=resource, name="a")
    tf.Variable(1.0, use_resource=resource, name="b")
    missing, flag = tf.report_uninitialized_variables(), tf.is_variable_initialized(first)
    everything = tf.assert_variables_initialized()
    with tf.Session() as session:
        assert session.run(missing).tolist() == [b"a", b"b"]
        session.run(first.initializer)
        assert session.run(missing).tolist() == [b"b"]
        assert session.run(flag)
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(everything)


@KINDS
def test_count_up_to(resource: bool) -> None:
    variable = tf.Variable(0, use_resource=resource)
    count = variable.count_up_to(2)
    with tf.Session() as session:
        session.run(variable.initializer)
        assert [session.run(count), session.run(count)] == [0, 1]
        with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 2"):
            session.run(count)


@KINDS
def test_sliced_assignment_of_words(resource: bool) -> None:
    words = tf.Variable(["a", "b", "c"], use_resource=resource)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(words[1:].assign(["y", "z"]))
        assert session.run(words).tolist() == [b"a", b"y", b"z"]
        session.run(words[::-1].assign(["1", "2", "3"]))
        assert session.run(words).tolist() == [b"3", b"2", b"1"]


@pytest.mark.parametrize("resource", [False, True])
def test_sliced_assignment(resource: bool) -> None:
    variable = tf.Variable([[1.0, 2.0], [3.0, 4.0]], use_resource=resource)
    part, update = variable[1], variable[0].assign([8.0, 9.0])
    with tf.Session() as session:
        session.run(variable.initializer)
        np.testing.assert_array_equal(session.run(part), [3.0, 4.0])
        np.testing.assert_array_equal(session.run(update), [[8.0, 9.0], [3.0, 4.0]])


@pytest.mark.parametrize("resource", [False, True])
def test_updates_by_the_class(resource: bool) -> None:
    v = tf.Variable([1.0, 2.0], use_resource=resource)
    n = tf.Variable(3, use_resource=resource)
    rows = tf.IndexedSlices(tf.constant([0.5]), tf.constant([1]))
    tf.Variable.set_shape(v, [2])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(tf.Variable.assign(v, [3.0, 4.0])).tolist() == [3, 4]
        assert session.run(tf.Variable.assign_add(v, [1.0, 1.0])).tolist() == [4, 5]
        assert session.run(tf.Variable.assign_sub(v, [0.0, 1.0])).tolist() == [4, 4]
        assert session.run(tf.Variable.scatter_sub(v, rows)).tolist() == [4, 3.5]
        assert session.run(tf.Variable.scatter_nd_add(v, [[0]], [1.0])).tolist() == [5, 3.5]
        assert session.run(tf.Variable.count_up_to(n, 5)) == 3
        assert session.run(n) == 4
    with pytest.raises(TypeError, match="sparse_delta is not IndexedSlices"):
        v.scatter_sub([1.0])


@KINDS
def test_scatters(resource: bool) -> None:
    variable = tf.Variable([[1.0, 2.0], [3.0, 4.0]], use_resource=resource)
    delta = tf.IndexedSlices(tf.constant([[1.0, 1.0]]), tf.constant([1]))
    updates = [
        (tf.scatter_update(variable, [0], [[5.0, 6.0]]), [[5, 6], [3, 4]]),
        (variable.scatter_sub(delta), [[5, 6], [2, 3]]),
        (variable.scatter_add(delta), [[5, 6], [3, 4]]),
        (tf.scatter_nd_add(variable, [[0, 1]], [4.0]), [[5, 10], [3, 4]]),
        (tf.scatter_mul(variable, [1], 2.0), [[5, 10], [6, 8]]),
    ]
    with tf.Session() as session:
        session.run(variable.initializer)
        for update, expected in updates:
            np.testing.assert_array_equal(session.run(update), expected)
    with pytest.raises(TypeError, match="sparse_delta is not IndexedSlices"):
        variable.scatter_sub(3.0)


@KINDS
def test_gradients_reach_the_variable(resource: bool) -> None:
    variable = tf.Variable([1.0, 2.0], use_resource=resource)
    (gradient,) = tf.gradients(variable * variable, [variable])
    with tf.Session() as session:
        session.run(variable.initializer)
        np.testing.assert_array_equal(session.run(gradient), [2.0, 4.0])


def test_gradient_of_rows_of_a_resource_is_sparse() -> None:
    variable = tf.Variable(np.ones((3, 2), np.float32), use_resource=True)
    (gradient,) = tf.gradients(variable.sparse_read([2, 0, 2]), [variable])
    assert isinstance(gradient, tf.IndexedSlices)
    with tf.Session() as session:
        assert session.run(gradient.indices).tolist() == [2, 0, 2]


@pytest.mark.parametrize("kind", ["update", "add", "sub", "mul", "div", "max", "min"])
def test_gradients_through_scatters(kind: str) -> None:
    """Only of some does TensorFlow say that nothing flows through them; handles have the read's gradient."""
    for resource in (False, True):
        w = tf.Variable(tf.ones([3, 2]), use_resource=resource)
        rows = tf.ones([1, 2])
        scattered = tf.convert_to_tensor(getattr(tf, f"scatter_{kind}")(w, [1], rows))
        if not resource and kind in ("update", "max", "min"):
            with pytest.raises(LookupError, match=f"op type: Scatter{kind.title()}"):
                tf.gradients(scattered * 2.0, [w, rows])
            continue
        by_variable, by_rows = tf.gradients(scattered * 2.0, [w, rows])
        assert by_rows is None and (by_variable is not None) is resource


@KINDS
def test_batched_scatter(resource: bool) -> None:
    w = tf.Variable(tf.zeros([2, 3]), use_resource=resource)
    updated = tf.batch_scatter_update(w, tf.constant([[0, 2], [1, 1]]), tf.constant([[1.0, 2.0], [3.0, 3.0]]))
    v = tf.Variable(tf.zeros([3]), use_resource=resource)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(tf.convert_to_tensor(updated)).tolist() == [[1, 0, 2], [0, 3, 0]]
        flat = tf.batch_scatter_update(v, [2, 0], [5.0, 7.0])
        assert session.run(tf.convert_to_tensor(flat)).tolist() == [7, 0, 5]


@KINDS
def test_messages_there_and_back(graph: tf.Graph, resource: bool) -> None:
    variable = tf.Variable(1.0, name="w", use_resource=resource)
    message = variable.to_proto()
    assert message.variable_name == "w:0" and message.initializer_name == "w/Assign"
    assert message.snapshot_name == ("w/Read/ReadVariableOp:0" if resource else "w/read:0")
    assert message.is_resource == resource and message.trainable
    copy = tf.Variable.from_proto(message)
    assert type(copy) is type(variable) and copy.op is variable.op
    assert copy.value().dtype == tf.float32 and copy.shape == variable.shape
    assert variable.to_proto("elsewhere") is None


@KINDS
def test_errors_of_creation(resource: bool) -> None:
    with pytest.raises(ValueError, match="must be specified"):
        tf.Variable(use_resource=resource)
    with pytest.raises(ValueError, match="callable"):
        tf.Variable(1.0, constraint=3, use_resource=resource)
    with pytest.raises(ValueError, match="collections argument"):
        tf.Variable(1.0, collections="variables", use_resource=resource)
    with pytest.raises(TypeError, match="not iterable"):
        iter(tf.Variable([1.0], use_resource=resource))


def test_the_truth_of_a_variable() -> None:
    assert tf.Variable(0.0, use_resource=False)
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        bool(tf.Variable(0.0, use_resource=True))


def test_a_reference_needs_a_known_shape_unless_told() -> None:
    value = tf.placeholder(tf.float32, [None, 2])
    with pytest.raises(ValueError, match="initial_value must have a shape specified"):
        tf.Variable(value)
    assert tf.Variable(value, validate_shape=False).shape.ndims is None


@KINDS
def test_values_of_other_shapes_and_types_are_refused(resource: bool) -> None:
    variable = tf.Variable([1.0, 2.0], use_resource=resource)
    with pytest.raises(ValueError):
        variable.assign([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="Incompatible type conversion"):
        tf.convert_to_tensor(variable, tf.int32)


@KINDS
def test_conditionals_lift_functions_out_and_refuse_tensors(resource: bool) -> None:
    made = []

    def branch() -> tf.Tensor:
        made.append(tf.Variable(lambda: tf.ones([2]), use_resource=resource))
        return made[0] + 1.0

    result = tf.cond(tf.constant(True), branch, lambda: tf.zeros([2]))
    with tf.Session() as session:
        session.run(made[0].initializer)
        np.testing.assert_array_equal(session.run(result), [2.0, 2.0])
    with pytest.raises(ValueError, match="control-flow"):
        tf.cond(
            tf.constant(True),
            lambda: tf.Variable(tf.ones([2]), use_resource=resource) + 1.0,
            lambda: tf.zeros([2]),
        )


def test_creators_see_and_change_the_arguments() -> None:
    seen = []

    def creator(following: object, **arguments: object) -> object:
        seen.append(arguments["name"])
        return following(**{**arguments, "trainable": False})  # type: ignore[operator]

    with variable_creator_scope(creator):
        variable = tf.Variable(1.0, name="w")
    assert seen == ["w"] and not variable.trainable and tf.trainable_variables() == []


def test_caching_device(graph: tf.Graph) -> None:
    variable = tf.Variable(1.0, caching_device="/cpu:0")
    assert variable.value().device == "/device:CPU:0" and variable.value().op.type == "Identity"
    cached = tf.Variable(1.0, caching_device="/cpu:0", use_resource=True)
    assert cached.value() is cached.value() and cached.value().name == "Variable_1/Read/Identity:0"


@KINDS
def test_modes_of_copies_are_checked(resource: bool) -> None:
    """As TensorFlow 1.15: members and their numbers; what is read together is not trained."""
    for make in (
        lambda **given: tf.Variable(1.0, **given),
        lambda **given: tf.get_variable("v", [], **given),
    ):
        with pytest.raises(ValueError, match="Invalid variable aggregation mode: x for variable: "):
            make(aggregation="x", use_resource=resource)
        with pytest.raises(ValueError, match="Invalid variable synchronization mode: 7 for variable: "):
            make(synchronization=7, use_resource=resource)
    variable = tf.get_variable("w", [], synchronization=3, aggregation=None, use_resource=resource)
    assert variable.synchronization is tf.VariableSynchronization.ON_READ and not variable.trainable
    assert variable.aggregation is tf.VariableAggregation.NONE


def test_what_is_placed_with_a_resource_variable_is_placed_with_its_handle() -> None:
    with tf.Graph().as_default() as graph:
        variable = tf.get_variable("resource", [2], use_resource=True)
        with graph.colocate_with(variable):
            assert tf.constant(1).op.colocation_groups() == [b"loc:@resource"]
