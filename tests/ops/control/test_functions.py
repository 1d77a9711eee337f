"""Functions and functional control flow: TensorFlow's values, nodes and mistakes; graphs that travel.

The expectations are in `tests/golden/functions`, made by `tests/golden/make_function_goldens.py`, partly from
the programs in `function_programs.py`.
"""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import flowstone as tf
import function_programs
from flowstone.framework.functions import function
from flowstone.framework.graphs.graph_def import messages
from flowstone.ops.control import functional_forms

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = Path(__file__).parents[2] / "golden" / "functions"
EXPECTED = json.loads((GOLDEN / "programs.json").read_text())
IMPORTED = json.loads((GOLDEN / "values.json").read_text())
FETCHES = {
    "defun": ["total:0", "count:0", "dx:0"],
    "loop": ["count:0", "result:0"],
    "arrays": ["result:0", "dx:0"],
    "recurrence": ["result:0", "dx:0"],
}
SLOPES: dict[str, list[float]] = {
    name: [values[1] for _, values in IMPORTED[name]] for name in ("arrays", "recurrence")
} | {
    "conditional": [np.exp(-1), 4, 10],
    "loop": [-5, -5],
    "cases": [1, 100, -1, -1, -1],
    "traced": [28, 0],
}
MODULES = tf, function, functional_forms
Defun = function.Defun


def golden_nodes() -> dict[str, list[str]]:
    sections = [
        section.rstrip().split("\n") for section in (GOLDEN / "nodes.txt").read_text().split("# ")[1:]
    ]
    return {lines[0]: lines[1:] for lines in sections}


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def initialize(session: Any) -> None:
    """Gives an imported graph's variables their values, if it has some."""
    if "initialize" in [operation.name for operation in session.graph.get_operations()]:
        session.run("initialize")


def read(name: str) -> Any:
    if (GOLDEN / f"{name}.pb").exists():
        return messages("graph_pb2").GraphDef.FromString((GOLDEN / f"{name}.pb").read_bytes())
    return text_format.Parse((GOLDEN / f"{name}.pbtxt").read_text(), messages("graph_pb2").GraphDef())


# ---- against TensorFlow


def test_every_program_has_its_goldens() -> None:
    assert list(EXPECTED["programs"]) == list(function_programs.PROGRAMS)
    assert list(EXPECTED["mistakes"]) == list(function_programs.MISTAKES)
    assert list(golden_nodes()) == function_programs.NAMED


@pytest.mark.parametrize("name", function_programs.PROGRAMS)
def test_values(name: str) -> None:
    for found, golden in zip(function_programs.run(MODULES, name), EXPECTED["programs"][name]):
        np.testing.assert_allclose(found, golden, rtol=1e-6)


@pytest.mark.parametrize("name", function_programs.NAMED)
def test_nodes_and_functions(name: str) -> None:
    assert function_programs.node_lines(MODULES, name) == golden_nodes()[name]


@pytest.mark.parametrize("name", function_programs.MISTAKES)
def test_mistakes(name: str) -> None:
    kind, message = function_programs.refusal(MODULES, name)
    assert kind == EXPECTED["mistakes"][name]
    assert function_programs.MISTAKES[name][0] in message


# ---- graphs that travel


@pytest.mark.parametrize("name", IMPORTED)
def test_graphs_of_tensorflow(name: str) -> None:
    tf.import_graph_def(read(name), name="")
    with tf.Session() as session:
        initialize(session)
        for feed, expected in IMPORTED[name]:
            found = session.run(FETCHES.get(name, ["result:0"]), {"x:0": feed})
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", SLOPES)
def test_gradients_through_imported_functions(graph, name: str) -> None:
    tf.import_graph_def(read(name), name="")
    x, result = (graph.get_tensor_by_name(f"{key}:0") for key in ("x", "result"))
    (slope,) = tf.gradients(result, x)
    with tf.Session() as session:
        initialize(session)
        found = [session.run(slope, {x: feed}) for feed, _ in IMPORTED[name]]
    np.testing.assert_allclose(found, SLOPES[name], rtol=1e-5)


def exported() -> None:
    """A call with its gradient, and an If."""

    @Defun(tf.float32, func_name="Parabola")
    def parabola(a):
        return 3.0 * a * a + 2.0

    @Defun(tf.float32, func_name="Raised")
    def raised(a):
        return a + 2.0

    @Defun(tf.float32, func_name="Lowered")
    def lowered(a):
        return parabola(a) - 2.0

    x = tf.placeholder(tf.float32, [], name="x")
    y = parabola(x)
    tf.identity(y, name="result")
    tf.identity(tf.gradients(y, x)[0], name="gradient")
    tf.identity(functional_forms.If(x > 0.0, [x], raised, lowered)[0], name="chosen")


def test_exported_functions_are_those_that_tensorflow_ran(graph) -> None:
    exported()
    found, expected = graph.as_graph_def(), read("from_flowstone")
    found.ClearField("versions")
    expected.ClearField("versions")
    assert found == expected


def test_an_exported_graph_gives_the_same_when_imported(graph) -> None:
    exported()
    message = graph.as_graph_def()
    with tf.Graph().as_default():
        tf.import_graph_def(message, name="there")
        found = run([f"there/{name}:0" for name in ("result", "gradient", "chosen")], {"there/x:0": 3.0})
    assert found == [29.0, 18.0, 5.0]


def test_import_keeps_only_definitions_that_agree(graph) -> None:
    exported()
    message = graph.as_graph_def()
    tf.import_graph_def(message, name="again")
    assert run("again/result:0", {"again/x:0": 3.0}) == 29.0
    next(f for f in message.library.function if f.signature.name == "Raised").node_def[0].name = "other"
    with pytest.raises(ValueError, match="Raised"):
        tf.import_graph_def(message, name="third")


def test_an_unknown_function_is_refused_on_import(graph) -> None:
    exported()
    message = graph.as_graph_def()
    message.ClearField("library")
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Parabola"):
        tf.import_graph_def(message, name="")


# ---- Defun beyond TensorFlow's programs


def test_names_without_func_name_tell_definitions_apart() -> None:
    def twice(a):
        return a * 2.0

    def other(factor: float) -> Any:
        def twice(a):
            return a * factor

        return Defun(tf.float32)(twice)

    first, same, different = Defun(tf.float32)(twice), other(2.0), other(3.0)
    assert first.name == same.name != different.name and first.name.startswith("twice_")


def test_properties() -> None:
    w = tf.constant(1.0)
    gradient = Defun(tf.float32, tf.float32, func_name="Grad")(lambda a, dy: dy)

    @Defun(tf.float32, func_name="Named", noinline=True, out_names=["sum"])
    def named(a):
        return a + w + tf.random_uniform([], name="draw")

    named.set_grad_func(gradient)
    assert named.name == "Named" and named.declared_input_types == (tf.float32,)
    assert named.captured_inputs == [w] and named.grad_func_name == "Grad"
    assert ("draw/RandomUniform", "RandomUniform") in named.stateful_ops
    assert named.definition.attr["_noinline"].b and named.definition.signature.is_stateful
    assert [out.name for out in named.definition.signature.output_arg] == ["sum"]
    with pytest.raises(ValueError, match="Gradient defined already"):
        named.set_grad_func(gradient)


def test_the_python_function_is_called_once_and_when_needed() -> None:
    calls: list[int] = []

    @Defun(tf.float32)
    def counted(a):
        calls.append(1)
        return a

    assert calls == []
    assert run([counted(1.0), counted(2.0)]) == [1.0, 2.0] and calls == [1]


def test_noinline_changes_no_value() -> None:
    @Defun(tf.float32, noinline=True)
    def kept(a):
        return a * a

    x = tf.constant(3.0)
    assert run([kept(x), *tf.gradients(kept(x), x)]) == [9.0, 6.0]


def test_a_declared_function_is_defined_later() -> None:
    declared = function.Declare("Later", [("a", tf.float32)], [("b", tf.float32)])
    y = declared(tf.constant(3.0))
    assert y.dtype == tf.float32 and y.op.type == "Later"
    with pytest.raises(tf.errors.NotFoundError, match="Later"):
        run(y)
    Defun(tf.float32, func_name="Later", out_names=["b"])(lambda a: a * a).add_to_graph(y.graph)
    assert run(y) == 9.0


def test_a_function_that_calls_itself_is_refused() -> None:
    declared = function.Declare("Again", [("a", tf.float32)], [("b", tf.float32)])

    @Defun(tf.float32, func_name="Again", out_names=["b"])
    def again(a):
        return declared(a) + 1.0

    with pytest.raises(tf.errors.InvalidArgumentError, match="Again -> Again"):
        run(again(tf.constant(1.0)))


def test_effects_in_a_body_happen_once_a_call() -> None:
    v = tf.Variable(0.0, use_resource=True)

    @Defun(tf.resource, tf.float32, func_name="AddTo")
    def add_to(handle, amount):
        from flowstone.framework.declarations.operation import F

        add = F.AssignAddVariableOp(handle, amount)
        with tf.control_dependencies([add]):
            return F.ReadVariableOp(handle, dtype=tf.float32)

    first = add_to(v.handle, 1.0)
    with tf.control_dependencies([first]):
        second = add_to(v.handle, 10.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([second, first]) == [11.0, 1.0]
        assert session.run(v) == 11.0


def test_a_failing_body_names_the_call_and_the_node() -> None:
    @Defun(tf.float32, func_name="Checked")
    def checked(a):
        return tf.check_numerics(a, "not finite", name="check")

    with pytest.raises(tf.errors.InvalidArgumentError, match="not finite") as caught:
        run(checked(tf.constant(np.inf), name="call"))
    assert "call/check" in caught.value.message


def test_second_derivatives_of_functions() -> None:
    @Defun(tf.float32)
    def cube(a):
        return a * a * a

    x = tf.constant([0.5, -1.5, 2.0])
    (slope,) = tf.gradients(cube(x), x)
    assert run(tf.gradients(slope, x))[0].tolist() == [3.0, -9.0, 12.0]


def test_the_gradient_of_an_imported_function_with_a_loop_is_refused(graph) -> None:
    def looping(a):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * a), [0, a])[1]

    x = tf.constant(2.0)
    y = Defun(tf.float32, func_name="Loops", shape_func=lambda op: [()])(looping)(x)
    (slope,) = tf.gradients(y, x)
    assert run([y, slope]) == [16.0, 32.0]
    message = graph.as_graph_def()
    with tf.Graph().as_default():
        y, slope = tf.import_graph_def(message, return_elements=[y.name, slope.name])
        assert run(y) == 16.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="Gradient of function Loops"):
            run(slope)


def test_an_unused_result_needs_no_gradient() -> None:
    @Defun(tf.float32)
    def both(a):
        return a * 2.0, tf.cast(a, tf.int32)

    x = tf.constant(3.0)
    assert run(tf.gradients(both(x)[0], x)) == [2.0]


# ---- functional forms


def branch(name: str, body: Any, *types: Any) -> Any:
    return Defun(*(types or (tf.float32,)), func_name=name)(body)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3])
def test_case_takes_the_last_branch_where_there_is_no_other(index: int) -> None:
    once = branch("Once", lambda a: a)
    branches = [once, branch("Tenfold", lambda a: a * 10.0), branch("Hundredfold", lambda a: a * 100.0)]
    x = tf.constant(2.0)
    (y,) = functional_forms.Case(tf.placeholder_with_default(index, []), [x], branches)
    factor = [1.0, 10.0, 100.0][index if 0 <= index < 3 else 2]
    assert run([y, *tf.gradients(y, x)]) == [2 * factor, factor]


def test_gradients_of_if_and_while() -> None:
    x = tf.constant(1.5)
    then, other = branch("Squares", lambda a: a * a), branch("Sines", lambda a: tf.sin(a))
    for value, expected in ((True, 3.0), (False, np.cos(1.5))):
        (y,) = functional_forms.If(tf.placeholder_with_default(value, []), [x], then, other)
        assert run(tf.gradients(y, x)) == [pytest.approx(expected)]
    goes_on = branch("GoesOn", lambda a, n: n < 3, tf.float32, tf.int32)
    body = branch("Body", lambda a, n: (a * a, n + 1), tf.float32, tf.int32)
    y, _ = functional_forms.While([x, 0], goes_on, body)
    assert run([y, *tf.gradients(y, x)]) == pytest.approx([1.5**8, 8 * 1.5**7])


def test_a_call_is_stateful_where_its_function_is(graph) -> None:
    pure, drawing = branch("Pure", lambda a: a), branch("Draws", lambda a: a + tf.random_uniform([]))
    assert functional_forms.call(pure, [1.0])[0].op.type == "PartitionedCall"
    assert functional_forms.call(drawing, [1.0])[0].op.type == "StatefulPartitionedCall"


def test_only_the_taken_branch_has_effects() -> None:
    seen: list[str] = []

    def noting(text: str) -> Any:
        def body(a):
            with tf.control_dependencies([tf.py_func(lambda: seen.append(text), [], [])]):
                return tf.identity(a)

        return branch(text, body)

    p = tf.placeholder(tf.bool, [])
    (y,) = functional_forms.If(p, [tf.constant(1.0)], noting("Taken"), noting("Other"))
    gc.collect()  # the graphs in which the branches were built
    run(y, {p: False})
    run(y, {p: True})
    assert seen == ["Other", "Taken"]


def test_mistakes_of_functional_forms_show_in_the_step() -> None:
    one, two = branch("One", lambda a: a), branch("Two", lambda a: (a, a))
    x, p = tf.constant(1.0), tf.placeholder_with_default(False, [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="returns 2 values"):
        run(functional_forms.If(p, [x], one, two))
    with pytest.raises(tf.errors.InvalidArgumentError, match="takes 1 arguments, but got 2"):
        run(functional_forms.If(p, [x, x], one, one))
    with pytest.raises(tf.errors.InvalidArgumentError, match="has type int32, expected float32"):
        run(functional_forms.If(p, [tf.constant(1)], one, one))


def test_the_class_of_a_bound_method_is_no_argument(graph) -> None:
    class Losses:
        @classmethod
        def scaled(cls, loss: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
            return loss * scale

    with tf.Session() as session:
        assert session.run(Defun(tf.float32, tf.float32)(Losses.scaled)(2.0, 3.0)) == 6.0
