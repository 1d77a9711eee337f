"""How the examples show that they are getting on: a live line in a terminal, else ten plain lines.

with shown_progress("towers", 300) as show:
    for step in range(1, 301):
        ...
        show(step, loss=0.31, accuracy=0.92)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


def described(figures: dict[str, float]) -> str:
    """The figures in one line, such as ``loss 0.31  perplexity 120``."""
    return "  ".join(f"{name} {value:,.{0 if value >= 100 else 3}f}" for name, value in figures.items())


@contextmanager
def shown_progress(name: str, total: int) -> Iterator[Callable[..., None]]:
    """Gives ``show(done, **figures)``, to be called from one thread with `done` of `total` steps."""
    console, start = Console(), time.perf_counter()

    def speed(done: int) -> float:
        return done / (time.perf_counter() - start)

    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}  {task.fields[text]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(name, total=total, text="")

            def show_live(done: int, **figures: float) -> None:
                progress.update(
                    task, completed=done, text=f"{described(figures)}  {speed(done):,.0f} steps/s"
                )

            yield show_live
        return

    lines_shown = 0

    def show_line(done: int, **figures: float) -> None:
        nonlocal lines_shown
        if done * 10 // total > lines_shown:
            lines_shown = done * 10 // total
            left = (total - done) / speed(done)
            print(
                f"{name}: step {done} of {total}  {described(figures)}  {speed(done):,.0f} steps/s  "
                f"{left:.0f} s left",
                flush=True,
            )

    yield show_line
