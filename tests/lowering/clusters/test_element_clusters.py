"""Which nodes become one cluster: graph text before and after, and equal results with and without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, text
from flowstone.client.feeds_fetches import FetchStructure
from flowstone.client.runners import compiled_runner
from flowstone.framework import flags
from flowstone.framework.declarations.operation import registry
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "-")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)


def clusters(fetches: list[Any], feeds: list[Any]) -> list[str]:
    """What each cluster does."""
    lines = text(fetches, feeds, "join_clusters")
    return [line.split("operations='")[1].split("'")[0] for line in lines if " _Cluster(" in line]


def fed(*dims: int | None) -> Any:
    return tf.placeholder(tf.float32, dims)


def test_a_chain_is_one_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = fed(20, 200), fed(200)
    z = tf.tanh(x + y) * x
    before, after = text([z], [x, y]), text([z], [x, y], "join_clusters")
    assert [line.split("(")[0] for line in before[2:-1]] == ["%2 = AddV2", "%3 = Tanh", "%4 = Mul"]
    assert (
        after[2]
        == "%2 = _Cluster(%0, %1) Tout=[tf.float32] operations='AddV2+Tanh+Mul' : float32[20,200]  # mul"
    )
    feed = {x: np.random.randn(20, 200), y: np.random.randn(200)}
    agree(monkeypatch, [z], feed, "join_clusters", fires=3)


def test_what_others_take_is_an_output(monkeypatch: pytest.MonkeyPatch) -> None:
    x = fed(4, 4)
    y = tf.exp(x)
    z = y * x
    fetches = [tf.matmul(z, y), z]
    assert clusters(fetches, [x]) == ["Exp+Mul"]
    agree(monkeypatch, fetches, {x: np.random.randn(4, 4)}, "join_clusters", fires=2)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_of_two_numbers_takes_a_member_on_either_side(
    monkeypatch: pytest.MonkeyPatch, transposed: bool
) -> None:
    x, y = fed(1, 1), fed(1, 1)
    u = tf.tanh(x) * y
    z = tf.matmul(tf.exp(y), u, transpose_b=transposed) + tf.matmul(u, x)
    assert len(clusters([z], [x, y])) == 1
    agree(monkeypatch, [z], {x: [[0.5]], y: [[3.0]]}, "join_clusters", fires=6)


def test_operations_that_are_run_are_computed() -> None:
    x = fed(300)
    y = tf.raw_ops.BesselJ0(x=x)
    z = tf.exp(y) - 1.0
    lines = text([], [x], "join_clusters", targets=[y.op, z.op])
    assert len([line for line in lines if "operations='BesselJ0+Exp+Sub'" in line]) == 1
    with tf.Session() as session:
        feed = {x: np.linspace(-9, 9, 300)}
        assert session.run(z.op, feed) is None
        nothing, found, slope = session.run([z.op, z, tf.gradients(z, x)[0]], feed)
    assert nothing is None
    np.testing.assert_allclose(np.gradient(found, feed[x])[1:-1], slope[1:-1], atol=2e-3)


def test_no_path_leads_out_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    x = fed(4, 4)
    y = tf.exp(x) - 1.0
    z = (tf.matmul(y, y) + y) * x
    assert clusters([z], [x]) == ["Exp+Sub", "AddV2+Mul"]
    agree(monkeypatch, [z], {x: np.random.randn(4, 4)}, "join_clusters", fires=4)


def test_element_wise_nodes_come_before_others_that_could_part_them(monkeypatch: pytest.MonkeyPatch) -> None:
    x = fed(4, 4)
    y = tf.exp(x)
    product = tf.matmul(y, y)
    z = y * x + 1.0
    assert clusters([z, product], [x]) == ["Exp+Mul+AddV2"]
    agree(monkeypatch, [z, product], {x: np.random.randn(4, 4)}, "join_clusters", fires=3)


def test_shapes_and_unknown_sizes_part_clusters() -> None:
    x, y = fed(4, 4), fed(4, None)
    assert clusters([tf.reduce_sum(x * 2.0 - 1.0, 0) * 3.0 + 1.0], [x]) == ["Mul+Sub+Sum", "Mul+AddV2"]
    assert clusters([y * 2.0 - 1.0], [y]) == []


def test_a_product_of_a_number_and_a_row_takes_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    x, number = fed(1, 10), fed(1, 1)
    z = tf.matmul(number, tf.exp(x))
    assert clusters([z], [x, number]) == ["Exp+Mul"]
    values = {x: np.random.randn(1, 10), number: np.random.randn(1, 1)}
    agree(monkeypatch, [z], values, "join_clusters", fires=2)


def test_one_cheap_node_is_none() -> None:
    x = fed(4, 4)
    assert clusters([tf.matmul(x + 1.0, x)], [x]) == []
    assert clusters([tf.matmul(tf.exp(x), x)], [x]) == ["Exp"]


@pytest.mark.parametrize(("name", "alone"), [("Erf", []), ("Log", []), ("Acosh", []), ("Asinh", ["Asinh"])])
def test_one_function_of_float64_is_none_if_a_library_has_it(name: str, alone: list[str]) -> None:
    function = getattr(tf.raw_ops, name)
    short, wide = fed(300), tf.placeholder(tf.float64, [300])
    assert clusters([function(x=short)], [short]) == [name]
    assert clusters([function(x=wide)], [wide]) == alone
    assert clusters([function(x=wide) * wide], [wide]) == [f"{name}+Mul"]


@pytest.mark.parametrize("name", ["Relu6Grad", "SeluGrad"])
def test_one_node_for_which_aten_passes_several_times_is_one(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    dy, x = fed(300), fed(300)
    fetched = registry[name](dy, x).op.outputs[0]
    assert clusters([fetched], [dy, x]) == [name]
    given = 10 * np.random.RandomState(0).randn(2, 300)
    given[1, :5] = np.nan, np.inf, -np.inf, 0, 6
    given[0, 4:6] = np.inf, np.nan
    agree(monkeypatch, [fetched], {dy: given[0], x: given[1]}, "join_clusters", fires=1)


@pytest.mark.parametrize(
    "name", ["Less", "NotEqual", "IsNan", "SquaredDifference", "FloorDiv", "TruncateDiv"]
)
def test_one_node_that_aten_has_no_vectors_for_is_one_if_it_has_many_elements(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    few, many = fed(4, 4), fed(64, 64)
    inputs = 1 if name == "IsNan" else 2
    assert clusters([registry[name](*[few] * inputs).op.outputs[0]], [few]) == []
    fetched = registry[name](*[many] * inputs).op.outputs[0]
    assert clusters([fetched], [many]) == [name]
    x = np.random.RandomState(0).randn(64, 64)
    x[0, :3] = 0, np.nan, np.inf
    agree(monkeypatch, [fetched], {many: x}, "join_clusters", fires=1)


@pytest.mark.parametrize(
    ("name", "dtype", "is_one"),
    [
        ("Less", "int8", False), ("Less", "int32", True), ("LeftShift", "int8", True),
        ("PopulationCount", "int64", True), ("Square", "int64", True), ("Square", "float32", False),
        ("BitwiseAnd", "int32", False), ("Reciprocal", "float32", True), ("Reciprocal", "float16", True),
    ],
)  # fmt: skip
def test_which_types_of_many_elements_are_one(name: str, dtype: str, is_one: bool) -> None:
    x = tf.placeholder(dtype, [5000])
    inputs = 1 if name in ("PopulationCount", "Reciprocal", "Square") else 2
    found = registry[name](*[x] * inputs).op.outputs[0]
    assert clusters([found], [x]) == [name] * is_one


@pytest.mark.parametrize(
    ("name", "axes", "is_one"), [("Max", [0], True), ("Max", [1], False), ("Sum", [0], False)]
)
def test_one_large_reduction_is_one_if_it_goes_over_leading_axes(
    monkeypatch: pytest.MonkeyPatch, name: str, axes: list[int], is_one: bool
) -> None:
    x = fed(700, 100)
    y = getattr(tf, f"reduce_{name.lower()}")(x, axes)
    assert clusters([y], [x]) == [name] * is_one
    if is_one:
        agree(monkeypatch, [y], {x: np.random.RandomState(0).randn(700, 100)}, "join_clusters", fires=1)


def test_state_that_changes_is_read_by_its_own_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    v = tf.Variable(np.ones((3, 4), np.float32))
    before = v * 2.0 + 1.0
    with tf.control_dependencies([before]):
        change = v.assign_add(np.ones((3, 4), np.float32))
    with tf.control_dependencies([change]):
        after = tf.identity(v) * 2.0 + 1.0
    with tf.Session() as session:
        session.run(v.initializer)
        a, b = session.run([before, after])
    assert (a == 3).all() and (b == 5).all()


def test_nodes_that_take_states_between_changes_are_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    total = tf.Variable([6.0, 0.0], use_resource=True)
    count = tf.Variable([3.0, 0.0], use_resource=True)
    with tf.control_dependencies([total.assign_add([2.0, 2.0]), count.assign_add([1.0, 0.0])]):
        mean = tf.div_no_nan(total.read_value(), count.read_value())
    with tf.control_dependencies([mean]):
        change = count.assign([5.0, 5.0])
    assert clusters([mean], []) == ["Identity+Identity+DivNoNan"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([mean, change])[0].tolist() == [2.0, 0.0]
        assert session.run(count).tolist() == [5.0, 5.0]


def test_what_takes_a_variable_joins_others_before_its_update(monkeypatch: pytest.MonkeyPatch) -> None:
    x, slope = fed(8, 5), tf.Variable(np.linspace(0.1, 0.5, 5).astype("f"))
    y = tf.maximum(x, 0.0) + slope * tf.minimum(x, 0.0)
    loss = tf.reduce_sum(y * y)
    train = slope.assign_sub(0.1 * tf.gradients(loss, slope)[0])
    assert clusters([loss, train], [x])[0].startswith("Maximum+Minimum+Mul+AddV2+Mul")
    value = np.random.RandomState(0).randn(8, 5)
    seen = []
    for disabled in (frozenset(), frozenset({"join_clusters"})):
        monkeypatch.setattr(flags, "DISABLED_PASSES", disabled)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            losses = [session.run([loss, train], {x: value})[0] for _ in range(4)]
            seen.append([*losses, *session.run(slope)])
            text = session.explain([loss, train], {x: value})
            assert ("minimum(" in text.split("def segment")[1]) == bool(disabled)
    np.testing.assert_allclose(seen[0], seen[1], rtol=1e-5)
    assert seen[0][0] != seen[0][1]


@pytest.mark.parametrize("resource", [False, True])
def test_no_cluster_takes_a_state_before_and_after_a_change(resource: bool) -> None:
    x, v = fed(6), tf.Variable(np.arange(6, dtype="f"), use_resource=resource)
    read = v.read_value if resource else lambda: tf.identity(v)
    old = tf.exp(-read() * x) + 1.0
    with tf.control_dependencies([v.assign_add(x)]):
        new = (read() * 2.0 + old) * x
    with tf.control_dependencies([v.assign(new)]):
        last = read() - new + old
    with tf.Session() as session:
        session.run(v.initializer)
        value, state = np.linspace(0.5, 1, 6).astype("f"), np.arange(6, dtype="f")
        for _ in range(3):
            found = session.run([old, new, last], {x: value})
            first = np.exp(-state * value) + 1
            second = ((state + value) * 2 + first) * value
            for got, wanted in zip(found, [first, second, first]):
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
            state = second
            np.testing.assert_allclose(session.run(v), state, rtol=1e-5)


def without_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves loops and conditionals to the plan: whole ones would be compiled before clusters are."""
    monkeypatch.setattr(flags, "DISABLED_PASSES", flags.DISABLED_PASSES | {"join_programs"})


def test_a_branch_is_not_joined_with_what_is_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    without_programs(monkeypatch)
    x, p = fed(5, 3), tf.placeholder(tf.bool, [])
    y = x * 2.0 + 1.0
    z = tf.cond(p, lambda: tf.exp(y) * 3.0, lambda: y - x) + 1.0
    for value in (True, False):
        feed = {x: np.random.randn(5, 3), p: value}
        agree(monkeypatch, [z], feed, "join_clusters", fires=4)


def test_clusters_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    without_programs(monkeypatch)
    x = fed(5, 3)
    _, y = tf.while_loop(lambda i, y: i < 7, lambda i, y: (i + 1, tf.tanh(y * x + 0.1)), [0, x])
    gradient = tf.gradients(y, x)[0]
    log = agree(monkeypatch, [y, gradient], {x: np.random.randn(5, 3)}, "join_clusters", fires=7)
    assert "_Cluster" in log


def test_powers_with_known_exponents(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float64, [6])
    y = tf.pow(x, tf.constant(0.5, tf.float64)) + tf.pow(x, tf.constant(3.0, tf.float64))
    assert clusters([y], [x]) == ["Sqrt+Pow+AddV2"]
    agree(monkeypatch, [y], {x: np.random.rand(6)}, "join_clusters", fires=3, tolerance=1e-13)


@pytest.mark.parametrize("rows", [5, None])
@pytest.mark.parametrize("dims", [(7,), (3, 17)])
def test_a_choice_of_rows_is_a_member(
    monkeypatch: pytest.MonkeyPatch, rows: int | None, dims: tuple[int, ...]
) -> None:
    """The condition has one number a row, here in a layout of its own; what is not chosen may be NaN."""
    x, y, flags_of_rows = fed(rows, *dims), fed(rows, *dims), tf.placeholder(tf.bool, [rows, 2])
    is_over = tf.unstack(flags_of_rows, axis=1)[1]
    z = tf.where(is_over, x, tf.exp(y)) * 2.0 + tf.where(is_over, tf.zeros_like(x), y)
    feed = {x: np.random.randn(5, *dims), y: np.random.randn(5, *dims)}
    feed[x][0], feed[y][1] = np.nan, np.inf
    feed[flags_of_rows] = [[True, False], [False, True], [True, True], [False, False], [True, True]]
    if rows is not None:
        assert clusters([z], [x, y, flags_of_rows]) == ["Exp+Select+Mul+Select+AddV2"]
    agree(monkeypatch, [z], feed, "join_clusters", fires=5)


def test_a_condition_of_the_cluster_itself_is_no_choice_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    x, lengths = fed(6, 9), fed(6)
    z = tf.where(lengths > 0.0, tf.exp(x), x) * 2.0
    assert clusters([z], [x, lengths]) == ["Exp+Select+Mul"]
    feed = {x: np.random.randn(6, 9), lengths: np.random.randn(6)}
    agree(monkeypatch, [z], feed, "join_clusters", fires=3)


@pytest.mark.parametrize("dims", [(), (3,)])
def test_what_is_only_run_is_computed(dims: tuple[int, ...]) -> None:
    """A node that is waited for, and taken by none, ends no cluster: one needs a result."""
    x = tf.placeholder(tf.float32, dims)
    run = tf.group(tf.maximum(x, 1.0 - x), tf.exp(tf.check_numerics(x, "bad")))
    with tf.Session() as session:
        assert session.run(run, {x: np.ones(dims)}) is None
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
            session.run(run, {x: np.full(dims, np.nan)})


@pytest.mark.parametrize("rows", [1, 7, 128])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_with_one_column(
    monkeypatch: pytest.MonkeyPatch, rows: int, dtype: Any, transposed: bool
) -> None:
    shape = [1, 50] if transposed else [50, 1]
    x, weights, bias = (tf.placeholder(dtype, dims) for dims in ([rows, 50], shape, [1]))
    y = tf.sigmoid(tf.matmul(tf.tanh(x), weights, transpose_b=transposed) + bias) * 2.0
    assert clusters([y], [x, weights, bias]) == ["Tanh+Mul+Sum+AddV2+Sigmoid+Mul"]
    feed = {x: np.random.randn(rows, 50), weights: np.random.randn(*shape), bias: [0.3]}
    agree(monkeypatch, [y], feed, "join_clusters", fires=3)


@pytest.mark.parametrize("rows", [1, 7, 128])
def test_gradients_through_one_column(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    x, weights = fed(rows, 50), fed(50, 1)
    y = tf.matmul(tf.nn.relu(x), weights)
    (slope,) = tf.gradients(tf.square(y), x)
    assert clusters([slope], [x, weights]) == ["Relu+Mul+Sum+Mul+Mul+Mul+ReluGrad"]
    feed = {x: np.random.randn(rows, 50), weights: np.random.randn(50, 1)}
    agree(monkeypatch, [slope], feed, "join_clusters", fires=5)


def test_products_that_are_no_members() -> None:
    x, column = fed(7, 50), fed(50, 1)
    large, taken = fed(20_000, 50), fed(7, 1)
    others = [
        tf.matmul(x, fed(50, 2)),
        tf.matmul(x, taken, transpose_a=True),
        tf.matmul(large, column),
        tf.matmul(fed(None, 50), column),
        tf.matmul(tf.cast(x, tf.int32), tf.cast(column, tf.int32)),
    ]
    feeds = [x, column, large, taken, *[each.op.inputs[0] for each in others[3:4]], others[0].op.inputs[1]]
    for each in others:
        assert not any("Mul" in found for found in clusters([tf.abs(each) + 1], feeds))


@pytest.mark.parametrize(
    ("first", "second"),
    [((5, 7, 8), (5, 7, 8)), ((2, 6, 8), (2, 6, 8)), ((5, 1, 8), (1, 7, 8)), ((1, 1, 8), (3, 4, 8)),
     ((0, 7, 8), (0, 7, 8))],
    ids=str,
)  # fmt: skip
def test_several_open_sizes_are_one(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    x, y = [tf.placeholder(tf.float32, [None, None, 8]) for _ in range(2)]
    z = tf.tanh(x + y) * tf.constant(np.arange(8, dtype="f"))
    mean = tf.reduce_mean(z, 2, keepdims=True)
    results = [z - mean, tf.reduce_sum(z, [0, 1]), mean]
    numbers = np.random.RandomState(2)
    a, b = numbers.randn(*first).astype("f"), numbers.randn(*second).astype("f")
    wanted = np.tanh(a + b) * np.arange(8)
    means = wanted.mean(2, keepdims=True)
    with tf.Session() as s:
        plan = s.planner.plan(FetchStructure(s.graph, results), [x, y], None)
        assert any(node.type == "_Cluster" for node in plan.subgraph.nodes)
        run = compiled_runner(s.steps, FetchStructure(s.graph, results), [x, y], plan, None)
        for _ in range(2):
            for got, expected in zip(run(a, b), [wanted - means, wanted.sum((0, 1)), means]):
                assert got.shape == expected.shape
                np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_a_product_that_takes_a_row_in_another_shape_is_no_member_with_those_that_do_not() -> None:
    x = fed(1, 2)
    y = tf.matmul(x, x, transpose_b=True)
    z = tf.tanh(x) + tf.exp(x) + tf.matmul(y, x) + tf.square(x)
    value = np.array([[0.5, -2.0]], "f")
    with tf.Session() as session:
        found = session.run(z, {x: value})
    wanted = np.tanh(value) + np.exp(value) + value * (value @ value.T) + value**2
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
