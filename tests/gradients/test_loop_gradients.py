"""Gradients through loops: TensorFlow's values and nodes; difference quotients of random programs.

The expectations are in `tests/golden/loops`, made by `tests/golden/make_loop_goldens.py` from the programs in
`loop_gradient_programs.py`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.gradients import loop_gradient_programs as programs

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = Path(__file__).parents[1] / "golden" / "loops"
EXPECTED = json.loads((GOLDEN / "gradients.json").read_text())


def golden_nodes() -> dict[str, list[str]]:
    text = (GOLDEN / "gradient_nodes.txt").read_text()
    sections = [section.strip().split("\n") for section in text.split("# ")[1:]]
    return {lines[0]: lines[1:] for lines in sections}


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def repeat(count: Any, function: Callable[[Any, Any], Any], start: Any, **options: Any) -> Any:
    return programs.repeat(tf, count, function, start, **options)


# ---- against TensorFlow


def test_every_program_has_its_goldens() -> None:
    assert list(EXPECTED) == list(programs.PROGRAMS)
    assert list(golden_nodes()) == programs.NAMED


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_values(name: str) -> None:
    found, expected = programs.run(tf, name), EXPECTED[name]
    assert [x for x in found if isinstance(x, str)] == [x for x in expected if isinstance(x, str)]
    for value, golden in zip(found, expected):
        if not isinstance(golden, str):
            np.testing.assert_allclose(value, golden, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", programs.NAMED)
def test_nodes(name: str) -> None:
    assert programs.node_lines(tf, name) == golden_nodes()[name]


# ---- second derivatives


def second(build: Callable[[Any], Any], at: float = 1.5) -> Any:
    x = tf.constant(at)
    (slope,) = tf.gradients(build(x), x)
    return tf.gradients(slope, x)


def test_second_derivatives_that_pass_no_loops_gradient() -> None:
    cases: dict[float, Callable[[Any], Any]] = {
        9.0: lambda x: tf.cond(x > 1.0, lambda: x**3, lambda: x),
        27.0: lambda x: tf.cond(x > 1.0, lambda: tf.cond(x < 2.0, lambda: x**4, lambda: x), lambda: x),
        72.0: lambda x: repeat(3, lambda i, y: y * 2.0, 1.0) * x**3,
        18.0: lambda x: repeat(1, lambda i, y: y * 2.0, x**3),
    }
    for expected, build in cases.items():
        assert run(second(build)) == [pytest.approx(expected)]


@pytest.mark.parametrize(
    "build",
    [
        lambda x: repeat(3, lambda i, y: y * x, x),
        lambda x: repeat(3, lambda i, y: y * 2.0, x) * x,
        lambda x: tf.cond(x > 1.0, lambda: repeat(3, lambda i, y: y * x, x), lambda: x),
        lambda x: tf.map_fn(lambda v: v * x * x, tf.constant([1.0, 2.0])),
    ],
)
def test_the_gradient_of_a_loops_gradient_is_refused(build: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="Second-order gradient for while loops not supported"):
        second(build)


def test_what_stops_before_a_loops_gradient_is_no_second_derivative() -> None:
    x = tf.constant(1.5)
    (slope,) = tf.gradients(repeat(2, lambda i, y: y * x, x), x)
    assert run(tf.gradients(tf.stop_gradient(slope) * x, x)) == [6.75]


def test_a_result_that_counts_as_a_constant_begins_with_zeros() -> None:
    """TensorFlow loses what comes to its variable from the others' gradients."""
    x = tf.constant(1.5)
    first, second = tf.while_loop(
        lambda i, y, z: i < 3, lambda i, y, z: (i + 1, y * x, z + y * y), [0, x, tf.constant(0.0)]
    )[1:]
    (slope,) = tf.gradients(first + second, x, stop_gradients=first)
    assert run(slope) == pytest.approx(2 * 1.5 + 4 * 1.5**3 + 6 * 1.5**5)
    assert tf.gradients(first, x, stop_gradients=first) == [None]
    assert run(tf.gradients(first + second, [x, first], stop_gradients=[first, second])[1]) == 1.0
    assert tf.gradients(first + second, x, stop_gradients=[first, second]) == [None]


def test_second_derivatives_inside_a_body() -> None:
    def step(i: Any, y: Any) -> Any:
        return y + 0.01 * tf.gradients(tf.gradients(y**4, y)[0], y)[0]

    x = tf.constant(1.5)
    y = repeat(2, step, x)
    slope = run(tf.gradients(y, x))[0]
    assert run(y) == pytest.approx(2.1459479) and slope == pytest.approx(1.9377279)


def test_gradients_in_a_body_go_no_further_back_than_the_iteration() -> None:
    x = tf.constant(1.0, name="x")
    refused = "through the initial value of a loop variable"
    with pytest.raises(ValueError, match=f"with respect to op 'x'.*{refused}"):
        repeat(3, lambda i, y: y + tf.gradients(y * x, x)[0], x)


def test_the_gradient_of_an_imported_loop_is_refused(graph) -> None:
    x = tf.constant(1.5, name="x")
    repeat(3, lambda i, y: y * x, x)
    message = graph.as_graph_def()
    with tf.Graph().as_default():
        x, y = tf.import_graph_def(message, return_elements=["x:0", "while/Exit_1:0"])
        assert run(y) == 1.5**4
        with pytest.raises(ValueError, match="the loop that 'import/while/Exit_1' leaves"):
            tf.gradients(y, x)


# ---- what the graph and the session show


def test_only_what_the_gradient_needs_is_pushed(graph) -> None:
    def pushes() -> list[str]:
        return [op.inputs[1].name for op in graph.get_operations() if op.type == "StackPushV2"]

    x = tf.ones([3])
    tf.gradients(repeat(3, lambda i, y: tf.reverse(y, [0]) - x, x), x)
    assert pushes() == []
    tf.gradients(repeat(3, lambda i, y: tf.tanh(y), x, name="other"), x)
    assert pushes() == ["other/Tanh:0"]


def test_shapes_are_pushed_instead_of_values(graph) -> None:
    x = tf.placeholder(tf.float32, [None])
    shapes = [tf.TensorShape([]), tf.TensorShape([None])]
    y = repeat(2, lambda i, y: y + tf.reduce_sum(y, keepdims=True), x, shape_invariants=shapes)
    (slope,) = tf.gradients(y, x)
    pushed = {op.inputs[1].dtype.name for op in graph.get_operations() if op.type == "StackPushV2"}
    assert pushed == {"int32"}
    assert run(slope, {x: [1.0, 2.0]}).tolist() == [9.0, 9.0]


def test_swap_memory_is_told_to_the_pushes(graph) -> None:
    x = tf.ones([2])
    for swap_memory in (False, True):
        tf.gradients(repeat(2, lambda i, y: y * y, x, swap_memory=swap_memory), x)
    told = [op.get_attr("swap_memory") for op in graph.get_operations() if op.type == "StackPushV2"]
    assert told == sorted(told) and set(told) == {False, True}


def test_a_gradients_loop_has_the_forward_loops_parallel_iterations(graph) -> None:
    x = tf.ones([2])
    tf.gradients(repeat(2, lambda i, y: y * y, x, parallel_iterations=3), x)
    enters = [op for op in graph.get_operations() if op.type == "Enter"]
    assert {op.get_attr("parallel_iterations") for op in enters} == {3}
    assert {op.get_attr("frame_name").decode() for op in enters} == {
        "while/while_context",
        "gradients/while/while_context",
    }


def test_the_forward_loop_alone_pushes_nothing() -> None:
    """A step that fetches no gradient has no stacks, though the graph has."""
    x = tf.placeholder(tf.float32, [])
    y = repeat(3, lambda i, y: y * tf.sin(x), x)
    (slope,) = tf.gradients(y, x)
    session = tf.Session()
    alone = str(session.explain(y, {x: 1.0}))
    assert "StackPush" not in alone and "push" not in alone.split("def segment")[-1]
    assert session.run(y, {x: 1.0}) == pytest.approx(np.sin(1.0) ** 3)
    assert session.run(slope, {x: 1.0}) == pytest.approx(np.sin(1) ** 3 + 3 * np.sin(1) ** 2 * np.cos(1))


def test_several_calls_on_one_loop_agree() -> None:
    x = tf.constant([0.5, 2.0])
    y = repeat(3, lambda i, y: y * y + x, x)
    first, second_time = tf.gradients(y, x), tf.gradients(tf.reduce_sum(y), x)
    one, other = run([first, second_time])
    np.testing.assert_array_equal(one[0], other[0])


def test_training_through_a_loop() -> None:
    w = tf.Variable([[0.5, 0.2], [-0.3, 0.8]])
    x = tf.constant([[1.0, -1.0]])
    h = repeat(4, lambda i, h: tf.tanh(tf.matmul(h, w) + x), tf.zeros([1, 2]))
    loss = tf.reduce_sum((h - [[0.3, -0.2]]) ** 2)
    train = tf.train.GradientDescentOptimizer(0.2).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(loss)
        for _ in range(200):
            session.run(train)
        assert session.run(loss) < 0.01 * before


def test_a_failing_gradient_names_its_node() -> None:
    x = tf.constant([1.0, 2.0])
    y = repeat(2, lambda i, y: tf.check_numerics(tf.log(y) * x, "here", name="check"), x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="here"):
        run(tf.gradients(y, x))


def test_a_sum_over_iterations_has_the_shape_of_what_is_added() -> None:
    x = tf.placeholder(tf.float32)
    (slope,) = tf.gradients(repeat(3, lambda i, y: y + tf.stack([x, y])[0], tf.ones([2])), x)
    assert slope.shape.as_list() == [2]
    assert run(slope, {x: [1.0, 2.0]}).tolist() == [3.0, 3.0]


def test_rows_that_no_iteration_gathers_have_the_shape_of_the_table() -> None:
    for table in (tf.ones([3, 2]), tf.placeholder_with_default(np.ones([3, 2], np.float32), [None, 2])):
        y = repeat(0, lambda i, y, table=table: y + tf.gather(table, [i, i]), tf.ones([2, 2]))
        (slope,) = tf.gradients(y, table)
        assert run(tf.convert_to_tensor(slope)).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("types", [("int32", "int32"), ("int32", "int64"), ("int64", "int32")])
def test_rows_gathered_in_branches(resource: bool, types: tuple[str, str]) -> None:
    """Each iteration adds the rows of the branch that it took, and only those."""
    w = tf.get_variable("w", initializer=tf.ones([3, 2]), use_resource=resource)
    ones, twos = (tf.constant(rows, kind) for rows, kind in zip([[0, 1], [2, 2]], types))

    def body(i: Any, y: Any) -> Any:
        row = tf.cond(i < 2, lambda: tf.gather(w, ones), lambda: tf.gather(w, twos + 0))
        return i + 1, y + row

    _, y = tf.while_loop(lambda i, _: i < 5, body, [0, tf.zeros([2, 2])])
    (slope,) = tf.gradients(y, w)
    assert slope.indices.dtype is (tf.int32 if set(types) == {"int32"} else tf.int64)
    assert run(tf.convert_to_tensor(slope)).tolist() == [[2, 2], [2, 2], [6, 6]]


# ---- random programs against difference quotients

SMOOTH: list[Callable[..., Any]] = [
    lambda a, b: tf.sin(a) + b,
    lambda a, b: tf.tanh(a) * b,
    lambda a, b: a * 0.5 - tf.cos(b),
    lambda a, b: tf.exp(-tf.square(a)) * b,
    lambda a, b: tf.sqrt(tf.square(a) + 1.0) - b,
    lambda a, b: tf.reduce_sum(a) * 0.2 + b,
    lambda a, b: tf.concat([a[1:], b[:1]], 0),
    lambda a, b: tf.stop_gradient(tf.ones_like(a)) + a - b * 0.3,
]


class RandomProgram:
    """Branches, loops, arrays and smooth functions, nested; all values are vectors of two doubles."""

    def __init__(self, seed: int, devices: int = 0) -> None:
        self.random, self.places, self.devices = random.Random(seed), random.Random(seed), devices

    def statements(self, values: list[Any], count: Any, size: int, depth: int) -> Any:
        """The last of `size` more values; `count`, an integer tensor, decides what branches are taken."""
        values = list(values)
        for _ in range(size):
            values.append(self.statement(values, count, depth))
        return values[-1]

    def statement(self, values: list[Any], count: Any, depth: int) -> Any:
        a, b = (self.random.choice(values[-4:]) for _ in range(2))
        kind = self.random.choice(["op", "op", "cond", "loop", "array"]) if depth else "op"
        if kind == "op":
            operation = self.random.choice(SMOOTH)
            with tf.device(f"/cpu:{self.places.randrange(4) % self.devices}" if self.devices else None):
                return operation(a, b)
        if kind == "cond":
            taken = tf.equal(count % self.random.randint(2, 3), 0)
            size = self.random.randint(1, 2)
            return tf.cond(
                taken,
                lambda: self.statements([*values, a], count, size, depth - 1),
                lambda: self.statements([*values, b], count, size, depth - 1),
            )
        times, size = self.random.choice([0, 1, 2, 3]), self.random.randint(1, 3)
        return (self.loop if kind == "loop" else self.array)(values, a, b, times, size, depth)

    def loop(self, values: list[Any], a: Any, b: Any, times: int, size: int, depth: int) -> Any:
        def body(i: Any, x: Any, y: Any) -> Any:
            return i + 1, self.statements([*values, y, x], i, size, depth - 1), x * 0.9

        parallel = self.random.choice([1, 10])
        start = [tf.constant(0), a, b]
        _, x, y = tf.while_loop(lambda i, x, y: i < times, body, start, parallel_iterations=parallel)
        return x + y

    def array(self, values: list[Any], a: Any, b: Any, times: int, size: int, depth: int) -> Any:
        array = tf.TensorArray(tf.float64, times + 1, clear_after_read=False, element_shape=[2]).write(0, a)

        def body(i: Any, written: Any) -> Any:
            x = self.statements([*values, written.read(i)], i, size, depth - 1)
            return i + 1, written.write(i + 1, x)

        _, written = tf.while_loop(lambda i, _: i < times, body, [tf.constant(0), array])
        return tf.reduce_sum(written.stack(), 0) + b * 0.1


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_have_the_slopes_of_difference_quotients(seed: int) -> None:
    program = RandomProgram(seed)
    x = tf.placeholder(tf.float64, [2])
    count = tf.placeholder_with_default(seed, [])
    y = program.statements([x, tf.constant([0.3, -0.7], tf.float64)], count, 4, 3)
    loss = tf.reduce_sum(tf.tanh(y) * tf.constant([1.0, 0.5], tf.float64))
    (slope,) = tf.gradients(loss, x)
    at, delta = np.array([0.4, -0.6]), 1e-6
    with tf.Session() as session:
        quotients = [
            (session.run(loss, {x: at + step}) - session.run(loss, {x: at - step})) / (2 * delta)
            for step in delta * np.eye(2)
        ]
        found = np.zeros(2) if slope is None else session.run(slope, {x: at})
    np.testing.assert_allclose(found, quotients, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("seed", range(12, 27))
def test_random_programs_have_the_same_slopes_on_several_devices(seed: int) -> None:
    found = []
    for devices in (1, 2, 3):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float64, [2])
            start = [x, tf.constant([0.3, -0.7], tf.float64)]
            count = tf.placeholder_with_default(seed, [])
            y = RandomProgram(seed, devices).statements(start, count, 3, 2)
            slopes = [y if slope is None else slope for slope in tf.gradients(y, x)]
            config = tf.ConfigProto(device_count={"CPU": devices}, operation_timeout_in_ms=30_000)
            with tf.Session(config=config) as session:
                found.append(session.run([y, *slopes], {x: [0.4, -0.6]}))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-12)
