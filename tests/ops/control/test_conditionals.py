"""`tf.cond`, `tf.case` and `tf.Assert`: the nodes that they make, and what they refuse."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def p():
    return tf.placeholder(tf.bool, [], name="p")


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [2], name="x")


def nodes(graph):
    return {
        op.name: (op.type, [t.name for t in op.inputs], [c.name for c in op.control_inputs])
        for op in graph.get_operations()
    }


def test_the_nodes_are_tensorflows(graph, p, x):
    y = tf.cond(p, lambda: x * 2.0, lambda: tf.constant([1.0, 2.0]))
    assert y.name == "cond/Merge:0" and y.shape.as_list() == [2]
    assert nodes(graph) == {
        "p": ("Placeholder", [], []),
        "x": ("Placeholder", [], []),
        "cond/Switch": ("Switch", ["p:0", "p:0"], []),
        "cond/switch_t": ("Identity", ["cond/Switch:1"], []),
        "cond/switch_f": ("Identity", ["cond/Switch:0"], []),
        "cond/pred_id": ("Identity", ["p:0"], []),
        "cond/mul/y": ("Const", [], ["cond/switch_t"]),
        "cond/mul/Switch": ("Switch", ["x:0", "cond/pred_id:0"], []),
        "cond/mul": ("Mul", ["cond/mul/Switch:1", "cond/mul/y:0"], []),
        "cond/Const": ("Const", [], ["cond/switch_f"]),
        "cond/Merge": ("Merge", ["cond/Const:0", "cond/mul:0"], []),
    }
    assert graph.get_operation_by_name("cond/mul/Switch").colocation_groups() == [b"loc:@x"]


def test_a_nested_conditional_takes_values_through_both(graph, p, x):
    q = tf.placeholder(tf.bool, [], name="q")
    tf.cond(p, lambda: tf.cond(q, lambda: x * 2.0, lambda: x * 3.0), lambda: x)
    found = nodes(graph)
    assert found["cond/cond/Switch/Switch"][1] == ["q:0", "cond/pred_id:0"]
    assert found["cond/cond/Switch"][1] == ["cond/cond/Switch/Switch:1"] * 2
    assert found["cond/cond/mul/Switch"][1] == ["x:0", "cond/pred_id:0"]
    assert found["cond/cond/mul/Switch_1"][1] == ["cond/cond/mul/Switch:1", "cond/cond/pred_id:0"]
    assert found["cond/cond/mul_1/Switch"][1] == ["cond/cond/mul/Switch:1", "cond/cond/pred_id:0"]
    assert found["cond/Switch_1"][1] == ["x:0", "cond/pred_id:0"]


def test_control_dependencies_around_and_inside(graph, p, x):
    a = tf.exp(x)
    with tf.control_dependencies([a]):
        tf.cond(p, lambda: tf.identity(x), lambda: tf.constant([1.0, 2.0]))

    def detached():
        with tf.control_dependencies(None):
            return tf.constant([3.0, 3.0])

    tf.cond(p, lambda: tf.identity(x), detached, name="other")
    found = nodes(graph)
    assert found["cond/Const"][2] == ["Exp", "cond/switch_f"] and found["cond/Identity"][2] == ["Exp"]
    assert found["other/Const"][2] == [] and found["other/Switch_1"][1] == [
        "other/Const:0",
        "other/pred_id:0",
    ]


def test_structures(p):
    session = tf.Session()
    single = tf.cond(p, lambda: [1], lambda: [2])
    kept = tf.cond(p, lambda: [1], lambda: [2], strict=True)
    nested = tf.cond(p, lambda: {"a": 1, "b": (2.0, 3.0)}, lambda: {"b": (3.0, 4.0), "a": 2})
    assert isinstance(single, tf.Tensor) and isinstance(kept, list)
    assert session.run([single, kept, nested], {p: False}) == [2, [2], {"a": 2, "b": (3.0, 4.0)}]


def test_slices_and_operations(graph, p, x):
    slices = tf.IndexedSlices(x, tf.constant([0, 1]), tf.constant([3]))
    chosen = tf.cond(
        p, lambda: slices, lambda: tf.IndexedSlices(x * 2.0, tf.constant([1, 2]), tf.constant([3]))
    )
    value = tf.Session().run(chosen, {p: False, x: [1, 2]})
    assert value.values.tolist() == [2, 4] and value.indices.tolist() == [1, 2]
    done = tf.cond(p, lambda: tf.group(x), tf.no_op)
    assert done.dtype == tf.bool and not tf.Session().run(done, {p: False, x: [1, 2]})


def test_shapes_of_branches_are_merged(p, x):
    assert tf.cond(p, lambda: x[:1], lambda: x).shape.as_list() == [None]
    assert tf.cond(p, lambda: tf.constant([[1.0]]), lambda: x).shape.ndims is None


def test_old_argument_names(p):
    y = tf.cond(p, fn1=lambda: 2, fn2=lambda: 3)
    assert tf.Session().run(y, {p: True}) == 2
    with pytest.raises(TypeError, match="'true_fn' and 'fn1' may not be set simultaneously"):
        tf.cond(p, lambda: 1, fn1=lambda: 2, fn2=lambda: 3)


def test_misuse(p):
    one, two = (lambda: 1), (lambda: 2)
    with pytest.raises(TypeError, match="'pred' must not be a Python bool"):
        tf.cond(True, one, two)
    with pytest.raises(TypeError, match="'true_fn' argument required"):
        tf.cond(p)
    with pytest.raises(TypeError, match="'true_fn' must be callable"):
        tf.cond(p, 1, two)
    with pytest.raises(ValueError, match="'true_fn' must have a return value"):
        tf.cond(p, lambda: None, two)
    with pytest.raises(ValueError, match="Received int32 from 'true_fn' and float32 from 'false_fn'"):
        tf.cond(p, one, lambda: 2.0)
    with pytest.raises(ValueError, match="same nested structure"):
        tf.cond(p, lambda: (1, 2), lambda: (1,))
    with pytest.raises(TypeError, match="type int32 that does not match expected type of bool"):
        tf.cond(tf.placeholder(tf.int32, []), one, two)
    with pytest.raises(ValueError, match="must be rank 0"):
        tf.cond(tf.placeholder(tf.bool, [2]), one, two)


def test_what_lies_in_a_branch_cannot_be_fetched(p):
    tf.cond(p, lambda: tf.constant(1), lambda: tf.constant(2))
    session = tf.Session()
    for name in ("cond/Const:0", "cond/pred_id:0"):
        with pytest.raises(ValueError, match="not fetchable"):
            session.run(name, {p: True})


# ---- case


def test_the_first_true_predicate_wins():
    x = tf.placeholder(tf.float32, [])
    pairs = [(x < 1.0, lambda: tf.constant(1)), (x < 2.0, lambda: tf.constant(2))]
    y = tf.case(pairs, default=lambda: tf.constant(3))
    assert y.name == "case/cond/Merge:0"
    session = tf.Session()
    assert [session.run(y, {x: value}) for value in (0.0, 1.5, 5.0)] == [1, 2, 3]


def test_without_a_default_one_must_be_true():
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.case([(x < 1.0, lambda: tf.constant(1)), (x < 2.0, lambda: tf.constant(2))])
    session = tf.Session()
    assert [session.run(y, {x: value}) for value in (0.0, 1.5)] == [1, 2]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"None of conditions evaluated as True:\] \[0 0\]"
    ):
        session.run(y, {x: 5.0})


def test_exclusive_cases():
    x = tf.placeholder(tf.float32, [])
    pairs = OrderedDict([(x < 1.0, lambda: tf.constant(1)), (x < 2.0, lambda: tf.constant(2))])
    y = tf.case(pairs, default=lambda: tf.constant(3), exclusive=True)
    session = tf.Session()
    assert session.run(y, {x: 1.5}) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"more than 1 conditions \(Less:0, Less_1:0\)"):
        session.run(y, {x: 0.0})


def test_misuse_of_case(p):
    with pytest.raises(TypeError, match="must be a list, tuple, or dict"):
        tf.case(3)
    with pytest.raises(ValueError):
        tf.case([])
    with pytest.raises(TypeError, match="must be a 2-tuple"):
        tf.case([(p, lambda: 1, 3)])
    with pytest.raises(TypeError, match="pred must be a Tensor"):
        tf.case([(1, lambda: 3)])
    with pytest.raises(TypeError, match="pred must be Tensor of type bool: x:0"):
        tf.case([(tf.placeholder(tf.float32, [], name="x"), lambda: 3)])
    with pytest.raises(TypeError, match="fn for pred p:0 must be callable"):
        tf.case([(p, 3)])


# ---- Assert


def test_assert_is_guarded_unless_its_data_is_on_the_host(graph, p, x):
    plain = tf.Assert(p, ["words", tf.constant([1, 2])])
    assert plain.name == "Assert/Assert" and plain.type == "Assert"
    guarded = tf.Assert(p, ["words", x])
    assert guarded.name == "Assert_1/AssertGuard/Merge"
    assert nodes(graph)["Assert_1/AssertGuard/Assert/Switch_1"][1] == [
        "x:0",
        "Assert_1/AssertGuard/pred_id:0",
    ]
    session = tf.Session()
    session.run([plain, guarded], {p: True, x: [1, 2]})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"assertion failed: \[words\] \[1 2\]"):
        session.run(plain, {p: False})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"assertion failed: \[words\] \[1.5 2\]"):
        session.run(guarded, {p: False, x: np.float32([1.5, 2])})


# ---- slices


def slices(index_type, rows=2, shape_type=tf.int32):
    shape = None if shape_type is None else tf.constant([4, 2], shape_type)
    return tf.IndexedSlices(tf.ones([rows, 2]), tf.range(rows, dtype=index_type), shape)


@pytest.mark.parametrize(
    "build",
    [
        lambda p: tf.cond(p, lambda: slices(tf.int32), lambda: slices(tf.int64)),
        lambda p: tf.cond(p, lambda: slices(tf.int64), lambda: slices(tf.int32)),
        lambda p: tf.cond(p, lambda: slices(tf.int64, 2, None), lambda: slices(tf.int32, 2, None)),
        lambda p: tf.cond(
            p,
            lambda: tf.cond(p, lambda: slices(tf.int32), lambda: slices(tf.int64)),
            lambda: slices(tf.int32),
        ),
        lambda p: tf.case(
            [(tf.logical_not(p), lambda: slices(tf.int32)), (p, lambda: slices(tf.int64))],
            default=lambda: slices(tf.int32),
        ),
        lambda p: tf.while_loop(
            lambda i, _: i < 3,
            lambda i, _: (i + 1, tf.cond(p, lambda: slices(tf.int32), lambda: slices(tf.int64))),
            [0, slices(tf.int64)],
        )[1],
    ],
)
def test_indices_of_different_types_become_64_bits(build, p) -> None:
    merged = build(p)
    assert merged.indices.dtype is tf.int64
    with tf.Session() as session:
        for taken in (True, False):
            value = session.run(merged, {p: taken})
            assert value.indices.tolist() == [0, 1] and value.indices.dtype == np.int64
            assert value.values.tolist() == [[1, 1], [1, 1]]


def test_equal_index_types_stay(p) -> None:
    merged = tf.cond(p, lambda: slices(tf.int32), lambda: slices(tf.int32, 3))
    assert merged.indices.dtype is tf.int32 and merged.values.shape.as_list() == [None, 2]


@pytest.mark.parametrize(
    ("on_true", "on_false"),
    [
        (lambda: slices(tf.int64), lambda: tf.ones([4, 2])),
        (lambda: tf.ones([4, 2]), lambda: slices(tf.int64)),
        (lambda: slices(tf.int32, 2, None), lambda: slices(tf.int32)),
        (lambda: slices(tf.int32, 2, tf.int64), lambda: slices(tf.int32)),
    ],
)
def test_slices_that_are_made_of_other_parts_are_refused(on_true, on_false, p) -> None:
    with pytest.raises(ValueError, match="Incompatible return values of 'true_fn' and 'false_fn'"):
        tf.cond(p, on_true, on_false)


def test_slices_in_a_loop_keep_their_types() -> None:
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        tf.while_loop(lambda i, _: i < 3, lambda i, _: (i, slices(tf.int64)), [0, slices(tf.int32)])
