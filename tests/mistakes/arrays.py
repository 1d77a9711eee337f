"""Short names for the arrays that mistakes are made with, and what their messages must say."""

from __future__ import annotations

import numpy as np


def f(*shape: int) -> np.ndarray:
    """Float zeros."""
    return np.zeros(shape, np.float32)


def i(*values: int) -> np.ndarray:
    """An int32 vector."""
    return np.array(values, np.int32)


def n(value: int) -> np.ndarray:
    """An int32 scalar."""
    return np.array(value, np.int32)


def missing_words(error: BaseException | None, words: str) -> list[str]:
    """Those of `words` that the message, without its stack trace, does not hold; spaces and case aside."""
    message = str(error).split("Original stack trace")[0].lower()
    compact = message.replace(" ", "")
    return [word for word in words.lower().split() if word not in message and word not in compact]
