"""Shapes one after the other, and what they have in common."""

from __future__ import annotations

import pytest

from flowstone.runtime.plans.common_shapes import Hull, growth, is_within, small_sizes


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([((8, 3), (8,)), ((5, 3), (5,))], ((-1, 3), (-1,))),
        ([((8, 3), (8,)), ((5, 3), (4,))], ((-1, 3), (-2,))),
        ([((8, 3), (8,)), ((1, 3), (1,))], ((None, 3), (None,))),
        ([((8, 3), (8,)), ((5,), (5,))], (None, (-1,))),
        ([((8, 3), None), ((8, 3), None)], ((8, 3), None)),
    ],
)
def test_what_differs_is_open_and_what_is_equal_has_one_name(shapes, expected):
    hull = Hull()
    for each in shapes:
        hull.add(each)
    assert hull.shapes() == expected


def test_small_sizes_of_a_pattern_are_known():
    hull = Hull()
    for batch, time in ((8, 3), (1, 4), (6, 1)):
        hull.add(((batch, time), (batch,)), is_small_known=True)
    assert hull.shapes(small_sizes(((1, 9), (1,)))) == ((1, -1), (1,))
    assert hull.shapes(small_sizes(((7, 9), (7,)))) == ((-1, -2), (-1,))


def test_a_plan_holds_for_shapes_within_its_own():
    wide = ((-1, 3), (-1,), None)
    assert is_within(((8, 3), (8,), (1,)), wide)
    for other in (((8, 4), (8,), (1,)), ((8, 3), (7,), (1,)), ((1, 3), (1,), (1,)), ((8, 3), None, (1,))):
        assert not is_within(other, wide)


def test_how_much_more_other_shapes_give_to_do():
    assert growth(((8, 3), (8,)), ((4, 6), (4,))) == 2.0
    assert growth(((9, 9), (3,)), ((3, 3), (1,))) == 9.0
    assert growth(((1, 1), None), ((4, 6), None)) == 1.0
    assert growth(((5,),), ((0,),)) == 5.0
