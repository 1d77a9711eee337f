"""`tf.assert_*`: known failures while building, others in the step; types and ranks."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def failure(op, feeds):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.Session().run(op, feeds)
    return caught.value.message


COMPARISONS = [
    (tf.assert_equal, "==", [1, 2], [1, 2], [1, 3]),
    (tf.assert_none_equal, "!=", [1, 2], [2, 3], [1, 3]),
    (tf.assert_less, "<", [1, 2], [2, 3], [1, 3]),
    (tf.assert_less_equal, "<=", [1, 4], [1, 4], [1, 3]),
    (tf.assert_greater, ">", [1, 4], [0, 3], [1, 3]),
    (tf.assert_greater_equal, ">=", [1, 2], [1, 2], [1, 3]),
]


@pytest.mark.parametrize(("check", "symbol", "first", "good", "bad"), COMPARISONS)
def test_comparisons(check, symbol, first, good, bad):
    x, y = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.float32, [2], name="y")
    op = check(x, y)
    assert isinstance(op, tf.Operation)
    tf.Session().run(op, {x: first, y: good})
    shown = [" ".join(map(str, values)) for values in (first, bad)]
    expected = (
        f"assertion failed: [Condition x {symbol} y did not hold element-wise:] "
        f"[x (x:0) = ] [{shown[0]}] [y (y:0) = ] [{shown[1]}]"
    )
    assert failure(op, {x: first, y: bad}).startswith(expected)
    tf.Session().run(check(tf.constant(first), tf.constant(good)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"hi\nCondition x {symbol} y"):
        check(tf.constant(first), tf.constant(bad), message="hi")


@pytest.mark.parametrize(
    ("check", "words", "good", "bad"),
    [
        (tf.assert_negative, "x < 0 did not hold element-wise:] [x (x:0) = ]", [-1, -2], [1, -2]),
        (tf.assert_positive, "x > 0 did not hold element-wise:] [x (x:0) = ]", [1, 2], [0, 2]),
        (tf.assert_non_negative, "x >= 0 did not hold element-wise:] [x (x:0) = ]", [0, 2], [-1, 2]),
        (tf.assert_non_positive, "x <= 0 did not hold element-wise:x (x:0) = ]", [0, -2], [-1, 2]),
    ],
)
def test_signs(check, words, good, bad):
    x = tf.placeholder(tf.int32, [2], name="x")
    op = check(x)
    tf.Session().run(op, {x: good})
    assert f"[] [Condition {words} [{bad[0]} {bad[1]}]" in failure(op, {x: bad})


def test_near():
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [2])
    tf.Session().run(tf.assert_near(x, y), {x: [1, 2], y: [1, 2 * (1 + 1e-7)]})
    assert "x and y not equal to tolerance rtol = " in failure(tf.assert_near(x, y), {x: [1, 2], y: [1, 3]})
    tf.Session().run(tf.assert_near(x, y, atol=2.0), {x: [1, 2], y: [1, 3]})


def test_own_data_and_summaries():
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    op = tf.assert_less_equal(x, y, data=[x], summarize=1, message="mm", name="nn")
    assert op.name == "nn/Assert/AssertGuard/Merge"
    assert failure(op, {x: [4, 5, 6], y: [1, 1, 1]}).startswith("assertion failed: [mm] [4...]")


def test_ranks(graph):
    x, unknown = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.float32, name="u")
    checks = [tf.assert_rank(x, 1), tf.assert_rank_at_least(x, 1), tf.assert_rank_in(x, [0, 1])]
    assert [op.name.rpartition("/")[2] for op in checks] == ["static_checks_determined_all_ok"] * 3
    for check, argument, words in [
        (tf.assert_rank, 2, "rank 2"),
        (tf.assert_rank_at_least, 2, "rank at least 2"),
        (tf.assert_rank_in, (2, 0), r"rank in \(2, 0\)"),
    ]:
        with pytest.raises(
            ValueError, match=rf"Tensor x:0 must have {words}.  Received rank 1, shape \(2,\)"
        ):
            check(x, argument)
    message = failure(tf.assert_rank(unknown, 2), {unknown: [1.0]})
    assert message.startswith("assertion failed: [] [Tensor u:0 must have rank] [2] [Received shape: ] [1]")
    tf.Session().run(tf.assert_rank_in(unknown, [1, 2]), {unknown: [[1.0]]})
    with pytest.raises(ValueError, match="Rank must be a scalar"):
        tf.assert_rank(x, [1])
    with pytest.raises(TypeError, match=r"must be of type tf.int32"):
        tf.assert_rank(x, 1.5)


def test_types():
    x = tf.placeholder(tf.float32, [2], name="x")
    assert tf.assert_type(x, tf.float32).name.endswith("statically_determined_correct_type")
    with pytest.raises(TypeError, match=r"x:0 must be of type tf.int32; got tf.float32"):
        tf.assert_type(x, tf.int32)
    with pytest.raises(TypeError, match='Expected "x" to be integer type'):
        tf.assert_integer(x)
    assert tf.assert_integer(tf.constant(1)).type == "NoOp"
    assert tf.assert_scalar(tf.constant(1)).shape.ndims == 0
    with pytest.raises(ValueError, match=r"Expected scalar shape for x:0, saw shape: \(2,\)"):
        tf.assert_scalar(x)


def test_common_float_types():
    one, two, wide = tf.constant(1.0), tf.constant(2.0), tf.constant(2.0, tf.float64)
    assert (
        tf.assert_same_float_dtype() == tf.float32
        and tf.assert_same_float_dtype([one, None, two]) == tf.float32
    )
    assert tf.assert_same_float_dtype([wide], tf.float64) == tf.float64
    with pytest.raises(ValueError, match="must be of the same type"):
        tf.assert_same_float_dtype([one, wide])
    with pytest.raises(ValueError, match="Expected floating point type"):
        tf.assert_same_float_dtype([tf.constant(1)])


def test_iterables_and_numbers():
    tf.assert_proper_iterable([1])
    for values in (tf.constant([1]), "abc", np.ones(2)):
        with pytest.raises(TypeError, match='to be a "proper" iterable'):
            tf.assert_proper_iterable(values)
    with pytest.raises(TypeError, match="to be iterable"):
        tf.assert_proper_iterable(3)
    assert tf.is_numeric_tensor(tf.constant(1)) and not tf.is_numeric_tensor(tf.constant("a"))
    assert not tf.is_numeric_tensor(3) and not tf.is_numeric_tensor(tf.constant(True))


def test_order():
    x = tf.placeholder(tf.float32, [None])
    rising, strictly = tf.is_non_decreasing(x), tf.is_strictly_increasing(x)
    session = tf.Session()
    for values, expected in [
        ([], [1, 1]),
        ([5], [1, 1]),
        ([1, 1, 2], [1, 0]),
        ([1, 2, 3], [1, 1]),
        ([2, 1], [0, 0]),
    ]:
        assert session.run([rising, strictly], {x: values}) == [bool(e) for e in expected], values
    with pytest.raises(TypeError, match="Expected x to be numeric"):
        tf.is_non_decreasing(tf.constant(["a"]))
