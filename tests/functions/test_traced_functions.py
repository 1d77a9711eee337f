"""`tf.function` in graph mode: values, traces and errors are those of TensorFlow 1.15.5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.functions.initialised import run

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def op_types() -> list[tuple[str, str]]:
    return [(op.name, op.type) for op in tf.get_default_graph().get_operations()]


def test_calls_of_one_kind_share_a_trace() -> None:
    traces = []

    @tf.function
    def f(x: Any, y: Any = 2) -> Any:
        traces.append(x)
        return {"a": x * y, "b": (x, [x + 1])}

    results = [f(tf.constant(3.0)), f(tf.constant(4.0)), f(3.0, y=3), f(3.0, 3), f(tf.zeros([2]))]
    results += [f(tf.constant(1)), f(np.float32(3)), f(np.zeros(2)), f(np.ones(2))]
    assert len(traces) == 6  # as TensorFlow 1.15.5
    assert run(results[0]) == {"a": 6.0, "b": (3.0, [4.0])}
    assert run(results[3]["a"]) == 9.0
    assert results[0]["a"].name == "PartitionedCall:0"


def test_a_call_without_results_is_its_operation() -> None:
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def f(x: Any) -> None:
        v.assign_add(x)

    call = f(1.0)
    assert call.name == "PartitionedFunctionCall"
    assert call.type == "StatefulPartitionedCall"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(call)
        assert session.run(v) == 2.0
    assert [tf.function(lambda given=each: given)() for each in ((), {}, ([None],))] == [(), {}, ([None],)]


def test_effects_happen_in_the_order_of_the_program() -> None:
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def f(x: Any) -> Any:
        before = v.read_value()
        v.assign_add(x)
        added = v.read_value()
        tf.cond(x > 1.0, lambda: v.assign(10.0), lambda: v.assign(20.0))
        chosen = v.read_value()

        def body(i: Any) -> Any:
            with tf.control_dependencies([v.assign_add(1.0)]):
                return i + 1

        tf.while_loop(lambda i: i < 3, body, [0])
        return before, added, chosen, v.read_value()

    first = f(tf.constant(2.0))
    with tf.control_dependencies(list(first)):
        second = f(tf.constant(0.0))
    assert run([first, second]) == [(1, 3, 10, 13), (13, 13, 20, 23)]


def test_an_effect_happens_when_only_the_result_is_fetched(capfd: Any) -> None:
    @tf.function
    def f(x: Any) -> Any:
        tf.print("first", x)
        tf.print("second", x)
        return x + 1

    assert run(f(tf.constant(1))) == 2
    assert capfd.readouterr().err == "first 1\nsecond 1\n"


def test_an_assertion_fails_the_step() -> None:
    @tf.function
    def f(x: Any) -> Any:
        tf.debugging.assert_greater(x, 0.0)
        return x * 1.0

    with pytest.raises(tf.errors.InvalidArgumentError, match="Condition x > y did not hold"):
        run(f(tf.constant(-1.0)))


def test_reference_variables_and_tensors_from_outside_are_captured() -> None:
    v, p = tf.Variable(2.0, use_resource=False), tf.constant(3.0)

    @tf.function
    def f(x: Any) -> Any:
        return v * x * p, 2 * p, tf.cond(p > 2, lambda: p, lambda: p * 2)

    assert run(f(5.0)) == (30.0, 6.0, 3.0)
    concrete = f.get_concrete_function(5.0)
    assert [x.name for x in concrete.captured_inputs] == ["Variable/read:0", "Const:0"]


def test_variables_are_created_by_the_first_call_only() -> None:
    kept: dict[str, Any] = {}

    @tf.function
    def once(x: Any) -> Any:
        if "v" not in kept:
            kept["v"] = tf.Variable(3.0, name="vv")
        return kept["v"] * x

    @tf.function
    def always(x: Any) -> Any:
        return tf.Variable(3.0) * x

    results = [once(2.0), once(tf.zeros([2]))]
    assert [v.name for v in tf.global_variables()] == ["vv:0"]
    assert run(results[0]) == 6.0
    with pytest.raises(ValueError, match="tried to create variables on non-first call"):
        always(2.0)


def test_an_initial_value_is_lifted_unless_it_needs_an_argument() -> None:
    kept: list[Any] = []

    @tf.function
    def f(x: Any, from_argument: bool) -> Any:
        if not kept:
            kept.append(tf.Variable((x if from_argument else tf.constant(2.0)) * 4.0))
        return kept[0] + x

    with pytest.raises(ValueError, match="Unable to lift tensor"):
        f(tf.constant(1.0), True)
    kept.clear()
    with tf.Graph().as_default():
        assert run(f(tf.constant(1.0), False)) == 9.0


def test_first_and_second_gradients_go_through() -> None:
    x, w = tf.constant([1.0, 2.0]), tf.Variable(3.0, use_resource=True)

    @tf.function
    def f(x: Any) -> Any:
        return w * x * x

    y = f(x)
    dx, dw = tf.gradients(y, [x, w])
    (ddx,) = tf.gradients(dx, x)
    assert dw.shape == ()
    found = run([y, dx, dw, ddx])
    np.testing.assert_array_equal(found[0], [3, 12])
    np.testing.assert_array_equal(found[1], [6, 12])
    assert found[2] == 5
    np.testing.assert_array_equal(found[3], [6, 6])


def test_gradients_go_through_a_loop_of_the_body() -> None:
    x, v = tf.constant(2.0), tf.Variable(1.0, use_resource=True)

    @tf.function
    def f(x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x * v), [0, x])[1]

    y = f(x)
    assert run([y, *tf.gradients(y, [x, v])]) == [16.0, 32.0, 48.0]


def test_an_optimiser_in_a_body() -> None:
    w = tf.Variable([1.0, 2.0], use_resource=True)
    optimiser = tf.train.AdamOptimizer(0.1)

    @tf.function
    def step(x: Any) -> Any:
        loss = tf.reduce_sum(w * w * x)
        optimiser.minimize(loss, var_list=[w])
        return loss

    loss = step(tf.constant(1.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run(loss) for _ in range(4)]
    np.testing.assert_allclose(losses, [5.0, 4.42, 3.8812609, 3.3843482], rtol=1e-6)  # TensorFlow 1.15.5's
    names = ["Variable:0", "beta1_power:0", "beta2_power:0", "Variable/Adam:0", "Variable/Adam_1:0"]
    assert [v.name for v in tf.global_variables()] == names


def test_calls_in_loops_branches_functions_and_datasets() -> None:
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def g(x: Any) -> Any:
        v.assign_add(x)
        return v.read_value()

    @tf.function
    def h(x: Any) -> Any:
        return g(x) + g(x) * 10

    loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, h(a)), [0, tf.constant(1.0)])
    branch = tf.cond(tf.constant(True), lambda: g(tf.constant(1.0)), lambda: tf.constant(2.0))
    dataset = tf.data.Dataset.range(3).map(lambda x: g(tf.cast(x, tf.float32)))
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    assert run(loop) == (3, 15542.0)
    assert run(branch) == 2.0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(iterator.initializer)
        assert [session.run(element) for _ in range(3)] == [1, 2, 4]


def test_control_dependencies_and_names_around_calls() -> None:
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def add() -> Any:
        v.assign_add(1.0)
        return tf.constant(0.0)

    @tf.function
    def read() -> Any:
        with tf.name_scope("inner"):
            return v.read_value()

    with tf.name_scope("outer"):
        first = add()
    with tf.control_dependencies([first]):
        second = read()
    assert first.op.name == "outer/StatefulPartitionedCall"
    assert [op.name for op in second.op.control_inputs] == ["outer/StatefulPartitionedCall"]
    assert run(second) == 2.0


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @tf.function
    def of(self, x: Any) -> Any:
        return x * self.factor

    @tf.function
    def above_one(self, x: Any) -> Any:
        if x > 1.0:
            x = self.of(x)
        return x


def test_methods() -> None:
    a, b = Scale(2.0), Scale(3.0)
    assert a.of is a.of
    assert run([a.of(1.0), b.of(1.0), a.of(tf.constant(5.0))]) == [2.0, 3.0, 10.0]
    assert [name for name, _ in op_types() if "Call" in name] == [
        "PartitionedCall", "PartitionedCall_1", "PartitionedCall_2",
    ]  # fmt: skip


def test_statements_of_methods_are_converted() -> None:
    scale = Scale(2.0)
    assert run([scale.above_one(1.0), scale.above_one(tf.constant(3.0))]) == [1.0, 6.0]


def test_an_input_signature_makes_one_trace() -> None:
    traces = []

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x: Any) -> Any:
        traces.append(x)
        return x + 1

    results = [f(tf.zeros([3])), f([1.0, 2.0])]
    assert len(traces) == 1
    assert traces[0].shape.as_list() == [None]
    assert f.input_signature == (tf.TensorSpec([None], tf.float32),)
    np.testing.assert_array_equal(run(results[1]), [2, 3])
    with pytest.raises(ValueError, match="Python inputs incompatible with input_signature"):
        f(tf.zeros([3, 3]))
    with pytest.raises(ValueError, match="Python inputs incompatible with input_signature"):
        f(tf.zeros([3], tf.int32))


def test_signatures_that_are_none() -> None:
    with pytest.raises(TypeError, match="must be either a tuple or a list"):
        tf.function(lambda x: x, input_signature=tf.TensorSpec([None]))
    with pytest.raises(TypeError, match="possibly nested sequence of TensorSpec"):
        tf.function(lambda x: x, input_signature=[3])


def test_wrong_arguments_and_results() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        tf.function(lambda x: x)()
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        tf.function(lambda x: x)(1.0, 2.0)
    with pytest.raises(TypeError, match="must return zero or more Tensors"):
        tf.function(lambda x: object())(1.0)
    with pytest.raises(TypeError, match="must return zero or more Tensors"):
        tf.function(lambda: tf.no_op())()
    with pytest.raises(TypeError, match="hashable"):
        tf.function(lambda x: tf.constant(1.0))({1, 2})


def test_a_concrete_function() -> None:
    p = tf.constant(5.0)

    @tf.function
    def f(x: Any, y: Any = 3) -> Any:
        return x * p * y

    concrete = f.get_concrete_function(tf.TensorSpec([], tf.float32, name="inp"), 4)
    assert [x.name for x in concrete.inputs] == ["inp:0", "mul/placeholder:0"]
    assert concrete.captured_inputs == [p]
    assert run([concrete(tf.constant(2.0)), concrete(inp=tf.constant(3.0))]) == [40.0, 60.0]
    assert f.python_function(tf.constant(1.0)).op.type == "Mul"


def test_structures_with_sparse_tensors_and_none() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return None, x, {"twice": tf.SparseTensor(x.indices, x.values * 2, x.dense_shape)}

    nothing, same, rest = f(tf.SparseTensor([[0]], [1.0], [3]))
    assert nothing is None
    values = run([same, rest["twice"]])
    assert [list(each.values) for each in values] == [[1.0], [2.0]]


def test_a_function_that_calls_itself_without_end() -> None:
    @tf.function
    def f(x: Any) -> Any:
        return f(x)

    with pytest.raises(RecursionError):
        f(tf.constant(1.0))


def test_a_graph_with_calls_exports_and_imports() -> None:
    p = tf.placeholder(tf.float32, [3], name="p")
    v = tf.Variable([1.0, 2.0, 3.0], use_resource=True, name="v")

    @tf.function
    def inner(x: Any) -> Any:
        v.assign_add(x)
        tf.debugging.assert_greater(x, -100.0)
        return tf.nn.relu(x) * v

    @tf.function
    def outer(x: Any) -> Any:
        return tf.reduce_sum(inner(x)), tf.while_loop(
            lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), [0, x]
        )[1]

    total, doubled = outer(p)
    tf.identity(total, name="total")
    tf.identity(doubled, name="doubled")
    init = tf.global_variables_initializer()
    graph_def = tf.get_default_graph().as_graph_def()
    assert all(f.control_ret for f in graph_def.library.function)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        session.run(init.name)
        total_value, doubled_value = session.run(["total:0", "doubled:0"], {"p:0": [1, 2, 3]})
        assert total_value == 28.0  # as TensorFlow 1.15.5 and 2.21.0 compute from this GraphDef
        np.testing.assert_array_equal(doubled_value, [8, 16, 24])
        np.testing.assert_array_equal(session.run("v/Read/ReadVariableOp:0"), [2, 4, 6])


def test_defun_may_create_variables_in_each_trace() -> None:
    @tf.contrib.eager.defun
    def f(x: Any) -> Any:
        if x > 0:
            x = x * 1.0
        return tf.get_variable("w", [], initializer=tf.ones_initializer()) * x

    result = f(tf.constant(2.0))
    assert [v.name for v in tf.trainable_variables()] == ["w:0"]
    assert run(result) == 2.0
    with pytest.raises(ValueError, match="Variable w already exists"):
        f(3.0)  # as TensorFlow 1.15.5


def test_a_step_with_the_gradient_of_a_loop():
    """The optimizer's change waits for the gradient's loop, whose counters are there before what it takes."""
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.Variable(np.full([3, 3], 0.1, np.float32), use_resource=True)
        x = tf.constant(np.arange(30).reshape([5, 2, 3]).astype(np.float32) / 40)
        optimizer = tf.train.GradientDescentOptimizer(0.1)

        def states():
            array = tf.TensorArray(tf.float32, 5, element_shape=[2, 3])

            def body(i, array, state):
                state = tf.matmul(state, w) + x[i]
                return i + 1, array.write(i, state), state

            loop = tf.while_loop(lambda i, *_: i < 5, body, (0, array, tf.zeros([2, 3])))
            return loop[1].stack()

        @tf.function
        def train():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(states() ** 2)
            change = optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
            with tf.control_dependencies([change]):
                return tf.identity(loss)

        loss = train()
        session.run(tf.global_variables_initializer())
        losses = [session.run(loss) for _ in range(4)]
    np.testing.assert_allclose(
        losses, [8.409803, 1.6909305, 1.5377871, 1.453954], rtol=1e-5
    )  # TensorFlow 1.15's


def test_a_call_waits_for_operations_outside_that_something_within_comes_after():
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(1.0, use_resource=True)
        w = tf.Variable(2.0, use_resource=True)
        change = v.assign(5.0)

        @tf.function
        def read():
            with tf.control_dependencies([change, w.initializer]):
                return v.read_value() + 0.0

        result = read()
        session.run(v.initializer)
        assert session.run(result) == 5.0
        assert session.run(w) == 2.0


def test_a_critical_section_may_be_entered_in_a_function():
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(0, use_resource=True)
        section = tf.CriticalSection()

        @tf.function
        def count():
            return section.execute(lambda: v.assign_add(1))

        session.run(v.initializer)
        result = count()
        assert [session.run(result) for _ in range(3)] == [1, 2, 3]
