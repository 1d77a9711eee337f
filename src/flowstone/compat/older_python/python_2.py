"""What is said of a program of Python 2: the line, what it is, and the command that rewrites it."""

from __future__ import annotations

import re

__all__ = ["describe"]

# What the line looks like, and what it is called.
_FORMS = [
    (r"\bprint\s+(?!=)[^(\s]|\bprint\s*$|\bprint\s*>>", "a print statement"),
    (r"\bexcept\s+[^:]+,\s*\w+\s*:", "an except clause with a comma"),
    (r"\braise\s+[\w.]+\s*,", "a raise statement with a comma"),
    (r"\bexec\s+[^(\s]", "an exec statement"),
    (r"<>", "the operator <>"),
    (r"`[^`]*`", "backquotes"),
    (r"\b0[0-7]+\b", "an octal number without 0o"),
    (r"\b\d+[lL]\b", "a long number"),
    (r"\bur['\"]", "a string with the prefix ur"),
    (r"def\s+\w+\([^)]*\(", "a tuple among the parameters"),
    (r"\blambda\s*\(", "a tuple among the parameters"),
]


def describe(error: SyntaxError) -> str | None:
    """The message for a SyntaxError that Python 2 explains; None for another one.

    >>> print(describe(SyntaxError("invalid", ("a.py", 3, 1, "print 'x'"))))
    a.py:3: this is Python 2: a print statement.
        print 'x'
    `flowstone convert a.py` rewrites it for Python 3.
    """
    text = (error.text or "").rstrip()
    form = next((name for pattern, name in _FORMS if re.search(pattern, text)), None)
    if form is None and isinstance(error, TabError):
        form = "tabs and spaces mixed"
    if form is None:
        return None
    return (
        f"{error.filename}:{error.lineno}: this is Python 2: {form}.\n    {text.strip()}\n"
        f"`flowstone convert {error.filename}` rewrites it for Python 3."
    )
