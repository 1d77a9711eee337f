"""The public functions of mathematics: values, types and static shapes that TensorFlow 2.21 gives.

The ops themselves are tested by table; these cases hold what the functions make of them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

A = np.array([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]], np.float32)
B = np.array([[1.0, 0.0, -2.0], [0.5, 3.0, 1.0]], np.float32)
A3 = (np.arange(18).reshape(2, 3, 3) % 7 - 3).astype(np.float32) / 2
V = np.array([-0.5, 1.0, 2.0], np.float32)

CASES: list[tuple[Callable[[], Any], str, Any]] = [
    # arithmetic
    (lambda: tf.add_n([A, A, A]), "float32", [[1.5, -3.0], [6.0, 0.75], [-2.25, 4.5]]),
    (lambda: tf.accumulate_n([A, A]), "float32", [[1.0, -2.0], [4.0, 0.5], [-1.5, 3.0]]),
    (lambda: tf.scalar_mul(2.0, tf.constant(A)), "float32", [[1.0, -2.0], [4.0, 0.5], [-1.5, 3.0]]),
    # division
    (lambda: tf.div(7, -2), "int32", -4),
    (lambda: tf.truediv(7, 2), "float64", 3.5),
    # operators
    (lambda: 7 // tf.constant([2, -2]) + 7 % tf.constant([3, -3]), "int32", [4, -6]),
    (
        lambda: 2.0 ** tf.constant(V) - (-tf.constant(V)) * abs(tf.constant(V)),
        "float32",
        [0.4571068, 3.0, 8.0],
    ),
    (
        lambda: ~tf.logical_xor(tf.constant(V) > 0.0, tf.constant(V) <= 1.0) & True,
        "bool",
        [False, True, False],
    ),
    # functions
    (lambda: tf.log_sigmoid(V), "float32", [-0.974077, -0.3132617, -0.126928]),
    # special_functions
    (lambda: tf.lbeta([[1.0, 2.0], [3.0, 4.0]]), "float32", [-0.6931472, -4.094345]),
    (lambda: tf.betainc([1.0, 2.0], [2.0, 3.0], [0.3, 0.6]), "float32", [0.5099999, 0.8207999]),
    # complex_numbers
    (lambda: tf.angle([-1.0, 2.0]), "float32", [3.141593, 0.0]),
    # casts
    (lambda: tf.saturate_cast(A * 300.0, tf.uint8), "uint8", [[150, 0], [255, 75], [0, 255]]),
    (lambda: tf.cast(A * 3.0, tf.int32), "int32", [[1, -3], [6, 0], [-2, 4]]),
    # reductions
    (lambda: tf.reduce_logsumexp(A, 1), "float32", [0.7014133, 2.160224, 1.600207]),
    (lambda: tf.reduce_sum(A, reduction_indices=[0], keep_dims=True), "float32", [[1.75, 0.75]]),
    (lambda: tf.count_nonzero(tf.constant([[0, 1], [2, 3]]), 1), "int64", [1, 2]),
    # extreme_positions
    (lambda: tf.argmax(A, dimension=1), "int64", [0, 0, 1]),
    # accumulations
    (
        lambda: tf.cumsum(A, 1, exclusive=True, reverse=True),
        "float32",
        [[-1.0, 0.0], [0.25, 0.0], [1.5, 0.0]],
    ),
    # segment_reductions
    (lambda: tf.unsorted_segment_sum(A, [1, 0, 1], 2), "float32", [[2.0, 0.25], [-0.25, 0.5]]),
    # sparse_segment_reductions
    (lambda: tf.bincount([1, 1, 3], minlength=6), "int32", [0, 2, 0, 1, 0, 0]),
    (lambda: tf.bincount([1, 1, 3], weights=[0.5, 1.0, 2.0]), "float32", [0.0, 1.5, 0.0, 2.0]),
    (lambda: tf.sparse_segment_mean(A, [0, 2], [0, 0]), "float32", [[-0.125, 0.25]]),
    # matrices
    (
        lambda: tf.matmul(A3, A3, transpose_b=True),
        "float32",
        [
            [[3.5, -1.0, -0.25], [-1.0, 1.25, -1.75], [-0.25, -1.75, 5.5]],
            [[0.5, -1.25, 0.5], [-1.25, 5.5, -1.75], [0.5, -1.75, 1.25]],
        ],
    ),
    (lambda: tf.matmul(A, B), "float32", [[0.0, -3.0, -2.0], [2.125, 0.75, -3.75], [0.0, 4.5, 3.0]]),
    # diagonals
    (lambda: tf.trace(A3), "float32", [-2.0, 1.0]),
    (
        lambda: tf.matrix_band_part(A3, 0, 1),
        "float32",
        [
            [[-1.5, -1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, -1.0]],
            [[-0.5, 0.0, 0.0], [0.0, 1.5, -1.5], [0.0, 0.0, 0.0]],
        ],
    ),
    (
        lambda: tf.matrix_set_diag(A3, np.zeros([2, 3], np.float32)),
        "float32",
        [
            [[0.0, -1.0, -0.5], [0.0, 0.0, 1.0], [1.5, -1.5, 0.0]],
            [[0.0, 0.0, 0.5], [1.0, 0.0, -1.5], [-1.0, -0.5, 0.0]],
        ],
    ),
    (lambda: tf.diag_part(tf.diag(V)), "float32", [-0.5, 1.0, 2.0]),
    # tensor_contractions
    (lambda: tf.tensordot(A, B, 1), "float32", [[0.0, -3.0, -2.0], [2.125, 0.75, -3.75], [0.0, 4.5, 3.0]]),
    (
        lambda: tf.tensordot(A3, A, [[2], [0]]),
        "float32",
        [[[-2.375, 0.5], [0.25, 1.625], [-1.5, -3.375]], [[-0.625, 1.25], [4.625, -2.875], [-1.5, 0.875]]],
    ),
    (
        lambda: tf.tensordot(A3, A3, [[0, 2], [0, 2]]),
        "float32",
        [[4.0, -2.25, 0.25], [-2.25, 6.75, -3.5], [0.25, -3.5, 6.75]],
    ),
    (
        lambda: tf.einsum("ij,jk->ik", A, B),
        "float32",
        [[0.0, -3.0, -2.0], [2.125, 0.75, -3.75], [0.0, 4.5, 3.0]],
    ),
    (
        lambda: tf.einsum("bij,bjk->bik", A3, tf.transpose(A3, [0, 2, 1])),
        "float32",
        [
            [[3.5, -1.0, -0.25], [-1.0, 1.25, -1.75], [-0.25, -1.75, 5.5]],
            [[0.5, -1.25, 0.5], [-1.25, 5.5, -1.75], [0.5, -1.75, 1.25]],
        ],
    ),
    (lambda: tf.einsum("bij->ji", A3), "float32", [[-2.0, 1.0, 0.5], [-1.0, 2.0, -2.0], [0.0, -0.5, -1.0]]),
    (lambda: tf.einsum("i,j->ij", V, V), "float32", [[0.25, -0.5, -1.0], [-0.5, 1.0, 2.0], [-1.0, 2.0, 4.0]]),
    (lambda: tf.einsum("ij,ij", A, A), "float32", 8.125),
    (lambda: tf.norm(A), "float32", 2.850439),
    (lambda: tf.norm(A, axis=1), "float32", [1.118034, 2.015564, 1.677051]),
    (lambda: tf.norm(A, ord=1, axis=0, keep_dims=True), "float32", [[3.25, 2.75]]),
    (lambda: tf.norm(A, ord=np.inf, axis=(0, 1)), "float32", 2.25),
    (lambda: tf.norm(A, ord=3), "float32", 2.347561),
    # clipping
    (
        lambda: tf.clip_by_norm(A, 1.0),
        "float32",
        [[0.1754116, -0.3508232], [0.7016464, 0.0877058], [-0.2631174, 0.5262348]],
    ),
    (
        lambda: tf.clip_by_norm(A, 1.0, axes=[1]),
        "float32",
        [[0.4472136, -0.8944272], [0.9922779, 0.1240347], [-0.4472136, 0.8944272]],
    ),
    (
        lambda: tf.clip_by_average_norm(A, 0.1),
        "float32",
        [[0.105247, -0.2104939], [0.4209878, 0.05262348], [-0.1578704, 0.3157409]],
    ),
    (
        lambda: tf.clip_by_global_norm([A, B], 1.0)[0][1],
        "float32",
        [[0.2068351, 0.0, -0.4136702], [0.1034175, 0.6205052, 0.2068351]],
    ),
    (lambda: tf.global_norm([A, None, B]), "float32", 4.83477),
    (lambda: tf.global_norm([None]), "float32", 0.0),
    (lambda: tf.clip_by_value(A, -0.5, 0.5), "float32", [[0.5, -0.5], [0.5, 0.25], [-0.5, 0.5]]),
]


@pytest.mark.parametrize(("function", "dtype", "expected"), CASES)
def test_value_type_and_shape(function: Callable[[], Any], dtype: str, expected: Any) -> None:
    tensor = function()
    with tf.Session() as session:
        value = session.run(tensor)
    assert (value.dtype.name, tensor.dtype.name) == (dtype, dtype)
    assert tensor.shape.is_compatible_with(value.shape)
    np.testing.assert_allclose(value, np.array(expected, dtype), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "dtype", "mean"),
    [
        (np.full(300, 2), np.uint8, 2),
        (np.full((3, 300), 200), np.uint8, 2),
        (np.full(257, 200), np.uint8, 200),
        (np.full(128, 1), np.int8, 1),
        (np.full(200, 100), np.int8, 0),
        (np.full(300, 300), np.int16, 81),
        (np.zeros(0), np.int32, 0),
        (np.zeros(0), np.complex64, 0),
    ],
)
def test_means_count_in_their_own_type(values: Any, dtype: Any, mean: Any) -> None:
    """Sum and count wrap around as in TensorFlow 1.15, whose values these are; of nothing the mean is 0."""
    x = tf.placeholder(dtype, values.shape)
    with tf.Session() as session:
        found = session.run(tf.reduce_mean(x, -1), {x: values.astype(dtype)})
    assert np.all(found == mean)


@pytest.mark.parametrize("divide", [lambda x, y: x // y, lambda x, y: x % y, tf.truncatediv, tf.truncatemod])
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_nothing_may_be_divided_by_zero(divide: Any, dtype: Any) -> None:
    """No element, no division, however much of the shapes is known."""
    for shape in ([0], None):
        x, zero = tf.placeholder(dtype, shape), tf.constant(0, dtype)
        with tf.Session() as session:
            assert session.run(divide(x, zero), {x: np.zeros(0, int)}).shape == (0,)


def test_reductions_over_all_axes_are_scalars() -> None:
    """Also of a tensor of unknown rank; with kept dimensions nothing is known."""
    x = tf.placeholder(tf.float32)
    scalars = [tf.reduce_sum(x), tf.reduce_mean(x), tf.reduce_logsumexp(x), tf.count_nonzero(x)]
    scalars += [tf.nn.zero_fraction(x), tf.reduce_all(x > 0), tf.reduce_max(x, reduction_indices=None)]
    assert [scalar.shape.as_list() for scalar in scalars] == [[]] * len(scalars)
    assert tf.reduce_sum(x, keepdims=True).shape.ndims is None
    assert tf.reduce_sum(x, [0]).shape.ndims is None


def test_a_loop_over_a_sum_of_unknown_rank_is_built() -> None:
    """Its variable stays a scalar."""
    x = tf.placeholder(tf.float32)
    total = tf.while_loop(lambda s: s < 10.0, lambda s: s + tf.reduce_sum(x), [0.0])
    with tf.Session() as session:
        assert session.run(total, {x: [[1.0, 2.0]]}) == 12.0


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((300, 4989), 1), ((300, 4989), None), ((7, 5, 70_001), [2, 1]), ((1100, 1000), [0]),
                        ((2, 1_048_577), -1), ((1_200_000, 1), 1)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms_of_large_arrays(shape: tuple[int, ...], axis: Any, keep: bool, dtype: str) -> None:
    x = np.random.default_rng(1).uniform(0.5, 1.5, shape).astype(dtype)
    x[:, -1] *= 1e4
    with tf.Session() as session:
        found = session.run(tf.math.reduce_euclidean_norm(tf.constant(x), axis, keep))
    axes = tuple(axis) if isinstance(axis, list) else axis
    expected = np.sqrt(np.sum(np.square(x.astype("longdouble")), axes, keepdims=keep))
    assert found.shape == np.shape(expected) and found.dtype == dtype
    np.testing.assert_allclose(found, expected.astype("float64"), rtol=4e-7 if dtype == "float32" else 1e-15)


def test_euclidean_norms_of_complex_numbers_are_complex() -> None:
    """The other norms are real, as in TensorFlow."""
    z = tf.constant([3 + 4j, 1.0], tf.complex64)
    orders = ("euclidean", 2, 1, np.inf, 3)
    assert [tf.norm(z, order).dtype.name for order in orders] == ["complex64"] * 2 + ["float32"] * 3
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(tf.norm(z)), 26**0.5, rtol=1e-6)


def test_contractions_of_unknown_rank() -> None:
    """Axes may be a number, lists or a tensor; what is known of the sizes is kept."""
    a, b = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.ones([3, 4], np.float32)
    x, y, partly = (
        tf.placeholder(tf.float32),
        tf.placeholder(tf.float32),
        tf.placeholder(tf.float32, [2, None]),
    )
    axes = tf.placeholder(tf.int32)
    assert tf.tensordot(partly, b, 1).shape.as_list() == [2, 4]
    with tf.Session() as session:
        for how in (1, [[1], [0]], [[-1], [0]], axes, tf.constant([[1], [0]])):
            found = session.run(tf.tensordot(x, y, how), {x: a, y: b, axes: [[1], [0]]})
            np.testing.assert_allclose(found, a @ b)


def test_products_of_unknown_rank_broadcast_their_batches() -> None:
    """A matrix times many of them, where the graph does not know how many."""
    a, b = np.ones([2, 3], np.float32), np.arange(12.0, dtype=np.float32).reshape(2, 3, 2)
    x = tf.placeholder(tf.float32)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(tf.matmul(a, x), {x: b}), a @ b)


def test_einstein_sums_of_any_axes() -> None:
    """``...`` broadcasts, a repeated letter takes the diagonal, without ``->`` the order is alphabetical."""
    a, b = np.arange(6.0).reshape(2, 3), np.arange(24.0).reshape(2, 3, 4)
    with tf.Session() as session:
        for equation, arrays in [
            ("...ij,jk->...ik", [np.stack([a, a]), a.T]),
            ("i...->...", [b]),
            ("...i,...i->...", [b[:1], b]),
            ("ii->i", [a[:, :2]]),
            ("i...k,k", [b, a[0, :1].repeat(4)]),
        ]:
            np.testing.assert_allclose(
                session.run(tf.einsum(equation, *arrays)), np.einsum(equation, *arrays)
            )
    with pytest.raises(ValueError, match="appearing more than once"):
        tf.einsum("ij->ii", a)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("ij,jk->ki", (3, 4), (4, 5)), ("abc,bcd->da", (2, 3, 4), (3, 4, 5)), ("i,jik->kj", (3,), (2, 3, 4)),
        ("ij,ij->", (3, 4), (3, 4)), ("ij,j->i", (3, 4), (4,)), ("ij,jk->ik", (3, 0), (0, 5)),
        ("ij,jk->ik", (0, 3), (3, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ij,jk->k", (3, 4), (4, 5)),
        ("ij,kl->ijkl", (2, 2), (2, 3)), ("ii,ij->j", (3, 3), (3, 2)),
    ],
)  # fmt: skip
def test_einstein_sums_of_integers_wrap_around(dtype: str, equation: str, left: Any, right: Any) -> None:
    random = np.random.RandomState(0)
    x, y = (random.randint(-(2**30), 2**30, dims).astype(dtype) for dims in (left, right))
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [tf.placeholder(dtype, each.shape) for each in (x, y)]
        result = tf.raw_ops.Einsum(inputs=inputs, equation=equation)
        found = session.run(result, dict(zip(inputs, (x, y))))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.einsum(equation, x.astype("int64"), y).astype(dtype))


def test_the_derivative_of_digamma() -> None:
    """Of positive float32 by a way of its own; zeta(2, x) in float64 is what it has to be."""
    positive = np.exp(np.random.RandomState(0).uniform(-20, 20, 10_000)).astype(np.float32)
    ends = np.array([1e-45, 1e-30, 1.0, 1e30, np.inf], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        (slope,) = tf.gradients(tf.digamma(x), [x])
        wanted = session.run(tf.zeta(2.0 + 0 * tf.cast(x, tf.float64), tf.cast(x, tf.float64)), {x: positive})
        np.testing.assert_allclose(session.run(slope, {x: positive}), wanted, rtol=1.2e-7)
        np.testing.assert_allclose(
            session.run(slope, {x: ends}), [np.inf, np.inf, np.pi**2 / 6, 1e-30, 0], rtol=1e-6
        )
        others = session.run(slope, {x: [2.0, -0.5, -1.0, 0.0, np.nan, -np.inf]})
        np.testing.assert_allclose(others, [0.644934, 8.934802, np.inf, np.inf, np.nan, np.inf], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("shapes", [((6,), (6,)), ((6,), (1,)), ((1,), (6,)), ((2, 1), (6,))])
def test_shifts_leave_their_amounts_as_they_are(dtype: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    given = [np.resize(np.array(x), shape).astype(dtype) for x, shape in zip(([3, 5, 7], [2, 0, 4]), shapes)]
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = (tf.Variable(each) for each in given)
        session.run([x.initializer, y.initializer])
        for ours, numpys in (
            (tf.bitwise.left_shift, np.left_shift),
            (tf.bitwise.right_shift, np.right_shift),
        ):
            np.testing.assert_array_equal(session.run(ours(x, y)), numpys(*given))
        np.testing.assert_array_equal(session.run(y), given[1])
        too_far = session.run(tf.bitwise.right_shift(x, tf.fill(shapes[0], tf.constant(100, dtype))))
        np.testing.assert_array_equal(too_far, np.zeros(shapes[0]))


def test_add_n_converts_each_term_alone() -> None:
    for terms in ([A, [1, 2]], [[1, 2], A], [tf.ones([2]), tf.ones([2], tf.float64)], [1.0, 2]):
        with pytest.raises(TypeError, match=r"of 'AddN' Op have types .* that don't all match"):
            tf.add_n(terms)
    with pytest.raises(ValueError, match="must be a list of"):
        tf.add_n([])


@pytest.mark.parametrize("inputs", [[1.5, 1], [1, 1.5], [np.float64(1), np.float32(1)]], ids=str)
def test_accumulated_values_are_tensors_of_one_type_by_themselves(inputs: list[Any]) -> None:
    with pytest.raises(ValueError, match="at least one Tensor with the same dtype and shape"):
        tf.accumulate_n([tf.constant(inputs[0]), inputs[1]])


def test_a_tensor_is_no_list_of_summands() -> None:
    for function in (tf.add_n, tf.accumulate_n):
        with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
            function(tf.ones([2, 2]))


def test_second_gradients_of_logarithms_of_sums() -> None:
    """As TensorFlow 1.15.5 gives them."""
    x = tf.constant([[0.5, -1.0, 2.0], [2.0, 0.25, -0.5]], tf.float64)
    weights = np.array([[1.0, -2.0, 0.5], [-1.5, 3.0, 1.0]])
    found = []
    for exclusive in (False, True):
        y = tf.math.cumulative_logsumexp(x, 1, exclusive=exclusive)
        first = tf.gradients(y[:, 1:] * weights[:, 1:], x)[0]
        found.append(tf.gradients(first * weights, x)[0])
    expected = [
        [[-0.8501677, 0.8461862, 0.0039815], [-2.3286681, 2.216643, 0.1120252]],
        [[0.2237197, -0.2237197, 0.0], [-0.5675815, 0.5675815, 0.0]],
    ]
    np.testing.assert_allclose(tf.Session().run(found), expected, atol=1e-6)
