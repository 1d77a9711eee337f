"""The public functions over array operations: nodes, static shapes and errors are the oracle's.

`tests/golden/array_functions.txt` holds the oracle's answers, `evaluate` says what its expressions may use.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "array_functions.txt"


def answers() -> list[tuple[str, str, str]]:
    """(expression, error class or "ok", nodes and shape) of each answer."""
    lines = [line for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
    return [(lines[i], lines[i + 1].strip(), lines[i + 2].strip()) for i in range(0, len(lines), 3)]


def evaluate(expression: str) -> Any:
    """The value of an expression over `tf`, `np` and `ph`, which makes a placeholder."""

    def ph(shape: Any = (2, 3), dt: Any = tf.float32) -> Any:
        return tf.placeholder(dt, shape)

    return eval(expression, {"tf": tf, "np": np, "ph": ph})


def described(graph: Any, result: Any) -> str:
    """The graph's nodes except placeholders, and the shape of the result (or of each one in a list)."""
    nodes = []
    for operation in graph.get_operations():
        if not operation.name.startswith("Placeholder"):
            inputs = ",".join(tensor.op.name for tensor in operation.inputs)
            nodes.append(f"{operation.name}:{operation.type}" + (f"({inputs})" if inputs else ""))
    if isinstance(result, (list, tuple)):
        shape: Any = [getattr(one, "shape", one) for one in result]
    else:
        shape = getattr(result, "shape", result)
    return f"{' '.join(nodes)} => {shape}".strip()


@pytest.mark.parametrize("answer", answers(), ids=lambda answer: answer[0])
def test_nodes_shapes_and_errors(answer: tuple[str, str, str]) -> None:
    """An expression adds the nodes, has the shape and raises the class that it does in the oracle."""
    expression, error, expected = answer
    graph, result, found = tf.Graph(), None, "ok"
    with graph.as_default():
        try:
            result = evaluate(expression)
        except Exception as raised:
            found = type(raised).__name__
    assert (found, described(graph, result)) == (error, expected)


def run(expression: Any, feed: Any = None) -> Any:
    """The value that a fresh session gives."""
    with tf.Session(graph=expression.graph) as session:
        return session.run(expression, feed)


def test_indexing_is_numpy_indexing() -> None:
    """Every form of index selects what it selects from an array."""
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = tf.placeholder(tf.float32, [None, 3, None])
    i = tf.constant(1)
    for ours, index in [
        (x[1], np.s_[1]),
        (x[:, ::-1, 1:], np.s_[:, ::-1, 1:]),
        (x[..., tf.newaxis, -1], np.s_[..., None, -1]),
        (x[i, i:, : i + 1], np.s_[1, 1:, :2]),
        (x[0, 5:], np.s_[0, 5:]),
        (x[()], np.s_[()]),
        (x[tf.constant([True, False])], np.s_[[True, False]]),
        (x[array > 7], np.s_[array > 7]),
    ]:
        np.testing.assert_array_equal(run(ours, {x: array}), array[index], err_msg=str(index))


def test_index_out_of_range_is_an_error_of_the_step() -> None:
    """An index that only the step knows is checked there."""
    x, i = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="slice index 3 of dimension 0 out of bounds"):
        run(x[i], {x: [1, 2, 3], i: 3})


@pytest.mark.parametrize("use_resource", [False, True])
def test_assigning_to_a_slice_changes_the_variable(use_resource: bool) -> None:
    """The rest of the variable stays, a negative step places in reverse."""
    variable = tf.Variable([1.0, 2.0, 3.0, 4.0], use_resource=use_resource)
    with tf.Session() as session:
        session.run(variable.initializer)
        session.run(variable[2:0:-1].assign([7.0, 8.0]))
        assert session.run(variable).tolist() == [1, 8, 7, 4]


def test_only_a_variable_s_slice_can_be_assigned() -> None:
    """As in TensorFlow a plain slice has no `assign`."""
    assert not hasattr(tf.constant([1.0])[0:], "assign")


def test_reshape_learns_the_static_shape_through_shape_arithmetic() -> None:
    """A partly known vector of sizes keeps what is known."""
    x = tf.placeholder(tf.float32, [None, 28, 28])
    assert tf.reshape(x, tf.stack([tf.shape(x)[0], 784])).shape.as_list() == [None, 784]
    assert tf.reshape(x, tf.concat([tf.shape(x)[:1], [784]], 0)).shape.as_list() == [None, 784]
    assert tf.zeros(tf.unstack(tf.shape(x))[1:]).shape.as_list() == [28, 28]


def test_values_of_composite_functions() -> None:
    """Masks, grids and paddings compute what their names say."""
    assert run(tf.sequence_mask([1, 2], 3)).tolist() == [[True, False, False], [True, True, False]]
    assert run(tf.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])).tolist() == [1, 3, 4]
    assert run(tf.meshgrid([1, 2], [3, 4, 5])[1]).tolist() == [[3, 3], [4, 4], [5, 5]]
    assert run(tf.eye(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert run(tf.one_hot([1], 2, 5, 3)).tolist() == [[3, 5]]
    sizes = tf.placeholder(tf.int32, [2])
    paddings, crops = tf.required_space_to_batch_paddings(sizes, [2, 4])
    assert run(paddings, {sizes: [5, 6]}).tolist() == [[0, 1], [0, 2]]
    assert run(crops, {sizes: [5, 6]}).tolist() == [[0, 1], [0, 2]]
    assert run(tf.batch_gather([[1, 2], [3, 4]], [[1], [0]])).tolist() == [[2], [3]]


def test_a_broadcast_is_never_overwritten() -> None:
    """The result shows one element in several places, so an in-place sum must not take its buffer."""
    x = tf.placeholder(tf.float32, [])
    assert run(tf.broadcast_to(x + 1.0, [3]) + 1.0, {x: 1.0}).tolist() == [3, 3, 3]


def test_gradient_of_a_gather_keeps_to_the_gathered_slices() -> None:
    """It is IndexedSlices, which sums repeated places when made dense."""
    table = tf.constant([[1.0], [2.0], [3.0]])
    (gradient,) = tf.gradients(tf.gather(table, [2, 0, 2]), [table])
    assert isinstance(gradient, tf.IndexedSlices)
    assert run(tf.convert_to_tensor(gradient)).tolist() == [[1], [0], [2]]


def test_dynamic_parts_come_back_together() -> None:
    """Stitching what was partitioned gives the original, also for gradients."""
    data, parts = tf.constant([1.0, 2.0, 3.0]), tf.constant([1, 0, 1])
    pieces = tf.dynamic_partition(data, parts, 2)
    whole = tf.dynamic_stitch(tf.dynamic_partition(tf.range(3), parts, 2), pieces)
    (gradient,) = tf.gradients(whole * [1.0, 10.0, 100.0], [data])
    with tf.Session() as session:
        assert session.run(whole).tolist() == [1, 2, 3]
        assert session.run(gradient).tolist() == [1, 10, 100]


@pytest.mark.parametrize(
    ("move", "shape"),
    [
        (lambda x: tf.depth_to_space(x, 2), [1, 1, 1, 4]),
        (lambda x: tf.space_to_depth(x, 2), [1, 2, 2, 1]),
        (lambda x: tf.batch_to_space_nd(x, [2, 2], [[0, 0], [0, 0]]), [4, 1, 1, 1]),
        (lambda x: tf.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]]), [1, 2, 2, 1]),
        (lambda x: tf.space_to_batch_nd(x, [1, 1], [[0, 0], [0, 0]]), [1, 2, 2, 1]),
    ],
)
def test_blocks_that_are_in_order_are_copied(move, shape):
    """A fetched value stays as it is when the variable changes, and when the fed array does."""
    numbers = np.arange(4, dtype=np.float32).reshape(shape)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(numbers)
        session.run(variable.initializer)
        kept = session.run(move(variable))
        session.run(tf.assign_add(variable, np.ones(shape, np.float32)))
        np.testing.assert_array_equal(kept.ravel(), range(4))
        x = tf.placeholder(tf.float32, shape)
        fed = numbers.copy()
        kept = session.run(move(x), {x: fed})
        fed += 1
        np.testing.assert_array_equal(kept.ravel(), range(4))


def test_sizes_that_only_the_step_knows_are_told_in_their_type() -> None:
    x = tf.placeholder(tf.int8)
    told = [tf.shape(x), tf.size(x), tf.shape(x, out_type=tf.int64), tf.size(x, out_type=tf.int64)]
    told += tf.shape_n([x, x], out_type=tf.int64)
    with tf.Session() as session:
        found = session.run(told, {x: np.zeros((3, 1, 2), np.int8)})
        assert [each.tolist() for each in found] == [[3, 1, 2], 6, [3, 1, 2], 6, [3, 1, 2], [3, 1, 2]]
        assert [each.dtype for each in found] == [np.int32, np.int32, *[np.int64] * 4]
        many = np.empty(2**31, np.int8)  # untouched pages
        assert session.run(told[3], {x: many}) == 2**31
        with pytest.raises(tf.errors.OpError):
            session.run(told[1], {x: many})


def test_reshapes_that_only_the_step_knows() -> None:
    x, shape = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [None])
    result = tf.reshape(x, shape)
    with tf.Session() as session:
        for given, sizes, wanted in [
            ((2, 3), [3, -1], (3, 2)), ((2, 0), [-1, 3], (0, 3)), ((2, 0), [0, -1], (0, 2)), ((1,), [], ()),
        ]:  # fmt: skip
            assert session.run(result, {x: np.zeros(given), shape: sizes}).shape == wanted
        for sizes in ([4, 2], [-1, -1], [-2, -3], [-1, 4], [0, -1]):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(result, {x: np.zeros((2, 3)), shape: sizes})


def test_one_number_is_the_size_of_blocks_in_both_dimensions():
    """As `tf.batch_to_space` of TensorFlow 2 reads `block_shape`, which libraries for both versions pass."""
    x = tf.constant(np.arange(16, dtype=np.float32).reshape([4, 2, 2, 1]))
    one = tf.batch_to_space(x, [[0, 0], [0, 0]], block_shape=2)
    both = tf.batch_to_space(x, [[0, 0], [0, 0]], block_shape=[2, 2])
    with tf.Session() as session:
        np.testing.assert_array_equal(*session.run([one, both]))
    assert one.shape == (1, 4, 4, 1)


@pytest.mark.parametrize("indices", [[[0, 1], [2, 0]], [[[2]], [[1]]]])
@pytest.mark.parametrize("axis", [-1, 1])
def test_texts_of_a_batch_are_gathered_as_numbers_are(indices: Any, axis: int) -> None:
    numbers = np.arange(6).reshape(2, 3)
    fed, places = tf.placeholder(tf.int64), tf.placeholder(tf.int64)
    pair = [tf.gather(x, places, axis=axis, batch_dims=1) for x in (tf.as_string(fed), fed)]
    texts, found = tf.Session().run(pair, {fed: numbers, places: indices})
    np.testing.assert_array_equal(texts.astype(np.int64), found)
