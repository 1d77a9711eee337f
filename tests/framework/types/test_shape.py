"""Tests of flowstone.framework.types.shape; the tables are TensorFlow's own answers."""

from __future__ import annotations

import copy
import doctest
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flowstone.framework.types import shape
from flowstone.framework.types.dimension import Dimension, as_dimension, dimension_value
from flowstone.framework.types.shape import TensorShape, as_shape

UNKNOWN = TensorShape(None)
SHAPES = [None, (), (0,), (1,), (2,), (None,), (2, 3), (1, 3), (2, None), (None, None), (4, 1, 3)]


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(shape).failed == 0


# Functions on tuples


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (None, (3,), None),
        (None, None, None),
        ((), (3,), (3,)),
        ((2, 3), (3,), (2, 3)),
        ((2, 1), (1, 3), (2, 3)),
        ((2, None), (3,), (2, 3)),
        ((2, None), (1,), (2, None)),
        ((None,), (None,), (None,)),
        ((4, None), (None, 4), (4, 4)),
        ((0,), (1,), (0,)),
        ((0,), (None,), (None,)),
        ((5, 1, 4), (3, 1), (5, 3, 4)),
    ],
)
def test_broadcast(a: shape.Dims, b: shape.Dims, expected: shape.Dims) -> None:
    assert shape.broadcast(a, b) == expected
    assert shape.broadcast(b, a) == expected


def test_broadcast_agrees_with_numpy() -> None:
    known = list(itertools.chain.from_iterable(itertools.product((0, 1, 2), repeat=n) for n in range(4)))
    for a, b in itertools.product(known, known):
        try:
            expected = np.broadcast_shapes(a, b)
        except ValueError:
            with pytest.raises(ValueError, match="Dimensions must be equal"):
                shape.broadcast(a, b)
        else:
            assert shape.broadcast(a, b) == expected


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((2, 3), (4,), r"Dimensions must be equal, but are 3 and 4\..*\(2, 3\) and \(4,\)"),
        ((4,), (2, 3), r"Dimensions must be equal, but are 4 and 3\..*\(4,\) and \(2, 3\)"),
        ((2, None), (3, 4), r"Dimensions must be equal, but are 2 and 3\..*\(2, \?\) and \(3, 4\)"),
        ((0,), (2,), r"Dimensions must be equal, but are 0 and 2\."),
    ],
)
def test_broadcast_refuses(a: shape.Dims, b: shape.Dims, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shape.broadcast(a, b)


def test_merge_and_is_compatible() -> None:
    assert shape.merge(None, (2,)) == (2,)
    assert shape.merge((2,), None) == (2,)
    assert shape.merge((2, None), (None, 3)) == (2, 3)
    assert shape.merge((None,), (None,)) == (None,)
    with pytest.raises(ValueError, match="Shapes must be equal rank, but are 2 and 1"):
        shape.merge((2, 3), (2,))
    with pytest.raises(
        ValueError,
        match=r"Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are \[\?,3\] and \[2,4\]",
    ):
        shape.merge((None, 3), (2, 4))


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHAPES, SHAPES)))
def test_shapes_merge_when_they_are_compatible(a: shape.Dims, b: shape.Dims) -> None:
    compatible = shape.is_compatible(a, b)
    assert compatible == shape.is_compatible(b, a)
    if compatible:
        merged = shape.merge(a, b)
        assert merged == shape.merge(b, a)
        assert shape.is_compatible(merged, a) and shape.is_compatible(merged, b)
        assert TensorShape(a).merge_with(b).dims_tuple == merged
    else:
        with pytest.raises(ValueError):
            shape.merge(a, b)
        with pytest.raises(ValueError, match="are not compatible"):
            TensorShape(a).merge_with(b)


def test_num_elements_concatenate_and_format() -> None:
    assert [shape.num_elements(dims) for dims in ((), (2, 3), (0, 5), (2, None), (0, None), None)] == [
        1,
        6,
        0,
        None,
        None,
        None,
    ]
    assert shape.concatenate((2,), (None, 3)) == (2, None, 3)
    assert shape.concatenate(None, (2,)) is shape.concatenate((2,), None) is None
    assert [shape.format_dims(dims) for dims in (None, (), (2, None))] == ["?", "[]", "[2,?]"]


# Dimension


def test_dimension_values() -> None:
    assert [Dimension(v).value for v in (3, None, np.int64(3), Dimension(3), True)] == [3, None, 3, 3, 1]
    assert (str(Dimension(3)), str(Dimension(None))) == ("3", "?")
    assert (repr(Dimension(3)), repr(Dimension(None))) == ("Dimension(3)", "Dimension(None)")
    assert [Dimension(v).value for v in (3.0, np.float32(2.0))] == [3, 2]  # as TensorFlow 1
    assert Dimension(1) == np.float64(1.0) and Dimension(1) != 1.5
    with pytest.raises(ValueError, match=r"Ambiguous dimension: 1\.5"):
        Dimension(1.5)
    assert Dimension("3").value == 3
    for text in ("a", "1.5"):
        with pytest.raises(ValueError, match="invalid literal"):
            TensorShape([2, text])
    for value in ([], object()):
        with pytest.raises(TypeError, match="Dimension value must be integer or None or have an __index__"):
            Dimension(value)
    with pytest.raises(ValueError, match="Dimension -1 must be >= 0"):
        Dimension(-1)
    assert as_dimension(3).value == 3
    dimension = Dimension(4)
    assert as_dimension(dimension) is dimension
    assert (dimension_value(dimension), dimension_value(4), dimension_value(None)) == (4, 4, None)


def test_dimension_stands_for_its_integer() -> None:
    assert int(Dimension(3)) == 3
    assert [10, 20, 30][Dimension(1)] == 20
    assert list(range(Dimension(2))) == [0, 1]
    assert np.zeros([Dimension(2), 3]).shape == (2, 3)
    assert (bool(Dimension(0)), bool(Dimension(None)), bool(Dimension(1))) == (False, False, True)
    for use in (int, range, hash):
        with pytest.raises(TypeError):
            use(Dimension(None))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda d: d + 4, 11),
        (lambda d: 4 + d, 11),
        (lambda d: d - 4, 3),
        (lambda d: 9 - d, 2),
        (lambda d: d * 2, 14),
        (lambda d: 2 * d, 14),
        (lambda d: d // 2, 3),
        (lambda d: 15 // d, 2),
        (lambda d: d % 4, 3),
        (lambda d: 9 % d, 2),
        (lambda d: d + Dimension(1), 8),
    ],
)
def test_dimension_arithmetic(compute: Callable[[Any], Any], expected: int) -> None:
    result = compute(Dimension(7))
    assert isinstance(result, Dimension)
    assert result.value == expected
    assert compute(Dimension(None)).value is None


def test_dimension_arithmetic_with_others() -> None:
    for other in (None, Dimension(None)):
        for result in (
            Dimension(7) + other,
            Dimension(7) * other,
            Dimension(7) // other,
            Dimension(7) % other,
        ):
            assert result.value is None
    with pytest.raises(ValueError, match="Dimension -1 must be >= 0"):
        Dimension(3) - 4
    with pytest.raises(ZeroDivisionError):
        Dimension(3) // 0
    for divide in (lambda: Dimension(6) / 2, lambda: 6 / Dimension(2)):
        with pytest.raises(TypeError, match="please use // instead"):
            divide()
    for other in (1.5, "a"):
        with pytest.raises(TypeError):
            Dimension(3) + other
    assert Dimension(3) * [1] == [1, 1, 1]


def test_dimension_leaves_other_types_their_own_operator() -> None:
    class Symbol:
        def __radd__(self, other: Any) -> str:
            return f"{other} + symbol"

    assert Dimension(3) + Symbol() == "3 + symbol"


def test_dimension_comparisons() -> None:
    three, unknown = Dimension(3), Dimension(None)
    assert (three == 3, three == Dimension(4), three != 3, three != 4) == (True, False, False, True)
    assert (three < 4, three <= 3, three > 3, three >= 4) == (True, True, False, False)
    for other in (None, unknown):
        answers = (
            three == other,
            three != other,
            three < other,
            three <= other,
            three > other,
            three >= other,
        )
        assert answers == (None,) * 6
    assert (unknown == 3, unknown == unknown) == (None, None)
    assert (three == "a", three == 3.0, three == -1, three != "a") == (False, True, False, True)
    with pytest.raises(ValueError, match="invalid literal"):
        three < "a"  # noqa: B015
    with pytest.raises(TypeError):
        hash(three)


def test_dimension_merging() -> None:
    assert Dimension(3).merge_with(None).value == 3
    assert Dimension(None).merge_with(4).value == 4
    assert Dimension(3).is_compatible_with(None) and not Dimension(3).is_compatible_with(4)
    for check in (Dimension(3).merge_with, Dimension(3).assert_is_compatible_with):
        with pytest.raises(ValueError, match="Dimensions 3 and 4 are not compatible"):
            check(4)


# TensorShape


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ([2, None], (2, None)),
        ((), ()),
        (3, (3,)),
        (np.int32(3), (3,)),
        (np.array([2, 3]), (2, 3)),
        (np.array(3), (3,)),
        (range(3), (0, 1, 2)),
        (Dimension(None), (None,)),
        ([Dimension(2), np.int64(3)], (2, 3)),
        (TensorShape([2, None]), (2, None)),
        (10**20, (10**20,)),
    ],
    ids=repr,
)
def test_spellings_of_a_shape(value: Any, expected: shape.Dims) -> None:
    made = TensorShape(value)
    assert made.dims_tuple == expected
    assert all(size is None or type(size) is int for size in made.dims_tuple or ())


@pytest.mark.parametrize("value", ["ab", "12", [2, [3]], NotImplemented], ids=repr)
def test_spellings_that_are_no_shape(value: Any) -> None:
    with pytest.raises(TypeError):
        TensorShape(value)


def test_negative_dimension() -> None:
    with pytest.raises(ValueError, match="Dimension -1 must be >= 0"):
        TensorShape([2, -1])


@pytest.mark.parametrize("dims", SHAPES)
def test_round_trips(dims: shape.Dims) -> None:
    original = TensorShape(dims)
    assert TensorShape.from_dims(dims) == original
    for again in (
        TensorShape(original.as_proto()),
        TensorShape(original.dims),
        pickle.loads(pickle.dumps(original)),
        copy.deepcopy(original),
    ):
        assert again.dims_tuple == dims
        assert again == original and hash(again) == hash(original)


def test_proto() -> None:
    assert TensorShape(None).as_proto().unknown_rank
    assert [d.size for d in TensorShape([2, None]).as_proto().dim] == [2, -1]


def test_printing() -> None:
    texts = {None: "<unknown>", (): "()", (2,): "(2,)", (None,): "(?,)", (2, None): "(2, ?)"}
    assert {dims: str(TensorShape(dims)) for dims in texts} == texts
    assert repr(TensorShape([2, None])) == "TensorShape([Dimension(2), Dimension(None)])"
    assert (repr(TensorShape([])), repr(UNKNOWN)) == ("TensorShape([])", "TensorShape(None)")


def test_sequence_of_dimensions() -> None:
    made = TensorShape([2, None])
    assert [type(d) for d in made] == [Dimension, Dimension]
    assert [d.value for d in made] == [2, None]
    assert (len(made), made[0].value, made[-1].value, made[Dimension(0)].value) == (2, 2, None, 2)
    assert (bool(UNKNOWN), bool(TensorShape([])), bool(made)) == (False, True, True)
    assert np.zeros(TensorShape([2, 3])).shape == (2, 3)
    with pytest.raises(IndexError):
        made[5]
    for use in (len, list, TensorShape.as_list):
        with pytest.raises(ValueError):
            use(UNKNOWN)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("dims", "key", "expected"),
    [
        ((2, 3, 4), slice(0, 1), (2,)),
        ((2, 3, 4), slice(None), (2, 3, 4)),
        ((2, 3, 4), slice(None, None, 2), (2, 4)),
        ((2, 3, 4), slice(-2, None), (3, 4)),
        (None, slice(1, 3), (None, None)),
        (None, slice(None, 2), (None, None)),
        (None, slice(3, 1), ()),
        (None, slice(1, None), None),
        (None, slice(None, -1), None),
        (None, slice(-2, 3), None),
    ],
)
def test_slices(dims: shape.Dims, key: slice, expected: shape.Dims) -> None:
    assert TensorShape(dims)[key].dims_tuple == expected


def test_items_of_an_unknown_rank() -> None:
    assert UNKNOWN[7].value is None
    with pytest.raises(ValueError, match="Steps are not yet handled"):
        UNKNOWN[::2]


def test_what_is_known() -> None:
    made = TensorShape([2, None])
    assert (made.ndims, made.rank, UNKNOWN.ndims, UNKNOWN.rank, UNKNOWN.dims) == (2, 2, None, None, None)
    assert made.as_list() == [2, None]
    assert (made.is_fully_defined(), TensorShape([2]).is_fully_defined(), UNKNOWN.is_fully_defined()) == (
        False,
        True,
        False,
    )
    assert (TensorShape([2, 3]).num_elements(), made.num_elements()) == (6, None)


def test_equality_is_of_what_is_known() -> None:
    made = TensorShape([2, None])
    for same in ([2, None], (2, None), TensorShape([2, None])):
        assert (made == same, made != same) == (True, False)
    for other in ([2, 3], [2], None, UNKNOWN, 2, "abc", object()):
        assert (made == other, made != other) == (False, True)
    assert UNKNOWN == None and TensorShape([2]) == 2  # noqa: E711
    with pytest.raises(ValueError):
        made == [-1]  # noqa: B015
    assert {TensorShape([2]): "two"}[TensorShape([2])] == "two"


def test_combination() -> None:
    assert TensorShape([2]) + [3] == [2, 3]
    assert [3] + TensorShape([2]) == [3, 2]
    assert TensorShape([2]).concatenate(None).dims_tuple is None
    specific = TensorShape([2, 3]).most_specific_compatible_shape
    assert specific([2, 4]) == [2, None]
    assert specific([2, 3]) == [2, 3]
    assert specific([2]) == specific(None) == UNKNOWN
    assert UNKNOWN.with_rank(2) == [None, None]
    assert UNKNOWN.with_rank_at_least(1) == UNKNOWN
    assert TensorShape([2]).with_rank(None) == TensorShape([2]).with_rank_at_most(1) == [2]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda s: s.with_rank(3), r"Shape \(2, \?\) must have rank 3"),
        (lambda s: s.with_rank_at_least(3), r"Shape \(2, \?\) must have rank at least 3"),
        (lambda s: s.with_rank_at_most(1), r"Shape \(2, \?\) must have rank at most 1"),
        (lambda s: s.assert_has_rank(3), r"Shape \(2, \?\) must have rank 3"),
        (lambda s: s.assert_same_rank([2]), r"Shapes \(2, \?\) and \(2,\) must have the same rank"),
        (lambda s: s.assert_is_compatible_with([3, 3]), r"Shapes \(2, \?\) and \[3, 3\] are incompatible"),
        (lambda s: s.merge_with([3, 3]), r"Shapes \(2, \?\) and \(3, 3\) are not compatible"),
        (lambda s: s.merge_with([2]), r"Shapes \(2, \?\) and \(2,\) are not compatible"),
        (lambda s: s.assert_is_fully_defined(), r"Shape \(2, \?\) is not fully defined"),
    ],
)
def test_checks_that_fail(check: Callable[[TensorShape], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(TensorShape([2, None]))


def test_checks_that_pass() -> None:
    made = TensorShape([2, None])
    made.assert_has_rank(2)
    made.assert_same_rank([3, 4])
    made.assert_same_rank(None)
    made.assert_is_compatible_with([2, 3])
    UNKNOWN.assert_has_rank(3)
    TensorShape([2]).assert_is_fully_defined()
    assert made.with_rank(2) is made and as_shape(made) is made


def test_named_shapes() -> None:
    assert shape.scalar() == []
    assert shape.vector(3) == [3]
    assert shape.matrix(None, 2) == [None, 2]
    assert (shape.unknown_shape(), shape.unknown_shape(2)) == (UNKNOWN, [None, None])
