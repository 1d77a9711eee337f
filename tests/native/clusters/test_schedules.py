"""In which pass each step is computed, what is kept for later passes, when an input may be overwritten."""

from __future__ import annotations

from flowstone.native.clusters.clusters import Array, Cluster, Result, Step
from flowstone.native.clusters.schedules import schedule_of
from flowstone.native.codegen import host


def normalised(columns: int) -> Cluster:
    """Rows over the sum of their exponential functions, and the sum over all."""
    row = (("over", "row"),)
    steps = (
        Step("Exp", (0,), "float32"),
        Step("Sum", (1,), "float32", row),
        Step("Reciprocal", (2,), "float32"),
        Step("Mul", (1, 3), "float32"),
        Step("Sum", (4,), "float32", (("over", "all"),)),
    )
    results = (Result("float32", (9, columns)), Result("float32", (9,)), Result("float32", ()))
    return Cluster((9, columns), (Array("float32", (9, columns)),), steps, (4, 2, 5), 1, results)


def test_what_needs_a_reduction_comes_in_a_later_pass() -> None:
    schedule = schedule_of(normalised(100 * host.lanes()))
    first, second = schedule.passes
    assert (first.elements, first.reduced, first.stores) == ([0, 1], [2], [])
    assert (second.before, second.elements, second.ends, second.stores) == ([3], [4], [5], [0])
    assert first.kept == second.restored == [1]
    assert schedule.row_stores == [1] and schedule.chunks == 0


def test_cheap_steps_are_computed_again() -> None:
    cluster = normalised(100 * host.lanes())
    cheap = cluster._replace(steps=(Step("Neg", (0,), "float32"), *cluster.steps[1:]))
    first, second = schedule_of(cheap).passes
    assert not first.kept and second.elements == [0, 1, 4]


def test_an_input_may_be_overwritten_when_no_later_pass_reads_it() -> None:
    schedule = schedule_of(normalised(100 * host.lanes()))
    assert (schedule.last_read(0), schedule.stored_in(0)) == (0, 1)


def test_a_short_row_is_in_registers() -> None:
    schedule = schedule_of(normalised(2 * host.lanes()))
    assert schedule.chunks == 2 and schedule.passes[0].kept == [1]


def test_reductions_of_rows_come_at_their_ends() -> None:
    steps = (
        Step("Sum", (0,), "float32", (("over", "row"),)),
        Step("Sqrt", (1,), "float32"),
        Step("Sum", (2,), "float32", (("of", "rows"), ("over", "all"))),
    )
    cluster = Cluster((4, 50), (Array("float32", (4, 50)),), steps, (3,), 1, (Result("float32", ()),))
    schedule = schedule_of(cluster)
    assert (schedule.after, schedule.row_ends) == ([2], [3])
