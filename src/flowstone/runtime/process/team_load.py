"""Where other work wants the cores, callers of teams do all parts of machine code's work themselves.

A team is as fast as its slowest thread. A thread that waits behind another process for its core, for a time
slice or several, has the caller wait as long at the end of every region: beside one busy process a step of
many regions takes three times as long, beside several thirty times (docs/design/041).

`Load` decides for one team. Every 50 ms at most it asks Linux how long the team's other threads have waited
for a core. If in two such windows in a row one of them has waited for so much of the time that the caller
alone would be faster, callers work alone for a tenth of a second (`native/codegen/parts.py`); then the team
is tried for one window, and each time that it still waits the pause is twice as long, up to 1.6 seconds. The
parts are the same either way, so results do not depend on this. Teams of libraries (MKL, oneDNN, ATen) are
not ours to change: their results depend on how many threads they have.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowstone.native.codegen.parts import asked_to_work_alone, work_alone

__all__ = ["Load"]

_WINDOW = 0.05  # seconds between two looks: one time slice of another process is not enough
_SHORTEST, _LONGEST = 0.1, 1.6  # seconds without the team


class Load:
    """How long the threads of one team wait, and whether its caller works alone."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._since, self._until, self._pause = 0.0, 0.0, _SHORTEST
        self._is_suspected = False
        self._waited: dict[int, float] = {}

    @property
    def is_alone(self) -> bool:
        """Whether the caller works alone."""
        return asked_to_work_alone(self)

    def look(self, now: float, threads: Sequence[int]) -> None:
        """Looks, if it is time to, at the team's other threads."""
        if now < self._until or now < self._since + _WINDOW:
            return
        waited = {thread: _waited_s(thread) for thread in threads}
        if self.is_alone:
            work_alone(self, False)
        elif waited and waited.keys() == self._waited.keys():
            self._decide(now, max([waited[i] - self._waited[i] for i in waited]))
        self._since, self._waited = now, waited

    def _decide(self, now: float, waited: float) -> None:
        size = len(self._waited) + 1
        if waited <= (1 - 1.5 / size) * (now - self._since):
            self._pause, self._is_suspected = _SHORTEST, False
        elif not self._is_suspected:
            self._is_suspected = True
        else:  # of a suspected team that is tried again one window is enough
            self._until = now + self._pause
            self._pause = min(2 * self._pause, _LONGEST)
            work_alone(self, True)

    def release(self) -> None:
        """Nobody looks any more: the team may be used."""
        work_alone(self, False)
        self._forget()


def _waited_s(thread: int) -> float:
    """For how many seconds a thread of this process has waited for a core, as far as the system tells."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
