"""`tf.while_loop`: values, static shapes, nodes and mistakes as TensorFlow has them; graphs that travel.

The expectations are in `tests/golden/loops`, made by `tests/golden/make_loop_goldens.py` from the programs in
`loop_programs.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import flowstone as tf
import loop_programs
import reference_loop_programs
from flowstone.framework.errors import InaccessibleTensorError
from flowstone.framework.graphs.graph_def import messages

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = Path(__file__).parents[2] / "golden" / "loops"
REFERENCES = json.loads((GOLDEN / "references.json").read_text())
EXPECTED = json.loads((GOLDEN / "values.json").read_text())


def golden_nodes() -> dict[str, list[str]]:
    sections = [section.strip().split("\n") for section in (GOLDEN / "nodes.txt").read_text().split("# ")[1:]]
    return {lines[0]: lines[1:] for lines in sections}


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


# ---- against TensorFlow


def test_every_program_has_its_goldens() -> None:
    assert list(EXPECTED["programs"]) == list(loop_programs.PROGRAMS)
    assert list(EXPECTED["mistakes"]) == list(loop_programs.MISTAKES)
    assert list(golden_nodes()) == loop_programs.NAMED


@pytest.mark.parametrize("name", loop_programs.PROGRAMS)
def test_values_and_static_shapes(name: str) -> None:
    found, expected = loop_programs.run(tf, name), EXPECTED["programs"][name]
    assert [x[1:] for x in found] == [x[1:] for x in expected]
    for (value, *_), (golden, *_) in zip(found, expected):
        if isinstance(golden, str) or "string" in str(expected):
            assert value == golden
        else:
            np.testing.assert_allclose(value, golden, rtol=1e-6)


@pytest.mark.parametrize("name", loop_programs.NAMED)
def test_nodes(name: str) -> None:
    assert loop_programs.node_lines(tf, name) == golden_nodes()[name]


@pytest.mark.parametrize("name", loop_programs.MISTAKES)
def test_mistakes(name: str) -> None:
    kind, message = loop_programs.refusal(tf, name)
    assert kind == EXPECTED["mistakes"][name]
    assert loop_programs.MISTAKES[name][0] in message


# ---- reference variables


@pytest.mark.parametrize("name", reference_loop_programs.PROGRAMS)
def test_references_show_what_the_loop_assigns(name: str) -> None:
    config = tf.ConfigProto(operation_timeout_in_ms=30_000)
    assert reference_loop_programs.run(tf, name, config) == REFERENCES[name]
    assert reference_loop_programs.run(tf, name) == REFERENCES[name]


def test_a_reference_that_is_handed_round_beside_a_counter() -> None:
    """TensorFlow's answer; both outputs of the loop's Switch stand for the variable."""
    n = tf.Variable(0.0)

    def body(i, v):
        with tf.control_dependencies([tf.assign_add(n, 1.0)]):
            return i + 1, tf.identity(v)

    looped = tf.while_loop(lambda i, v: i < 3, body, [0, n], parallel_iterations=1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([*looped, n]) == [3, 3.0, 3.0]


# ---- graphs that travel


def read(path: Path) -> Any:
    return text_format.Parse(path.read_text(), messages("graph_pb2").GraphDef())


@pytest.mark.parametrize("origin", ["tensorflow", "flowstone"])
def test_imported_loops_run(origin: str) -> None:
    tf.import_graph_def(read(GOLDEN / f"from_{origin}.pbtxt"), name="")
    for x, expected in loop_programs.EXCHANGED_VALUES.items():
        np.testing.assert_allclose(run(["result:0", "slope:0"], {"x:0": x}), expected, rtol=1e-6)


def test_exported_loops_are_those_that_tensorflow_ran(graph) -> None:
    loop_programs.exchanged(tf)
    found = graph.as_graph_def()
    found.ClearField("versions")
    expected = read(GOLDEN / "from_flowstone.pbtxt")
    expected.ClearField("versions")
    assert found == expected


def test_exported_loops_have_tensorflows_nodes(graph) -> None:
    loop_programs.exchanged(tf)
    found, golden = graph.as_graph_def().node, read(GOLDEN / "from_tensorflow.pbtxt").node

    def described(nodes: Any) -> list[tuple[str, str, list[str]]]:
        forward = [n for n in nodes if not n.name.startswith("gradients/") and n.name != "slope"]
        return sorted((n.name, n.op, sorted(n.input)) for n in forward)

    assert described(found) == described(golden)


# ---- what no value shows


def test_loops_are_in_a_collection_unless_they_are_in_another(graph) -> None:
    def body(i: Any) -> Any:
        return tf.while_loop(lambda j: j < 3, lambda j: j + 1, [i])

    tf.while_loop(lambda i: i < 3, body, [0], name="outer")
    (context,) = graph.get_collection(tf.GraphKeys.WHILE_CONTEXT)
    assert context.name == "outer/while_context"


def test_attributes_of_the_primitives(graph) -> None:
    k = tf.constant(2.0)
    tf.while_loop(lambda x: x < k, lambda x: x + k, [0.0], parallel_iterations=3)
    enters = {op.name: op for op in graph.get_operations() if op.type == "Enter"}
    assert [enters[name].get_attr("is_constant") for name in sorted(enters)] == [False, True, True][
        : len(enters)
    ]
    assert {op.get_attr("parallel_iterations") for op in enters.values()} == {3}
    assert {op.get_attr("frame_name") for op in enters.values()} == {b"while/while_context"}


def test_the_cycle_is_an_input_of_the_merge(graph) -> None:
    tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    merge = graph.get_operation_by_name("while/Merge")
    assert [x.name for x in merge.inputs] == ["while/Enter:0", "while/NextIteration:0"]
    assert merge.outputs[0].consumers()[0].type in ("Less", "Switch")


def test_what_lies_in_a_loop_cannot_be_fetched_or_fed(graph) -> None:
    k = tf.constant(1, name="k")
    result = tf.while_loop(lambda i: i < 3, lambda i: i + k, [0])
    session = tf.Session()
    for name in ("while/add:0", "while/Identity:0", "while/Less:0", "while/Less/y:0"):
        with pytest.raises(InaccessibleTensorError, match=r"Operation '.*' has been marked as not fetchable"):
            session.run(name)
    for name in ("while/add:0", "while/Identity:0", "while/Enter:0", "while/add/Enter:0"):
        with pytest.raises(ValueError, match="may not be fed"):
            session.run(result, {name: 1})
    assert session.run(result, {"k:0": 2, "while/Const:0": -1}) == 3


def test_a_variable_may_not_change_its_type() -> None:
    with pytest.raises(TypeError, match="'x:0' enters the loop with type float32, but has type float64"):
        tf.while_loop(lambda x: x < 1, lambda x: tf.cast(x, tf.float64), [tf.constant(0.5, name="x")])


def test_the_body_is_called_once() -> None:
    calls: list[int] = []

    def body(i: Any) -> Any:
        calls.append(1)
        return i + 1

    assert run(tf.while_loop(lambda i: i < 100, body, [0])) == 100 and calls == [1]


def test_one_step_many_plans() -> None:
    """The same loop fetched alone, with others, and under feeds of another count."""
    limit = tf.placeholder(tf.int32, [])
    i, x = tf.while_loop(lambda i, x: i < limit, lambda i, x: (i + 1, x + 0.5), [0, 0.0])
    session = tf.Session()
    assert [session.run(i, {limit: n}) for n in (0, 1, 1000)] == [0, 1, 1000]
    assert session.run([x, i], {limit: 7}) == [3.5, 7]
    assert session.run(x * 2.0, {limit: -1}) == 0.0


def test_a_failing_body_names_its_node() -> None:
    rows = tf.constant([1.0, 2.0])

    def body(i: Any, x: Any) -> Any:
        return i + 1, x + tf.gather(rows, i, name="row")

    _, x = tf.while_loop(lambda i, x: i < 3, body, [0, 0.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="while/row"):
        run(x)


def test_a_variable_beside_an_array_may_be_set_without_being_used() -> None:
    x = tf.placeholder_with_default(2.0, [])

    def body(i: Any, last: Any, array: Any) -> Any:
        return i + 1, x + tf.cast(i, tf.float32), array.write(i, x)

    start = [0, 0.0, tf.TensorArray(tf.float32, 3)]
    _, last, array = tf.while_loop(lambda i, *_: i < 3, body, start)
    found, rows = run([last, array.stack()])
    assert found == 4.0 and rows.tolist() == [2.0, 2.0, 2.0]


def test_effects_happen_once_an_iteration_and_in_order() -> None:
    seen: list[int] = []

    def note(i: Any) -> Any:
        seen.append(int(i))
        return i

    def body(i: Any) -> Any:
        with tf.control_dependencies([tf.py_func(note, [i], tf.int32)]):
            return i + 1

    run(tf.while_loop(lambda i: i < 5, body, [0]))
    assert seen == [0, 1, 2, 3, 4]


def test_an_effect_behind_the_loop_comes_after_all_iterations() -> None:
    v = tf.Variable(0, use_resource=True)

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.assign_add(i)]):
            return i + 1

    done = tf.while_loop(lambda i: i < 5, body, [0])
    with tf.control_dependencies([done]):
        after = v.assign_add(100)
    assert run(after) == 110


@pytest.mark.parametrize("parallel_iterations", [1, 2, 32])
@pytest.mark.parametrize("devices", [0, 1, 2])
def test_placement_and_parallel_iterations_change_no_value(parallel_iterations: int, devices: int) -> None:
    def place(i: int) -> Any:
        return tf.device(f"/cpu:{i % devices}" if devices else None)

    def body(i: Any, x: Any) -> Any:
        with place(0):
            y = tf.cond(tf.equal(i % 3, 0), lambda: x * 2.0, lambda: x - 1.0)
        with place(1):
            _, y = tf.while_loop(lambda j, y: j < i, lambda j, y: (j + 1, y + 0.5), [0, y])
        return i + 1, y

    _, x = tf.while_loop(lambda i, x: i < 6, body, [0, 1.0], parallel_iterations=parallel_iterations)
    expected = 1.0
    for i in range(6):
        expected = (expected * 2.0 if i % 3 == 0 else expected - 1.0) + 0.5 * i
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": max(devices, 1)})) as session:
        assert session.run(x) == expected
