"""`Interrupts`: the signals by which someone asks to end a cluster, noted instead of obeyed."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Interrupts"]

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Notes SIGINT, SIGTERM and SIGHUP within a `with` block, but for those that the process ignores (as
    under nohup). Python hears signals on the main thread: on another one there are none."""

    def __init__(self) -> None:
        self._noted: list[signal.Signals] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            heard = [number for number in _NUMBERS if signal.getsignal(number) != signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._note) for number in heard}
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted.append(signal.Signals(number))

    def take(self) -> list[signal.Signals]:
        """The signals since the last call."""
        taken = []
        while self._noted:
            taken.append(self._noted.pop(0))
        return taken

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
