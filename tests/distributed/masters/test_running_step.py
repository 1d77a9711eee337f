"""Steps of a master, with workers that do as they are told."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from flowstone.distributed.links.worker_links import Described, Done
from flowstone.distributed.masters.running_step import RegisteredPart, RunningStep
from flowstone.distributed.workers.part_graphs import PartGraph
from flowstone.framework import errors
from flowstone.framework.types import dtypes

HOME, OTHER = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"


class Link:
    """A worker that keeps what it is asked, and answers at once (`answer`), or when the test says so."""

    def __init__(self, is_local: bool, answer: Any = None) -> None:
        self.is_local, self.answer = is_local, answer
        self.asked: list[tuple[Any, ...]] = []
        self.done: Done | None = None

    def run(
        self, handle: str, graph: str, step: int, part: PartGraph, feeds: Sequence[Any], done: Done,
        described: Described | None = None,
    ) -> None:  # fmt: skip
        self.asked.append(("run", handle, graph, [value for value, _ in feeds]))
        self.done = done
        if isinstance(self.answer, BaseException):
            done(None, self.answer)
        elif self.answer is not None:
            done(self.answer, None)

    def fail(self, step: int, error: BaseException) -> None:
        self.asked.append(("fail", type(error)))
        assert self.done is not None
        self.done(None, errors.AbortedError(None, None, "told so"))

    def clean_up(self, step: int) -> None:
        self.asked.append(("clean up",))


def step_of(home: Link, other: Link, sends: bool = False, **options: Any) -> RunningStep:
    parts = [
        RegisteredPart(PartGraph(HOME, None, [("k0", 1)], [("k1", 0)], sends), "7"),
        RegisteredPart(PartGraph(OTHER, None, [("k2", 0)], [("k3", 1)], sends), "8"),
    ]
    feeds = [("a", dtypes.string), ("b", dtypes.string)]
    return RunningStep("s", parts, feeds, 2, {HOME: home, OTHER: other}, **options)  # type: ignore[dict-item]


def test_each_part_gets_its_feeds_and_gives_its_fetches() -> None:
    home, other = Link(True, ["x"]), Link(False, ["y"])
    assert step_of(home, other).run() == ["x", "y"]
    assert home.asked == [("run", "s", "7", ["b"])]  # its worker knows by itself when nothing is left
    assert other.asked == [("run", "s", "8", ["a"])]


def test_who_sends_is_told_that_the_step_is_over() -> None:
    home, other = Link(True, ["x"]), Link(False, ["y"])
    step_of(home, other, sends=True).run()
    assert home.asked[-1] == other.asked[-1] == ("clean up",)


def test_the_first_failure_ends_the_step_everywhere_and_names_its_task() -> None:
    failure = errors.InvalidArgumentError(None, None, "no such row")
    failure.node_name = "gather"
    home, other = Link(True, failure), Link(False)
    with pytest.raises(errors.InvalidArgumentError) as caught:
        step_of(home, other).run()
    assert caught.value.message == f"From {HOME}:\nno such row" and caught.value.node_name == "gather"
    assert other.asked[1:] == [("fail", errors.InvalidArgumentError), ("clean up",)]


def test_a_failure_that_came_from_elsewhere_keeps_its_task() -> None:
    failure = errors.InternalError(None, None, f"From {OTHER}:\nbroken")
    with pytest.raises(errors.InternalError) as caught:
        step_of(Link(True, failure), Link(False)).run()
    assert caught.value.message == f"From {OTHER}:\nbroken"


def test_a_time_limit() -> None:
    home, other = Link(True, ["x"]), Link(False)
    with pytest.raises(errors.DeadlineExceededError, match="time limit"):
        step_of(home, other, timeout_ms=50).run()
    assert ("fail", errors.DeadlineExceededError) in other.asked


def test_a_step_is_cancelled_from_another_thread() -> None:
    home, other = Link(True, ["x"]), Link(False)
    step = step_of(home, other)
    thread = threading.Timer(0.05, step.cancel, [errors.CancelledError(None, None, "closed")])
    thread.start()
    with pytest.raises(errors.CancelledError, match="closed"):
        step.run()
    step.cancel(errors.CancelledError(None, None, "once more"))  # which does nothing
    thread.join()


@pytest.mark.parametrize("is_early", [False, True])
def test_what_a_step_has_left_is_kept_until_it_is_let_go(is_early: bool) -> None:
    home, other = Link(True, ["x"]), Link(False, ["y"])
    step = step_of(home, other, sends=True, kept=HOME)
    if is_early:
        step.let_go()
        step.run()
    else:
        step.run()
        assert ("clean up",) in other.asked and ("clean up",) not in home.asked
        step.let_go()
    assert home.asked.count(("clean up",)) == 1
    step.let_go()
    assert home.asked.count(("clean up",)) == 1
