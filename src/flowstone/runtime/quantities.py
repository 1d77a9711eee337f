"""Times, sizes and lists of names as text, in lines of at most `WIDTH` columns.

>>> time_text(0.0123), bytes_text(2_500_000), listed("of ", ["a", "b"])
('12.3 us', '2.5 MB', 'of a, b')
"""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 100  # columns


def listed(head: str, names: Sequence[str]) -> str:
    """`head` and as many of the names as fit into a line."""
    text = head + ", ".join(names)
    if len(text) <= WIDTH:
        return text
    shown = list(names)
    while len(shown) > 1:
        shown.pop()
        text = f"{head}{', '.join(shown)}, … ({len(names) - len(shown)} more)"
        if len(text) <= WIDTH:
            return text
    return clipped(text, WIDTH)


def clipped(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def aligned(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Rows as aligned lines: the first `left` columns are flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  " + "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]  # fmt: skip


def time_text(ms: float) -> str:
    """A time with its unit: us below a millisecond, s from a thousand."""
    if ms >= 1000:
        return f"{ms / 1e3:.2f} s"
    if ms >= 1:
        return f"{ms:.1f} ms" if ms >= 100 else f"{ms:.2f} ms"
    return f"{ms * 1e3:.1f} us"


def bytes_text(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
