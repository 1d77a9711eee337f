"""`tf.gradients`: what it computes, the nodes that it adds, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def evaluate(fetches, feeds=None):
    session = tf.Session()
    session.run([v.initializer for v in tf.global_variables()])
    return session.run(fetches, feeds)


def names(graph, prefix="gradients"):
    return [op.name for op in graph.get_operations() if op.name.startswith(prefix)]


def test_values_and_names_of_a_matrix_product(graph):
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    w = tf.placeholder(tf.float32, [3, 4], name="w")
    y = tf.matmul(x, w)
    dx, dw = tf.gradients(y + y, [x, w])
    assert dx.shape.as_list() == [2, 3] and dw.shape.as_list() == [3, 4]
    assert names(graph) == [  # as TensorFlow names them
        "gradients/Shape",
        "gradients/grad_ys_0",
        "gradients/Fill",
        "gradients/AddN",
        "gradients/MatMul_grad/MatMul",
        "gradients/MatMul_grad/MatMul_1",
    ]
    assert graph.get_operation_by_name("gradients/AddN").colocation_groups() == [b"loc:@gradients/Fill"]
    a, b = np.random.rand(2, 3).astype("f"), np.random.rand(3, 4).astype("f")
    found = evaluate([dx, dw], {x: a, w: b})
    np.testing.assert_allclose(found[0], 2 * np.ones((2, 4)) @ b.T, rtol=1e-5)
    np.testing.assert_allclose(found[1], 2 * a.T @ np.ones((2, 4)), rtol=1e-5)


def test_several_ys_with_given_gradients():
    x = tf.placeholder(tf.float32, [2])
    y = tf.square(x)
    (dx,) = tf.gradients([y, y * x], [x], grad_ys=[None, np.float32([10, 20])])
    np.testing.assert_allclose(evaluate(dx, {x: [1, 3]}), [2 + 30, 6 + 540])


def test_an_x_may_be_a_y_or_lie_between(graph):
    x = tf.placeholder(tf.float32, [2])
    y = tf.square(x)
    dx, dy, same = tf.gradients([y, x], [x, y, x])
    assert same is dx and dy.op.type == "Fill"
    np.testing.assert_allclose(evaluate(dx, {x: [1, 3]}), [3, 7])


def test_no_path_is_none_or_zeros():
    x, z = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [3])
    v = tf.Variable([1.0, 2.0], use_resource=True)
    y = tf.square(x)
    assert tf.gradients(y, [z, v, 3.0]) == [None, None, None]
    assert tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32), x) == [None]
    zeros = tf.gradients(y, [z, v], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert [value.tolist() for value in evaluate(zeros)] == [[0, 0, 0], [0, 0]]
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'foo'"):
        tf.gradients(y, x, unconnected_gradients="foo")


def test_an_unrelated_y_needs_no_gradient_function():
    x, z = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    with tf.get_default_graph().gradient_override_map({"Square": "there is none"}):
        unrelated = tf.square(z)
    (dx,) = tf.gradients([tf.sin(x), unrelated], [x])
    np.testing.assert_allclose(evaluate(dx, {x: [1, 3]}), np.cos([1, 3]), rtol=1e-6)


def test_stop_gradients_and_stop_gradient():
    x = tf.placeholder(tf.float32, [2])
    y = tf.square(x)
    dx, dy = tf.gradients(tf.exp(y), [x, y], stop_gradients=[y])
    assert dx is None
    np.testing.assert_allclose(evaluate(dy, {x: [0, 1]}), np.exp([0, 1]), rtol=1e-6)
    (dx,) = tf.gradients(tf.stop_gradient(x) * x, x)
    np.testing.assert_allclose(evaluate(dx, {x: [5, 6]}), [5, 6])


@pytest.mark.parametrize("kind", [False, True])
def test_all_reads_of_a_variable_count(kind):
    v = tf.Variable([1.0, 2.0], use_resource=kind)
    (dv,) = tf.gradients(v * 2.0 + tf.identity(v) * 3.0 + tf.square(v), v)
    np.testing.assert_allclose(evaluate(dv), [7, 9])


def test_zeros_stand_for_unused_outputs(graph):
    x = tf.placeholder(tf.float32, [4])
    first, _ = tf.split(x, 2)
    (dx,) = tf.gradients(first, x)
    assert "gradients/zeros_like" in names(graph)
    np.testing.assert_array_equal(evaluate(dx, {x: [1, 2, 3, 4]}), [1, 1, 0, 0])


def test_second_and_third_derivatives():
    x = tf.placeholder(tf.float64, [2])
    orders = [x**4.0]
    for _ in range(3):
        orders += tf.gradients(orders[-1], x)
    found = evaluate(orders, {x: [1, 2]})
    np.testing.assert_allclose(found, [[1, 16], [4, 32], [12, 48], [24, 48]])


def test_integer_complex_and_string_ys():
    n, c, s = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.complex64, [2]), tf.placeholder(tf.string, [2])
    x = tf.placeholder(tf.float32, [2])
    assert tf.gradients(n * n, n) == [None]
    with pytest.raises(TypeError, match=r"Gradients of complex tensors .* must set grad_ys"):
        tf.gradients(c * c, c)
    with pytest.raises(TypeError):
        tf.gradients(tf.identity(s), s)
    with pytest.raises(TypeError, match="must be real"):
        tf.gradients(c * c, c, grad_ys=x)
    with pytest.raises(TypeError, match="must be real or integer"):
        tf.gradients(x * x, x, grad_ys=c)
    (dc,) = tf.gradients(c * c, c, grad_ys=tf.constant([1 + 0j, 1 + 0j], tf.complex64))
    np.testing.assert_allclose(evaluate(dc, {c: [1 + 2j, 3]}), np.conj([2 + 4j, 6]))


def test_lengths_must_match():
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(ValueError, match=r"Length mismatch. Passed 2 grad_ys for 1 ys"):
        tf.gradients(x * x, x, grad_ys=[None, None])
    assert tf.gradients([], [x]) == [None] and tf.gradients(x, []) == []


def test_slices_are_joined_and_meet_dense_gradients_as_a_sum():
    v = tf.Variable(np.ones((4, 2), np.float32))
    lookups = [tf.gather(v, [0, 1]), tf.gather(v, [2, 2])]
    (sparse,) = tf.gradients(lookups, v)
    assert isinstance(sparse, tf.IndexedSlices) and sparse.values.op.type == "ConcatV2"
    value = evaluate(sparse)
    np.testing.assert_array_equal(value.indices, [0, 1, 2, 2])
    np.testing.assert_array_equal(value.values, np.ones((4, 2)))
    np.testing.assert_array_equal(evaluate(tf.convert_to_tensor(sparse))[:, 0], [1, 1, 2, 0])
    (mixed,) = tf.gradients([*lookups, v * 2.0], v)
    assert isinstance(mixed, tf.Tensor)
    np.testing.assert_array_equal(evaluate(mixed)[:, 0], [3, 3, 4, 2])


def test_given_slices_become_dense_where_an_op_needs_it():
    x = tf.placeholder(tf.float32, [3, 2])
    flow = tf.IndexedSlices(tf.ones([2, 2]), tf.constant([1, 1]), tf.constant([3, 2]))
    (dx,) = tf.gradients(tf.exp(x), x, grad_ys=flow)
    np.testing.assert_allclose(evaluate(dx, {x: np.zeros((3, 2))}), [[0, 0], [2, 2], [0, 0]])


def test_slices_without_a_shape_have_no_dense_form():
    with pytest.raises(ValueError, match="without dense_shape"):
        tf.convert_to_tensor(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1])))


@pytest.mark.parametrize("method", [None, 0, 1, 2])
def test_aggregation_methods(graph, method):
    x = tf.placeholder(tf.float32, [2], name="x")
    (dx,) = tf.gradients(x * x + x + tf.sin(x), x, aggregation_method=method)
    np.testing.assert_allclose(evaluate(dx, {x: [0, 1]}), [2, 3 + np.cos(1)], rtol=1e-6)
    sums = [name for name in names(graph) if "AddN" in name]
    if method in (1, 2):
        assert sums == [f"gradients/x_gradient_sum/AddN{suffix}" for suffix in ("", "_1", "_2")]
    else:
        assert sums == ["gradients/AddN"]


def test_there_are_three_aggregation_methods():
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(ValueError, match="Invalid `aggregation_method` specified 7"):
        tf.gradients(x * x, x, aggregation_method=7)


def test_gates_and_colocation(graph):
    x = tf.placeholder(tf.float32, [4], name="x")
    (dx,) = tf.gradients(tf.log(x * 2.0), x, gate_gradients=True, colocate_gradients_with_ops=True)
    assert dx.name == "gradients/mul_grad/tuple/control_dependency:0"
    gate = graph.get_operation_by_name("gradients/mul_grad/tuple/group_deps")
    assert {op.name for op in gate.control_inputs} >= {"gradients/mul_grad/Mul"} and len(
        gate.control_inputs
    ) == 2
    assert graph.get_operation_by_name("gradients/mul_grad/Mul").colocation_groups() == [b"loc:@mul"]
    assert graph.get_operation_by_name("gradients/grad_ys_0").colocation_groups() == [b"loc:@Log"]
    np.testing.assert_allclose(evaluate(dx, {x: [1, 2, 4, 8]}), [1, 0.5, 0.25, 0.125])


def test_gradients_of_several_devices_are_added_on_each_first(graph):
    x = tf.placeholder(tf.float32, [4], name="x")
    with tf.device("/cpu:0"):
        a = tf.sin(x)
    with tf.device("/cpu:1"):
        b, c = tf.cos(x), tf.exp(x)
    tf.gradients(a + b + c, x, colocate_gradients_with_ops=True)
    sums = {
        op.name: [t.op.name.split("/")[1] for t in op.inputs]
        for op in graph.get_operations()
        if op.type == "AddN"
    }
    assert sums == {
        "gradients/AddN": ["Exp_grad", "Cos_grad"],
        "gradients/AddN_1": ["Sin_grad", "AddN"],
    }


def test_another_name_and_another_graph():
    x = tf.placeholder(tf.float32, [])
    with tf.Graph().as_default() as other:
        z = tf.placeholder(tf.float32, [], name="z")
        (dz,) = tf.gradients(z * z, z, name="slopes")
        assert dz.graph is other and dz.name.startswith("slopes/")
        with pytest.raises(ValueError):
            tf.gradients(x, z)


def test_both_branches_of_conditionals():
    x, p, q = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.cond(q, lambda: x**3.0, lambda: x * 3.0), lambda: tf.constant([1.0, 2.0]))
    (dx,) = tf.gradients(y, x)
    (ddx,) = tf.gradients(dx, x)
    (dddx,) = tf.gradients(ddx, x)
    session = tf.Session()
    for (first, second), expected in {
        (True, True): ([[3, 12], [6, 12], [6, 6]]),
        (True, False): ([[3, 3], [0, 0], [0, 0]]),
        (False, True): np.zeros((3, 2)),
    }.items():
        found = session.run([dx, ddx, dddx], {x: [1, 2], p: first, q: second})
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", [False, True])
def test_variables_and_slices_through_conditionals(kind):
    p = tf.placeholder(tf.bool, [])
    v = tf.Variable(np.ones((4, 2), np.float32), use_resource=kind)
    y = tf.cond(p, lambda: tf.gather(v, [0, 1]), lambda: tf.gather(v, [2, 2]) * 2.0)
    (dv,) = tf.gradients([y, tf.cond(p, lambda: v * 5.0, lambda: tf.identity(v))], v)
    dense = tf.convert_to_tensor(dv)
    session = tf.Session()
    session.run(v.initializer)
    np.testing.assert_array_equal(session.run(dense, {p: True})[:, 0], [6, 6, 5, 5])
    np.testing.assert_array_equal(session.run(dense, {p: False})[:, 0], [1, 1, 5, 1])


def test_gradients_inside_a_branch():
    x, p = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.gradients(x * x * x, x)[0], lambda: x)
    session = tf.Session()
    np.testing.assert_allclose(session.run(y, {x: [1, 2], p: True}), [3, 12])
    np.testing.assert_allclose(session.run(y, {x: [1, 2], p: False}), [1, 2])


def test_long_chains_need_no_recursion():
    x = tf.placeholder(tf.float64, [])
    y = x
    for _ in range(5000):
        y = tf.negative(y)
    (dx,) = tf.gradients(y, x)
    assert evaluate(dx, {x: 1.0}) == 1.0


@pytest.mark.parametrize("other", [np.ones([4, 3], "f"), np.ones([3], "f"), np.float32(1)])
def test_slices_that_reach_a_broadcast_become_dense(other: np.ndarray) -> None:
    x, y = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.float32, other.shape)
    gradients = tf.gradients(tf.gather(x + y, [1, 1, 3]), [x, y])
    assert all(isinstance(each, tf.Tensor) for each in gradients)
    with tf.Session() as session:
        dx, dy = session.run(gradients, {x: np.zeros([4, 3]), y: other})
    assert dx.tolist() == [[0.0] * 3, [2.0] * 3, [0.0] * 3, [1.0] * 3]
    assert dy.sum() == 9.0 and dy.shape == other.shape


@pytest.mark.parametrize("batch", [None, 4])
def test_the_gradient_of_a_bias_is_a_reshaped_sum(batch: int | None) -> None:
    """Programs that look for the inputs of layers walk the graph of gradients through these two ops."""
    x, bias = tf.placeholder(tf.float32, [batch, 3]), tf.placeholder(tf.float32, [3])
    z = tf.add(x, bias, name="z")
    upstream = tf.gradients(tf.square(z), z)[0]
    gradient = tf.gradients(z, bias, grad_ys=[upstream], name="walked")[0]
    total = gradient.op.inputs[0].op
    assert (gradient.op.type, total.type) == ("Reshape", "Sum")
    assert gradient.name.startswith("walked/z_grad/") and gradient.shape == [3]
    assert total.inputs[0].op.inputs[0] is upstream
    with tf.Session() as session:
        fed = {x: np.ones([4, 3]), bias: [0.0, 1.0, 2.0]}
        assert session.run(gradient, fed).tolist() == [8.0, 16.0, 24.0]


def test_the_reshape_of_a_bias_gradient_is_in_no_plan() -> None:
    """Neither for a batch of unknown size nor in a loop."""
    x, bias = tf.placeholder(tf.float32, [None, 3]), tf.get_variable("bias", [3])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, tf.tanh(h + bias)), [0, tf.sin(x + bias)])
    gradient = tf.gradients(y, bias)[0]
    assert any(op.type == "Reshape" for op in gradient.graph.get_operations())
    with tf.Session() as session:
        session.run(bias.initializer)
        assert "Reshape(" not in session.explain(gradient, {x: np.ones([4, 3])})
