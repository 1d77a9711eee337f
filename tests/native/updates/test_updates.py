"""Rules of updates as values: which steps only depend on numbers, what the work is."""

from __future__ import annotations

from flowstone.native.updates.updates import Rule, Update

RULE = Rule(1, 1, 2, (("Sub", (1.0, "n1")), ("Mul", ("n0", "t0")), ("Mul", ("x0", "t1"))), ("t2",))


def test_steps_on_numbers_alone_are_known() -> None:
    assert RULE.of_numbers() == [True, True, False]
    assert RULE.is_number("n1", []) and RULE.is_number(2.0, []) and not RULE.is_number("h0", [])


def test_work_grows_with_elements_and_steps() -> None:
    update = Update(RULE, "float32", (100, 50), (True, True))
    assert update.work == 150 * (3 + 3)
