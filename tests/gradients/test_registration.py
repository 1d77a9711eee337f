"""Gradient functions of the program's own: RegisterGradient, gradient_override_map, NotDifferentiable."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import registry
from flowstone.gradients.registration import GradientRegistry

pytestmark = pytest.mark.usefixtures("graph")

_numbers = itertools.count()


@pytest.fixture
def name():
    return f"TestGradient{next(_numbers)}"


def squared(graph, name, x):
    with graph.gradient_override_map({"Square": name}):
        return tf.square(x)


def test_an_override_takes_the_place_of_the_ops_own_gradient(graph, name):
    @tf.RegisterGradient(name)
    def _(op, dy):
        return dy * op.inputs[0] * 100.0

    x = tf.placeholder(tf.float32, [2])
    (dx,) = tf.gradients([squared(graph, name, x), tf.square(x)], x)
    np.testing.assert_allclose(tf.Session().run(dx, {x: [1, 2]}), [102, 204])
    assert graph.get_operation_by_name("Square").get_attr("_gradient_op_type") == name.encode()


def test_an_override_may_name_another_op(graph):
    x = tf.placeholder(tf.float32, [2])
    (dx,) = tf.gradients(squared(graph, "Identity", x), x)
    np.testing.assert_allclose(tf.Session().run(dx, {x: [1, 2]}), [1, 1])


def test_a_name_is_registered_once(name):
    tf.RegisterGradient(name)(lambda op, dy: dy)
    with pytest.raises(KeyError, match="Registering two gradient with name"):
        tf.RegisterGradient(name)(lambda op, dy: dy)
    with pytest.raises(KeyError, match="Registering two gradient with name 'MatMul'"):
        tf.RegisterGradient("MatMul")(lambda op, dy: dy)
    with pytest.raises(KeyError):
        tf.NotDifferentiable("MatMul")
    with pytest.raises(TypeError, match="op_type must be a string"):
        tf.RegisterGradient(3)


def test_an_unregistered_override_is_a_lookup_error(graph):
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(LookupError, match=r"No gradient defined for operation 'Square' \(op type: Square\)"):
        tf.gradients(squared(graph, "there is none", x), x)


def test_an_op_may_be_declared_not_differentiable(graph, name):
    tf.NotDifferentiable(name)
    x = tf.placeholder(tf.float32, [2])
    assert tf.gradients(squared(graph, name, x), x) == [None]


def test_results_of_wrong_number_or_shape(graph, name):
    tf.RegisterGradient(name)(lambda op, dy: (dy, None))
    x = tf.placeholder(tf.float32, [4])
    with pytest.raises(
        ValueError, match=r"(?s)Num gradients 2 generated for op .* do not match num inputs 1"
    ):
        tf.gradients(squared(graph, name, x), x)
    tf.RegisterGradient(name + "b")(lambda op, dy: tf.concat([dy, dy], 0))
    with pytest.raises(
        ValueError, match=r"Incompatible shapes between op input and calculated input gradient. "
    ):
        tf.gradients(squared(graph, name + "b", x), x)


def test_every_op_without_a_gradient_raises():
    without = [
        declaration for declaration in map(registry.get, registry) if declaration.gradient_kind == "none"
    ]
    for declaration in without:
        assert declaration.gradient_function is None, declaration


def test_overrides_hold_for_imported_operations() -> None:
    """As in guided back-propagation through a frozen graph."""
    tf.RegisterGradient("DoubledRelu")(lambda op, dy: 2.0 * dy)
    with tf.Graph().as_default() as frozen:
        tf.nn.relu(tf.placeholder(tf.float32, [2], name="x"), name="y")
        frozen.get_operation_by_name("y")._set_attr("_mark", 1)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.constant([1.0, -1.0])
        with (
            graph.gradient_override_map({"Relu": "DoubledRelu"}),
            graph._attr_scope({"_mark": 2, "_more": 3}),
        ):
            (y,) = tf.import_graph_def(frozen.as_graph_def(), {"x:0": x}, ["y:0"])
        assert session.run(tf.gradients(y, x)[0]).tolist() == [2.0, 2.0]
        assert [y.op.get_attr(name) for name in ("_gradient_op_type", "_mark", "_more")] == [
            b"DoubledRelu",
            1,
            3,
        ]


def test_the_registry_as_programs_of_the_time_know_it() -> None:
    """Guided back-propagation asks for names; SHAP's explainer puts its function in the place of others."""
    gradients = GradientRegistry()
    assert "Relu" in gradients._registry and "GuidedRelu6" not in gradients._registry
    with pytest.raises(LookupError, match="no entry for: GuidedRelu6"):
        gradients.lookup("GuidedRelu6")
    tf.RegisterGradient("GuidedRelu6")(lambda op, dy: 3.0 * dy)
    assert "GuidedRelu6" in set(gradients._registry) and callable(gradients.lookup("GuidedRelu6"))
    with pytest.raises(KeyError, match="Registering two gradient"):
        gradients.register(lambda op, dy: dy, "Relu")
    x = tf.constant([1.0, -2.0])
    own = gradients._registry["Relu"]["type"]
    try:
        gradients._registry["Relu"]["type"] = lambda op, dy: 7.0 * dy
        changed = tf.gradients(tf.nn.relu(x), x)[0]
        gradients._registry["Unheard"] = {"type": None, "location": ()}
        assert gradients.lookup("Unheard") is None
        del gradients._registry["Unheard"]
    finally:
        gradients._registry["Relu"]["type"] = own
    with tf.Session() as session:
        found = session.run([changed, tf.gradients(tf.nn.relu(x), x)[0]])
    assert [each.tolist() for each in found] == [[7.0, 7.0], [1.0, 0.0]]
