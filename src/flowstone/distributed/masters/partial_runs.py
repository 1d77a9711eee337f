"""Steps of a master's session that are fed and fetched in several calls (PartialRunSetup, RunStep with a
handle).

All parts run from the beginning, as in any step. Feeds and fetches meet the step on the master's own task
(`partition/client_ends.py`); from there they go to the tasks that need them by Send and Receive.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowstone.distributed.masters.running_step import RunningStep
from flowstone.framework import errors
from flowstone.framework.graphs.partial_state import PartialState
from flowstone.framework.tensors.tensor import Tensor
from flowstone.partition.client_ends import client_way
from flowstone.runtime.execution.executor import DEAD
from flowstone.runtime.steps.rendezvous import Rendezvous

__all__ = ["PartialPlan", "PartialRun", "PartialRuns"]


class PartialPlan(NamedTuple):
    """What steps in several calls have in common: feeds and fetches by name, what each fetch needs, and the
    device on which they meet the step."""

    feeds: dict[str, Tensor]
    fetches: dict[str, Tensor]
    needs: dict[Tensor, list[Tensor]]
    host: str


class PartialRun:
    """One such step: `run` runs it on a thread of its own; `meeting` is where its feeds and fetches meet
    it."""

    def __init__(
        self, plan: PartialPlan, step: RunningStep, meeting: Rendezvous, run: Callable[[RunningStep], Any]
    ) -> None:
        self._plan, self._step, self._meeting = plan, step, meeting
        self._state = PartialState(plan.feeds.values(), plan.fetches.values(), plan.needs)
        self._ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self._lock = threading.Lock()

        def whole() -> None:
            failure: BaseException | None = None
            try:
                run(step)
            except Exception as error:
                failure = self._failure = error
                meeting.cancel(error)
                step.let_go(is_over=True)
            self._ended.put(failure)

        threading.Thread(target=whole, name="flowstone partial run", daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether all feeds were given and all fetches taken, or the step has failed."""
        return self._state.is_complete or self._failure is not None

    def go_on(self, feeds: Sequence[tuple[str, Any]], fetches: Sequence[str]) -> list[tuple[Any, Any]]:
        """Gives these feeds and waits for these fetches, which it returns with their types."""
        with self._lock:
            fed = [_known(self._plan.feeds, name, "feed") for name, _ in feeds]
            taken = [_known(self._plan.fetches, name, "fetch") for name in fetches]
            self._state.check_feeds(fed)
            self._state.check_fetches(taken, fed, self._failure is not None)
            for tensor, (_, value) in zip(fed, feeds):
                self._state.feed(tensor)
                self._meeting.send(client_way("feed", tensor, self._plan.host), value)
            for tensor in taken:
                self._state.fetch(tensor)
            results = [(self._received(tensor), tensor.dtype) for tensor in taken]
            if self._state.is_complete:
                self._step.let_go()
                self._raise_failure()
            return results

    def _received(self, tensor: Tensor) -> Any:
        arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._meeting.receive(
            client_way("fetch", tensor, self._plan.host),
            lambda values, error=None: arrived.put((values, error)),
        )
        values, error = arrived.get()
        if error is not None:
            self._raise_failure()
            raise error
        if values[0] is DEAD:
            self.cancel()
            raise errors.InvalidArgumentError(None, None, "Retval[0] does not have value")
        return values[0]

    def _raise_failure(self) -> None:
        """Waits for the end of the step, and raises its failure."""
        failure = self._ended.get()
        self._ended.put(failure)
        if failure is not None:
            raise failure

    def cancel(self) -> None:
        """Ends the step."""
        self._step.cancel(errors.CancelledError(None, None, "The partial run was cancelled."))
        self._step.let_go()


def _known(names: dict[str, Tensor], name: str, kind: str) -> Tensor:
    tensor = names.get(name)
    if tensor is None:
        raise errors.InvalidArgumentError(
            None, None, f"The {kind} {name} was not specified in partial_run_setup."
        )
    return tensor


class PartialRuns:
    """The partial runs of one session, by their handles."""

    def __init__(self) -> None:
        self._runs: dict[str, PartialRun] = {}
        self._numbers = itertools.count()

    def add(self, run: PartialRun) -> str:
        """Keeps a run; returns its handle."""
        handle = f"partial_run_{next(self._numbers)}"
        self._runs[handle] = run
        return handle

    def go_on(
        self, handle: str, feeds: Sequence[tuple[str, Any]], fetches: Sequence[str]
    ) -> list[tuple[Any, Any]]:
        """`PartialRun.go_on` of this handle's run. InvalidArgumentError if there is none."""
        run = self._runs.get(handle)
        if run is None:
            raise errors.InvalidArgumentError(
                None, None, "Must run PartialRunSetup before performing partial runs!"
            )
        try:
            return run.go_on(feeds, fetches)
        finally:
            if run.is_over:
                self._runs.pop(handle, None)

    def end(self) -> None:
        """Cancels all runs."""
        runs, self._runs = self._runs, {}
        for run in runs.values():
            run.cancel()
