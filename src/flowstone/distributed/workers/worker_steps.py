"""`WorkerSteps`: which steps a worker knows. A state machine without I/O.

A step comes to a worker by the first of some requests: to run the worker's part (RunGraph), or for a value
that the part is going to send (RecvTensor), which may overtake it. It ends when the master says so
(CleanupGraph) and its part has ended; requests that come later are refused.

=============  ===================================================  =======================================
a step is      after                                                left by
=============  ===================================================  =======================================
awaited        `asked` or `failed` before `begun`                   `begun`, `cleaned`
running        `begun`                                              `ended`
idle           `ended`                                              `cleaned`
leaving        `cleaned` while running                              `ended`
gone           `cleaned` while not running
=============  ===================================================  =======================================

`story` lists what happened to a step, if a log is kept; `validate` checks what must hold.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from flowstone.framework import errors

__all__ = ["WorkerSteps"]

_REMEMBERED = 4096  # steps that are gone, for requests that come late
_Meeting = TypeVar("_Meeting")


class _Known(Generic[_Meeting]):
    __slots__ = ("cleaned", "error", "has_begun", "meeting", "running")

    def __init__(self, meeting: _Meeting) -> None:
        self.meeting = meeting
        self.has_begun = self.running = False
        self.cleaned = False
        self.error: BaseException | None = None


class WorkerSteps(Generic[_Meeting]):
    """The steps by their numbers, each with what `make(step)` gave: the place where its values meet.

    The caller serialises the calls.
    """

    def __init__(self, make: Callable[[int], _Meeting], keeps_story: bool = False) -> None:
        self._make = make
        self._known: dict[int, _Known[_Meeting]] = {}
        self._gone: OrderedDict[int, None] = OrderedDict()
        self._story: list[tuple[int, str]] | None = [] if keeps_story else None

    def begun(self, step: int) -> _Meeting:
        """The part begins. AbortedError if the step is over, has failed, or has begun before: a request that
        comes twice does nothing twice."""
        known = self._get(step, "begun")
        if known.error is not None:
            raise errors.AbortedError(None, None, f"Step {step:016x} has failed: {known.error}")
        if known.has_begun:
            raise errors.AbortedError(None, None, f"Step {step:016x} has begun already")
        known.has_begun = known.running = True
        return known.meeting

    def asked(self, step: int) -> _Meeting:
        """Another task asks for a value of the step. AbortedError if the step is over."""
        return self._get(step, "asked").meeting

    def failed(self, step: int, error: BaseException) -> _Meeting | None:
        """The step failed, here or elsewhere; the meeting to cancel, None if the step is over or failed
        before. This may come before the part begins, which it then does not."""
        if step not in self._known:
            if step in self._gone:
                return None
            self._known[step] = _Known(self._make(step))
        known = self._known[step]
        if known.error is not None:
            return None
        known.error = error
        self._tell(step, f"failed: {type(error).__name__}")
        return known.meeting

    def ended(self, step: int) -> None:
        """The part has ended, whether well or not."""
        known = self._known[step]
        known.running = False
        self._tell(step, "ended")
        if known.cleaned:
            self._leave(step)

    def cleaned(self, step: int) -> _Meeting | None:
        """The master says that the step is over; the meeting to cancel, None if nothing is known of it."""
        known = self._known.get(step)
        if known is None:
            self._remember(step)
            return None
        known.cleaned = True
        self._tell(step, "cleaned")
        if not known.running:
            self._leave(step)
        return known.meeting

    def all(self) -> list[tuple[int, _Meeting]]:
        """The steps that are known, with their meetings."""
        return [(step, known.meeting) for step, known in self._known.items()]

    def __contains__(self, step: int) -> bool:
        return step in self._known

    def __len__(self) -> int:
        return len(self._known)

    def validate(self) -> None:
        """AssertionError if a step is known and gone, or has left while a part runs."""
        for step, known in self._known.items():
            assert step not in self._gone, f"step {step} is known and gone"
            assert known.has_begun or not known.running, f"step {step} runs without having begun"
            assert known.running or not known.cleaned, f"step {step} stays after it was cleaned"
        assert len(self._gone) <= _REMEMBERED

    def story(self, step: int) -> list[str]:
        """What happened to the step."""
        return [event for number, event in self._story or () if number == step]

    def _get(self, step: int, event: str) -> _Known[_Meeting]:
        known = self._known.get(step)
        if known is None:
            if step in self._gone:
                raise errors.AbortedError(None, None, f"Step {step:016x} is over")
            known = self._known[step] = _Known(self._make(step))
        elif known.cleaned:
            raise errors.AbortedError(None, None, f"Step {step:016x} is over")
        self._tell(step, event)
        return known

    def _leave(self, step: int) -> None:
        del self._known[step]
        self._remember(step)
        self._tell(step, "gone")

    def _remember(self, step: int) -> None:
        self._gone[step] = None
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)

    def _tell(self, step: int, event: str) -> None:
        if self._story is not None:
            self._story.append((step, event))
