"""The lines that `fit`, `evaluate` and `predict` print, as `tf.keras` words them.

A line counts what was seen, says how long a unit (a sample or a step) took and has means of the values:

    24/24 [==============================] - 0s 2ms/sample - loss: 13.1934 - mean_absolute_error: 3.4688
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["Progbar", "extend"]


class Progbar:
    """How far a loop is: `update(seen, [(name, value) …])` prints a line, or rewrites it on a terminal.

    `target`: how many units there are; None, unknown. `verbose`: 1, a bar after `interval` seconds each; 2,
    one line at the end. Values are averaged by units, those of `stateful_metrics` are shown as they are.
    """

    def __init__(
        self,
        target: int | None,
        width: int = 30,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Any = None,
        unit_name: str = "step",
    ) -> None:
        self.target = target
        self.width = width
        self.verbose = verbose
        self.interval = interval
        self.stateful_metrics = set(stateful_metrics or ())
        self.unit_name = unit_name
        is_terminal = hasattr(sys.stdout, "isatty") and sys.stdout.isatty()
        self._dynamic_display = is_terminal or "ipykernel" in sys.modules
        self._total_width = 0
        self._seen_so_far = 0
        self._values: dict[str, tuple[Any, float]] = {}  # sums, and of how many units
        self._start = time.time()
        self._last_update = 0.0

    def add(self, n: int, values: Any = None) -> None:
        """`n` more units were seen."""
        self.update(self._seen_so_far + n, values)

    def update(self, current: int, values: Any = None) -> None:
        """`current` units were seen so far; `values` are those of the ones since the last call."""
        self._add_values(current, values or ())
        self._seen_so_far = current
        now = time.time()
        is_done = self.target is not None and current >= self.target
        if self.verbose == 1 and (is_done or self.target is None or now - self._last_update >= self.interval):
            self._write_bar(current, now - self._start, is_done)
        elif self.verbose == 2 and (is_done or self.target is None):
            count = self._count(current) if self.target is not None else f"{current}/Unknown"
            sys.stdout.write(f"{count} - {now - self._start:.0f}s{self._means(_number_of_line)}\n")
            sys.stdout.flush()
        self._last_update = now

    def _add_values(self, current: int, values: Any) -> None:
        units = current - self._seen_so_far
        for name, value in values:
            if name in self.stateful_metrics:
                self._values[name] = (value, 1)
            else:
                total, count = self._values.get(name, (0.0, 0))
                self._values[name] = (total + value * units, count + units)

    def _count(self, current: int) -> str:
        width = len(str(self.target))
        return f"{current:{width}d}/{self.target}"

    def _write_bar(self, current: int, seconds: float, is_done: bool) -> None:
        previous = self._total_width
        start = "\b" * previous + "\r" if self._dynamic_display else "\n"
        bar = self._bar(current)
        text = bar + self._times(current, seconds, is_done) + self._means(_number)
        self._total_width = len(text)
        end = " " * max(previous - len(text), 0) + ("\n" if is_done else "")
        sys.stdout.write(start + text + end)
        sys.stdout.flush()

    def _bar(self, current: int) -> str:
        if self.target is None:
            return f"{current:7d}/Unknown"
        filled = int(self.width * current / self.target) if self.target else self.width
        head = "" if not filled else "=" * (filled - 1) + ("=" if current >= self.target else ">")
        return f"{self._count(current)} [{head}{'.' * (self.width - filled)}]"

    def _times(self, current: int, seconds: float, is_done: bool) -> str:
        one = seconds / current if current else 0.0
        if self.target is not None and not is_done:
            return f" - ETA: {_duration(one * (self.target - current))}"
        scale, unit = (1.0, "s") if one >= 1 else (1e3, "ms") if one >= 1e-3 else (1e6, "us")
        return f" - {seconds:.0f}s {one * scale:.0f}{unit}/{self.unit_name}"

    def _means(self, written: Callable[[Any], str]) -> str:
        return "".join(
            f" - {name}: {written(np.mean(total / max(1, count)))}"
            for name, (total, count) in self._values.items()
        )


def _number(mean: Any) -> str:
    return f"{mean:.4f}" if abs(mean) > 1e-3 else f"{mean:.4e}"


def _number_of_line(mean: Any) -> str:
    return f"{mean:.4f}" if mean > 1e-3 else f"{mean:.4e}"  # negative ones, too, as TensorFlow has it


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    if seconds > 3600:
        return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
    return f"{minutes}:{rest:02d}" if seconds > 60 else f"{rest}s"


def extend(module: ModuleType) -> None:
    """Puts `Progbar` into `utils.generic_utils`."""
    module.Progbar = Progbar  # type: ignore[attr-defined]
