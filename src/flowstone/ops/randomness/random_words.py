"""Random bits one by one, for what takes as many as it happens to need.

>>> words = RandomWords(State(1, 2))
>>> first = words.next()
>>> words.go_to(0)
>>> words.next() == first
True
"""

from __future__ import annotations

import torch

from flowstone.ops.randomness.philox import WORD, State, blocks

__all__ = ["RandomWords"]

_HOST = torch.device("cpu")


class RandomWords:
    """The words of 32 bits that come after a state of Philox, of which so many blocks are made at once."""

    def __init__(self, state: State, at_once: int = 256) -> None:
        self._state, self._at_once = state, at_once
        self._words: list[int] = []
        self.drawn = 0

    def next(self) -> int:
        """The next word."""
        place = self.drawn % (4 * self._at_once)
        if place == 0 or not self._words:
            start = self._state.skipped(self.drawn // (4 * self._at_once) * self._at_once)
            self._words = blocks(start, self._at_once, _HOST).view(-1).tolist()
        self.drawn += 1
        return self._words[place]

    def below(self, limit: int) -> int:
        """A number of [0, limit), each as likely: words that would make small ones likelier are skipped."""
        unfit = (WORD + 1) % limit
        while (word := self.next()) < unfit:
            pass
        return word % limit

    def fraction(self) -> float:
        """A number of [0, 1), a multiple of 2 ** -23."""
        return (self.next() & 0x7FFFFF) / (1 << 23)

    def double(self) -> float:
        """A number of [0, 1), a multiple of 2 ** -52."""
        return ((self.next() & 0xFFFFF) << 32 | self.next()) / (1 << 52)

    def go_to(self, drawn: int) -> None:
        """Makes the next word the one after so many."""
        self.drawn, self._words = drawn, []
