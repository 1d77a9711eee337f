"""Given these shapes one after the other, expect these plans: made at once, later, wider, let go."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from flowstone.runtime.code.planning_costs import PlanCosts
from flowstone.runtime.plans import plans_by_shape
from flowstone.runtime.plans.plans_by_shape import AT_ONCE, MOST_WIDE, MOST_WIDENINGS, PlansByShape


class FakePlan:
    """Stands for a plan of these shapes."""

    def __init__(self, shapes: Any, size: int, costs: PlanCosts) -> None:
        self.shapes, self.size, self._costs = shapes, size, costs

    def held_bytes(self) -> int:
        return self.size

    def costs(self) -> PlanCosts:
        return self._costs

    def growth_on_one_thread(self) -> float:
        return 0.0


class Planning:
    """`made` and `forgotten`: shapes of plans; `code_first`: whether each is made with its code; `later`:
    tasks for the background; `costs`: each plan's, by default so low that shapes have their own when they
    come again."""

    def __init__(self, *dims: Any, size: int = 1, wrong: Callable[[Any], Exception | None] | None = None):
        self.made: list[Any] = []
        self.forgotten: list[Any] = []
        self.later: list[Callable[[], None]] = []
        self.code_first: list[bool] = []
        self.costs = PlanCosts(0.0, 1, 0.0)
        self.size, self.wrong = size, wrong
        self.plans = PlansByShape(
            self._plan, lambda chosen: self.forgotten.append(chosen.shapes), self.later.append, dims
        )

    def _plan(self, shapes: Any, code_first: bool) -> Any:
        self.made.append(shapes)
        self.code_first.append(code_first)
        error = self.wrong(shapes) if self.wrong else None
        if error is not None:
            raise error
        return FakePlan(shapes, self.size, self.costs)

    def meet(self, *lengths: Any) -> list[Any]:
        """What plans steps with feeds [length] have."""
        return [self.plans.choose(((n,),)).shapes for n in lengths]

    def work(self) -> None:
        """Does what is left for the background."""
        while self.later:
            self.later.pop(0)()


WIDE = ((-1,),)  # all that is open of [?] is open, and at least 2
OTHERS = range(1000, 1200)  # so many shapes that no count of theirs matters


def test_one_shape_has_one_plan():
    p = Planning((None,))
    assert p.meet(5, 5, 5, 5) == [((5,),)] * 4
    assert p.made == [((5,),)] and not p.later


def test_full_batches_and_the_last_have_two():
    p = Planning((None,))
    p.meet(32, 32, 7, 32, 32, 7)
    assert p.made == [((32,),), ((7,),)] and not p.later


def test_what_comes_anew_has_the_wide_plan_and_what_comes_again_gets_its_own():
    p = Planning((None,))
    assert p.meet(1, 2) == [((1,),), ((2,),)]
    assert p.meet(3, 4, 5) == [WIDE] * 3 and not p.later
    assert p.meet(4) == [WIDE] and len(p.later) == 1
    p.work()
    assert p.meet(4, 3, 1) == [((4,),), WIDE, ((1,),)]
    p.work()
    assert p.meet(3) == [((3,),)]
    assert p.made == [((1,),), ((2,),), WIDE, ((4,),), ((3,),)]


@pytest.mark.parametrize("is_early", [False, True])
def test_whether_the_background_was_early_changes_nothing(is_early):
    p = Planning((None,))
    assert p.meet(1, 2, 3, 3) == [((1,),), ((2,),), WIDE, WIDE]
    if is_early:
        p.work()
    assert p.meet(3, 3) == [((3,),)] * 2
    p.work()
    assert p.made == [((1,),), ((2,),), WIDE, ((3,),)]


def test_ever_new_shapes_cost_three_plans():
    p = Planning((None,))
    p.meet(*range(5000))
    p.work()
    assert p.made == [((0,),), ((1,),), WIDE]


def test_the_wide_plan_leaves_open_what_has_differed():
    p = Planning((None, None, 3), (None,))
    choose = p.plans.choose
    choose(((8, 1, 3), (8,)))
    choose(((8, 2, 3), (8,)))
    assert choose(((8, 3, 3), (8,))).shapes == ((8, -1, 3), (8,))
    assert choose(((8, 4, 3), (8,))).shapes == ((8, -1, 3), (8,))
    assert choose(((7, 4, 3), (8,))).shapes == ((-1, -2, 3), (8,))  # 1 has its own plan
    assert p.forgotten == [((8, -1, 3), (8,))]


def test_sizes_of_0_and_1_have_wide_plans_of_their_own():
    p = Planning((None, None), (None,))
    choose = p.plans.choose
    for n in (2, 3):
        choose(((n, n), (n,)))
    all_others = choose(((7, 4), (7,)))
    one = choose(((1, 4), (1,)))
    assert all_others.shapes == ((-1, -2), (-1,)) and one.shapes == ((1, -1), (1,))
    assert choose(((1, 9), (1,))) is one and choose(((6, 9), (6,))) is all_others
    assert choose(((5, 0), (5,))).shapes == ((-1, 0), (-1,)) and choose(((0, 1), (0,))).shapes == (
        (0, 1),
        (0,),
    )
    assert len(p.made) == AT_ONCE + MOST_WIDE and not p.forgotten


def test_patterns_of_small_sizes_beyond_the_first_share_a_plan():
    p = Planning(*[(None,)] * 6)
    choose = p.plans.choose
    shapes = [
        tuple((1 if i == ones else n,) for i in range(6)) for n, ones in enumerate((9, 9, 9, 0, 1, 2), 5)
    ]
    wide = [choose(each).shapes for each in shapes][AT_ONCE:]
    assert wide[0] == ((-1,),) * 6 and wide[1] == ((1,), *[(-1,)] * 5) and len(p.made) == AT_ONCE + MOST_WIDE
    shared = choose(((5,), (5,), (5,), (1,), (5,), (5,)))
    assert shared.shapes == ((-1,), (-2,), (-3,), (None,), (-4,), (-4,))
    assert choose(((5,), (5,), (5,), (5,), (1,), (5,))).shapes == (
        (-1,),
        (-2,),
        (-3,),
        (None,),
        (None,),
        (-4,),
    )
    assert choose(((4,), (4,), (4,), (1,), (1,), (4,))) is choose(((4,), (4,), (4,), (1,), (1,), (5,)))
    assert choose(((0,),) * 6).shapes is None


def test_sizes_that_were_always_equal_are_taken_for_equal_by_the_wide_plan():
    p = Planning((None, None), (None,))
    choose = p.plans.choose
    for n in (2, 3):
        choose(((n, 5), (n,)))
    equal = ((-1, 5), (-1,))
    assert choose(((4, 5), (4,))).shapes == equal
    assert choose(((7, 5), (7,))).shapes == equal
    assert choose(((8, 5), (9,))).shapes == ((-1, 5), (-2,))
    assert choose(((8, 6), (9,))).shapes == ((-1, -2), (-3,))
    assert p.made[2:] == [equal, ((-1, 5), (-2,)), ((-1, -2), (-3,))]


def test_it_is_made_wider_a_few_times_only():
    rank = MOST_WIDENINGS + 4
    p = Planning((None,) * rank)
    p.plans.choose(((2,) * rank,))
    p.plans.choose(((2,) * rank,))
    for changed in range(1, rank):
        shapes = ((3,) * changed + (2,) * (rank - changed),)
        wide = p.plans.choose(shapes).shapes
    assert wide is None and len(p.made) == AT_ONCE + MOST_WIDENINGS + 1


def test_unknown_ranks():
    p = Planning(None)
    p.plans.choose(((1,),))
    p.plans.choose(((1, 2),))
    assert p.plans.choose(((1, 2, 3),)).shapes is None


def test_the_least_recently_used_goes(monkeypatch):
    monkeypatch.setattr(plans_by_shape, "MOST_PLANS", 3)
    p = Planning((None,))
    p.meet(1, 2, 3, 3)
    p.work()
    p.meet(1, 2)
    p.meet(4, 4)  # has come twice since 3 was used
    p.work()
    assert p.meet(1, 2, 4) == [((1,),), ((2,),), ((4,),)]
    assert p.forgotten == [((3,),)]


def test_more_shapes_in_turn_than_plans_do_not_displace_one_another(monkeypatch):
    monkeypatch.setattr(plans_by_shape, "MOST_PLANS", 4)
    p = Planning((None,))
    for _ in range(10):
        p.meet(*range(8))
        p.work()
    assert p.meet(*range(8)) == [((i,),) for i in range(4)] + [WIDE] * 4
    assert len(p.made) == 5 and not p.forgotten


def test_what_comes_again_gets_its_own_when_steps_have_lost_what_that_costs():
    p = Planning((None,))
    p.costs = PlanCosts(planning_us=36.0, calls=16, work_us=0.0)  # a wide plan loses 6 us a step
    p.meet(1, 2, *OTHERS)
    assert p.meet(3, 4, 3, 4, 3, 3, 3) == [WIDE] * 7 and not p.later
    assert p.meet(3) == [WIDE] and len(p.later) == 1
    assert p.costs.steps_meanwhile(p.costs, 1.0) == 1
    assert p.meet(3, 4, 3) == [((3,),), WIDE, ((3,),)]
    assert p.made == [((1,),), ((2,),), WIDE, ((3,),)]


def test_large_values_have_their_own_earlier():
    p = Planning((None,))
    p.costs = PlanCosts(planning_us=36.0, calls=1, work_us=4.0)
    p.meet(4, 5, *OTHERS)
    p.meet(9, 9, 9, 89, 89)
    assert p.plans.is_special(((89,),)) and not p.plans.is_special(((9,),))


@pytest.mark.parametrize(
    "order",
    [[*range(5, 45)] * 3, [*OTHERS, *[n for n in range(3, 20) for _ in range(4)]]],
    ids=["longer and longer, three times", "each a few times"],
)
def test_shapes_that_come_a_few_times_cost_three_plans(order):
    p = Planning((None,))
    p.costs = PlanCosts(planning_us=130e3, calls=200, work_us=500.0)
    p.meet(1, 2, *order)
    p.work()
    assert p.made == [((1,),), ((2,),), WIDE]


@pytest.mark.parametrize("uses", [1, 10, 100, 1000])
@pytest.mark.parametrize("planning_us", [100.0, 1000.0, 3000.0])
def test_steps_cost_at_most_twice_what_they_had_to(uses, planning_us):
    p = Planning((None,))
    p.costs = PlanCosts(planning_us=planning_us, calls=16, work_us=0.0)  # a wide plan loses 6 us a step
    p.meet(1, 2, *OTHERS)
    wide = p.meet(*[3] * uses).count(WIDE)
    spent = 6.0 * wide + planning_us * (((3,),) in p.made)
    assert spent <= 2 * min(6.0 * uses, planning_us) + 6.0 * (1 + p.costs.steps_meanwhile(p.costs, 1.0))


def test_steps_go_on_with_the_wide_plan_as_long_as_making_another_takes():
    p = Planning((None,))
    p.costs = PlanCosts(planning_us=100.0, calls=10, work_us=0.0, code_us=300.0)
    meanwhile = p.costs.steps_meanwhile(p.costs, 1.0)
    assert meanwhile == 15
    p.meet(1, 2, *[3] * 100)
    assert p.made == [((1,),), ((2,),), WIDE, ((3,),)] and p.code_first == [False, False, False, True]
    p = Planning((None,))
    p.costs = PlanCosts(planning_us=100.0, calls=10, work_us=0.0, code_us=300.0)
    met = p.meet(1, 2, 3, 3, 3, 3)
    assert met[2:] == [WIDE] * 4 and len(p.later) == 1  # begun with the third
    p.work()
    assert p.meet(*[1] * (meanwhile - 3)) == [((1,),)] * (meanwhile - 3)  # all steps count
    assert p.meet(4, 3) == [WIDE, ((3,),)]


def test_code_that_the_first_plan_has_made_is_not_waited_for_again():
    p = Planning((None,))
    p.costs = PlanCosts(planning_us=100.0, calls=10, work_us=0.0, code_us=300.0, loops=(("loop", 250.0),))
    p.meet(1, 2)
    assert p.meet(*[3] * 9) == [WIDE] * 8 + [((3,),)]  # all of its code would be 9 steps more


def test_one_plan_is_made_at_a_time():
    p = Planning((None,))
    p.costs = PlanCosts(planning_us=100.0, calls=10, work_us=0.0)
    p.meet(1, 2, *[3, 4] * 4)
    assert len(p.later) == 1
    p.meet(*[4] * 20)
    assert len(p.later) == 2 and p.plans.is_special(((3,),)) and p.plans.is_special(((4,),))


def test_few_shapes_have_their_own_when_each_has_come_as_often_as_there_are_shapes():
    p = Planning((None,))
    p.costs = PlanCosts(planning_us=130e3, calls=200, work_us=0.0)
    p.meet(*range(5), *range(5), *range(5), *range(5))
    assert not p.later
    met = p.meet(*list(range(5)) * 300)
    assert len(p.later) == 3
    assert met[-5:] == [((n,),) for n in range(5)]


def test_a_plan_that_is_used_is_not_displaced(monkeypatch):
    monkeypatch.setattr(plans_by_shape, "MOST_PLANS", 2)
    p = Planning((None,))
    p.costs = PlanCosts(planning_us=24.0, calls=16, work_us=0.0)  # worth four steps
    p.meet(1, 2)
    for _ in range(5):
        p.meet(3, 3, 3, 1, 2)
    assert not p.later
    p.meet(1, 3, 3, 3, 3)
    assert len(p.later) == 1
    p.work()
    assert p.meet(3, 1) == [((3,),), ((1,),)] and p.forgotten == [((2,),)]


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(plans_by_shape, "MOST_BYTES", 100)
    p = Planning((None,), size=40)
    p.meet(1, 2, 1, 3, 3, 3)
    p.work()
    assert p.forgotten == [((2,),)]
    assert p.meet(1, 2, 3) == [((1,),), WIDE, ((3,),)]
    p = Planning((None,), size=1000)  # more than all may have
    p.meet(1, 1, 2, 2)
    assert p.forgotten == [((1,),)] and p.meet(2) == [((2,),)]


def contradicts(shapes: Any) -> Exception | None:
    return ValueError("odd") if shapes is not None and (shapes[0][0] or 0) > 0 and shapes[0][0] % 2 else None


def test_shapes_that_contradict_have_the_plan_for_all_and_are_not_planned_again():
    p = Planning((None,), wrong=contradicts)
    assert p.meet(1, 1, 2, 4) == [None, None, ((2,),), ((4,),)]
    assert p.meet(3, 3, 3) == [WIDE, WIDE, None]
    p.work()
    assert p.meet(3, 3, 3) == [None] * 3 and not p.later
    assert p.made == [((1,),), None, ((2,),), ((4,),), WIDE, ((3,),)]


def test_shapes_that_the_graph_refuses_have_the_plan_for_all():
    p = Planning((None, 3))
    assert p.plans.choose(((2, 4),)).shapes is None
    assert p.made == [None]


def test_planning_that_fails_later_is_told_once(caplog):
    def wrong(shapes: Any) -> Exception | None:
        return RuntimeError("out of luck") if shapes and (shapes[0][0] or 0) > 2 else None

    p = Planning((None,), wrong=wrong)
    with caplog.at_level(logging.WARNING, "tensorflow"):
        p.meet(1, 2, 3, 3, 4, 4)
        p.work()
    assert [str(r.exc_info[1]) for r in caplog.records if r.exc_info] == ["out of luck"]
    assert p.meet(3, 4, 3, 4) == [None] * 4 and not p.later


def test_planning_that_fails_at_once_is_the_users_error():
    p = Planning((None,), wrong=lambda shapes: RuntimeError("out of luck"))
    with pytest.raises(RuntimeError, match="out of luck"):
        p.meet(1)
